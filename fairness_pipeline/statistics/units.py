"""Numbers with their units, for a reader."""

from collections.abc import Mapping
from typing import Any

_UNITS = {
    "percent": ("{:+.3g}", " points"),
    "count_per_response": ("{:+.3g}", " a response"),
    "score": ("{:+#.3g}", ""),
}


def with_unit(row: Mapping[str, Any], name: str = "difference") -> str:
    """A difference, an interval's end or a margin, with its sign and unit. Percentage points are called `points`.

    Examples:
        >>> with_unit({"unit": "percent", "difference": -4.02})
        '-4.02 points'
    """
    form, unit = _UNITS[row["unit"]]
    return form.format(row[name]) + unit
