"""Text that others wrote (models, files, servers), fit for a terminal."""

import re

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_ENDS = re.compile("[\t\n]")


def visible(text: str, *, lines: bool = False) -> str:
    """`text` with what steers a terminal or turns the direction of reading written out.

    Args:
        text: Any.
        lines: Whether tabs and line ends stay as they are.

    Examples:
        >>> visible("red: \\x1b[31m!")
        'red: \\\\x1b[31m!'
    """
    shown = _HIDDEN.sub(_written_out, text)
    return shown if lines else _ENDS.sub(_written_out, shown)


def number_of(count: int, noun: str) -> str:
    """A count with its noun, in the plural where it needs one.

    Examples:
        >>> number_of(1, "verdict"), number_of(1200, "verdict")
        ('1 verdict', '1,200 verdicts')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _written_out(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")
