"""How a profile judges: the levels, margins and thresholds that decide its verdicts, and which are not as shipped."""

from collections.abc import Iterator, Mapping
from typing import Any

from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.statistics.equivalence import Margin

_SECTIONS = ("measures", "significance")
_KEYS = ("alpha", "margin", "max_identical_share")
"""Sections of a study's section that decide verdicts, and keys in no section."""
_DECIDES_NOTHING = ("device", "labelled", "other_classifiers")
"""Keys of these sections that say where something is computed, or what stands beside a verdict."""


Further = Mapping[str, tuple[Any, Any]]
"""What decides verdicts outside of a study's section, by its place, beside what is shipped (`Part.thresholds`)."""


def judging(settings: Specification, further: Further) -> dict[str, Any]:
    """What decides verdicts in a study's section, by its place in it, such as `significance.margins.rates`."""
    return {**dict(_deciding(settings, shipped=False)), **{place: now for place, (now, _) in further.items()}}


def told_margins(settings: Specification, further: Further) -> list[str]:
    """Its levels and margins, in words."""
    thresholds = judging(settings, further).items()
    return [
        f"{place} {_said(value)}" for place, value in thresholds if isinstance(value, Margin) or place.endswith("alpha")
    ]


def not_as_shipped(settings: Specification, further: Further) -> dict[str, str]:
    """What decides otherwise than in a profile that says nothing of it, in words, by its place.

    Examples:
        >>> class Section(Specification):
        ...     margin: Margin = Margin(absolute=0.01)
        >>> not_as_shipped(Section(margin=Margin(absolute=0.5)), {})
        {'margin': '0.5 (shipped 0.01)'}
    """
    shipped = {**dict(_deciding(settings, shipped=True)), **{place: before for place, (_, before) in further.items()}}
    return {
        place: f"{_said(now)} (shipped {_said(shipped[place])})" if place in shipped else _said(now)
        for place, now in judging(settings, further).items()
        if now != shipped.get(place)
    }


def _deciding(settings: Specification, *, shipped: bool) -> Iterator[tuple[str, Any]]:
    for name, value in _fields(settings, shipped=shipped):
        if name in _SECTIONS and isinstance(value, Specification):
            for key, threshold in _fields(value, shipped=shipped):
                if isinstance(threshold, dict):
                    yield from ((f"{name}.{key}.{measure}", margin) for measure, margin in threshold.items())
                elif key not in _DECIDES_NOTHING:
                    yield f"{name}.{key}", threshold
        elif name in _KEYS:
            yield name, value


def _fields(settings: Specification, *, shipped: bool) -> Iterator[tuple[str, Any]]:
    for name, field in type(settings).model_fields.items():
        yield name, field.get_default(call_default_factory=True) if shipped else getattr(settings, name)


def _said(value: Any) -> str:
    if isinstance(value, Margin):
        kind = "" if value.absolute is not None else f"{value.kind} "
        return f"{kind}{getattr(value, value.kind):g}"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
