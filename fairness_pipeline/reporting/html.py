"""Self-contained HTML: templates that escape all text, and how numbers and pictures stand in them."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from fairness_pipeline import __version__
from fairness_pipeline.reporting.plots import COLOURS

_SHARED = Path(__file__).parent


def template(folder: Path, name: str, **filters: Callable[..., Any]) -> Template:
    """The template `name` of a study's folder, which may include those of this one.

    Args:
        folder: The study's.
        name: The file.
        filters: Its own, beside those for numbers, p values and pictures.
    """
    environment = Environment(
        loader=FileSystemLoader([folder, _SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"colours": COLOURS, "version": __version__}
    environment.filters |= {"number": _number, "p": _p, "image": _image, "percent": _percent, **filters}
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
