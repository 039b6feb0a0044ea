"""Renders self-contained HTML, with templates that escape all text and filters for numbers and pictures."""

import base64
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from fairness_pipeline import __version__
from fairness_pipeline.foundation.plain_text import visible
from fairness_pipeline.reporting.plots import COLOURS
from fairness_pipeline.reporting.results import shown_verdict
from fairness_pipeline.statistics.units import with_unit

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_SHARED = Path(__file__).parent


def template(folder: Path, name: str, **filters: Callable[..., Any]) -> "Template":
    """Returns the template `name` of a study's folder; it may include the templates of this folder.

    Args:
        folder: The study's folder.
        name: The file.
        filters: Its filters besides those for numbers, p values, pictures and settings.
    """
    environment = _environment(folder)
    environment.filters |= filters
    return environment.get_template(name)


@cache
def _environment(folder: Path) -> "Environment":
    """Returns the environment of a folder; it is kept, because compiling templates takes longer than rendering."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, _SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"colours": COLOURS, "version": __version__, "shown_verdict": shown_verdict}
    environment.filters |= {
        "number": _number,
        "p": p_value,
        "image": _image,
        "pictures": _pictures,
        "percent": _percent,
        "in_words": in_words,
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
        "with_unit": with_unit,
    }
    return environment


def without_controls(value: Any) -> Any:
    """Returns a value for a template; control characters in text, which would act on a terminal, are escaped."""
    return type(value)(visible(value, lines=True)) if isinstance(value, str) else value


def _image(png: bytes, alternative: str) -> Markup:
    """Returns a picture that scrolls on a narrow screen, so that its labels stay as large as text."""
    return Markup('<div class="scroll"><img alt="{}" src="{}"></div>').format(alternative, _address(png))


def _pictures(pictures: tuple[bytes, bytes], alternative: str) -> Markup:
    """Returns an element that shows one of two pictures, by the width of the screen."""
    wide, narrow = map(_address, pictures)
    return Markup('<picture><source media="(max-width: 640px)" srcset="{}"><img alt="{}" src="{}"></picture>').format(
        narrow, alternative, wide
    )


def _address(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _number(value: float | str | None, digits: int = 4) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}g}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}%"


def p_value(value: float | None) -> str:
    """Formats a p value for readers."""
    if value is None:
        return "–"
    return "< 1e-5" if value < 1e-5 else f"{value:.3g}"


def in_words(value: Any) -> str:
    """Describes settings for readers: `hidden 96, training (epochs 6)`; what is not set is left out."""
    if isinstance(value, dict):
        parts = [(name.replace("_", " "), item) for name, item in value.items() if item is not None and item != {}]
        return ", ".join(
            f"{name} ({in_words(item)})" if isinstance(item, dict) else f"{name} {in_words(item)}"
            for name, item in parts
        )
    if isinstance(value, list | tuple):
        return " ".join(map(in_words, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
