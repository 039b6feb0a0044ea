"""Numbers with their units, for a reader."""

from collections.abc import Mapping
from typing import Any

UNITS = {"percent": " points", "count_per_response": " a response", "score": ""}
"""The suffix of a number, by unit."""
_FORMS = {"percent": "{:+.3g}", "count_per_response": "{:+.3g}", "score": "{:+#.3g}"}


def with_unit(row: Mapping[str, Any], name: str = "difference") -> str:
    """A difference, an interval's end or a margin, with its sign and unit. Percentage points are called `points`.

    Examples:
        >>> with_unit({"unit": "percent", "difference": -4.02})
        '-4.02 points'
    """
    return _FORMS[row["unit"]].format(row[name]) + UNITS[row["unit"]]
