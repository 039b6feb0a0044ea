"""The only error whose message is written for users, and the message about an unknown name."""

import difflib
from collections.abc import Iterable

_LISTED = 12
"""From how many known names on only the closest ones are named."""


class FairnessError(Exception):
    """A problem that the user can fix: names the file, line or key, what was expected and found, and the next step."""


def unknown(kind: str, name: str, known: Iterable[str], scope: str = "") -> str:
    """The message about a name that does not exist: the closest known names, or all of them.

    Args:
        kind: The kind of thing that has the name.
        name: The unknown name.
        known: The existing names.
        scope: Where they exist, such as "profile 'sample'".

    Examples:
        >>> unknown("model", "seq2sq", ["seq2seq", "retrieval"], "profile 'sample'")
        "unknown model 'seq2sq' in profile 'sample'; did you mean 'seq2seq'? known: seq2seq, retrieval"
    """
    names = list(dict.fromkeys(known))
    close = closest(name, names)
    guess = f"did you mean {' or '.join(map(repr, close))}?" if close else ""
    listed = f"known: {', '.join(names) or 'none'}" if not close or len(names) <= _LISTED else ""
    return f"unknown {kind} '{name}'{f' in {scope}' if scope else ''}; {' '.join(filter(None, (guess, listed)))}"


def closest(name: str, names: list[str]) -> list[str]:
    """Up to three names that a name may have been meant for, the likeliest first."""
    beginning = [entry for entry in names if len(name) > 2 and entry.startswith(name)]
    return difflib.get_close_matches(name, names) or beginning[:3]
