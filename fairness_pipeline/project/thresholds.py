"""Lists the levels, margins and thresholds that decide a profile's verdicts, and those that are not as shipped."""

from collections.abc import Iterator, Mapping
from typing import Any

from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.statistics.equivalence import Margin

_SECTIONS = ("measures", "significance")
_KEYS = ("alpha", "margin", "max_identical_share")
"""The subsections of a study's section that decide verdicts, and the keys outside of them that do."""
_DECIDES_NOTHING = ("device", "labelled", "other_classifiers")
"""Keys of these subsections that decide no verdict: where something is computed, or what is shown with a verdict."""


Further = Mapping[str, tuple[Any, Any]]
"""The settings outside of a study's section that decide verdicts: by key, the value and the shipped value."""


def judging(settings: Specification, further: Further) -> dict[str, Any]:
    """The settings that decide a study's verdicts, by key, such as `significance.margins.rates`."""
    return {**dict(_deciding_settings(settings, shipped=False)), **{key: value for key, (value, _) in further.items()}}


def describe_margins(settings: Specification, further: Further) -> list[str]:
    """The levels and margins of a study, in words."""
    thresholds = judging(settings, further).items()
    return [
        f"{key} {_in_words(value)}" for key, value in thresholds if isinstance(value, Margin) or key.endswith("alpha")
    ]


def not_as_shipped(settings: Specification, further: Further) -> dict[str, str]:
    """The settings that decide verdicts and differ from the shipped ones, in words, by key.

    Examples:
        >>> class Section(Specification):
        ...     margin: Margin = Margin(absolute=0.01)
        >>> not_as_shipped(Section(margin=Margin(absolute=0.5)), {})
        {'margin': '0.5 (shipped 0.01)'}
    """
    shipped = {
        **dict(_deciding_settings(settings, shipped=True)),
        **{key: default for key, (_, default) in further.items()},
    }
    return {
        key: f"{_in_words(value)} (shipped {_in_words(shipped[key])})" if key in shipped else _in_words(value)
        for key, value in judging(settings, further).items()
        if value != shipped.get(key)
    }


def _deciding_settings(settings: Specification, *, shipped: bool) -> Iterator[tuple[str, Any]]:
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


def _in_words(value: Any) -> str:
    if isinstance(value, Margin):
        kind = "" if value.absolute is not None else f"{value.kind} "
        return f"{kind}{getattr(value, value.kind):g}"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
