"""Self-contained HTML: templates that escape all text, and how numbers and pictures stand in them."""

import base64

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from fairness_pipeline.reporting.labels import measure_label


def template(name: str) -> Template:
    """The template `name` of this folder."""
    environment = Environment(
        loader=PackageLoader("fairness_pipeline", "reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _number, "p": _p, "measure": measure_label, "image": _image, "percent": _percent
    }  # fmt: skip
    return environment.get_template(name)


def _image(png: bytes, alternative: str) -> Markup:
    return Markup('<img alt="{}" src="data:image/png;base64,{}">').format(alternative, base64.b64encode(png).decode())


def _number(value: float | str | None, digits: int = 4) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}g}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}%"


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 1e-5" if value < 1e-5 else f"{value:.3g}"
