"""What decides verdicts in a profile: the levels of its tests, and the margins inside which no difference matters."""

from collections.abc import Iterator
from typing import Any

from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.statistics.equivalence import Margin

Threshold = float | Margin | None

_DECIDE = ("alpha", "margin", "margins")
"""Keys of a study's section, or of a section in it."""


def thresholds(settings: Specification) -> dict[str, Threshold]:
    """The levels and margins of a study's section, by their place in it, such as `significance.margins.rates`."""
    return dict(_found(settings, ""))


def told_thresholds(settings: Specification) -> list[str]:
    """The same in words."""
    return [f"{place} {_said(threshold)}" for place, threshold in thresholds(settings).items()]


def not_as_shipped(settings: Specification) -> dict[str, str]:
    """The levels and margins that are not those of a profile that says nothing of them, in words, by their place.

    Examples:
        >>> class Section(Specification):
        ...     margin: Margin = Margin(absolute=0.01)
        >>> not_as_shipped(Section(margin=Margin(absolute=0.5)))
        {'margin': '0.5 (shipped 0.01)'}
    """
    shipped = dict(_found(settings, "", shipped=True))
    return {
        place: f"{_said(now)} (shipped {_said(shipped[place])})" if place in shipped else _said(now)
        for place, now in thresholds(settings).items()
        if now != shipped.get(place)
    }


def _found(settings: Specification, place: str, *, shipped: bool = False) -> Iterator[tuple[str, Any]]:
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if shipped:
            value = field.get_default(call_default_factory=True)
        if name in _DECIDE:
            each = {f"{place}{name}.{key}": own for key, own in value.items()} if isinstance(value, dict) else {}
            yield from each.items() if each else [(f"{place}{name}", value)]
        elif isinstance(value, Specification):
            yield from _found(value, f"{place}{name}.", shipped=shipped)


def _said(threshold: Threshold) -> str:
    if isinstance(threshold, Margin):
        kind = "" if threshold.absolute is not None else f"{threshold.kind} "
        return f"{kind}{getattr(threshold, threshold.kind):g}"
    return "none" if threshold is None else f"{threshold:g}"
