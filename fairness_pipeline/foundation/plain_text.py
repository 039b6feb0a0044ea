"""Makes text from others (models, files, servers) safe to print in a terminal."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_ENDS = re.compile("[\t\n]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~])")
"""The characters that Markdown might read as markup."""


def visible(text: str, *, lines: bool = False) -> str:
    """`text` with terminal control characters and changes of reading direction written as escapes.

    Args:
        text: Any text.
        lines: Whether to keep tabs and line ends.

    Examples:
        >>> visible("red: \\x1b[31m!")
        'red: \\\\x1b[31m!'
    """
    escaped = _HIDDEN.sub(_escape, text)
    return escaped if lines else _ENDS.sub(_escape, escaped)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names of a list, and how many more there are.

    Examples:
        >>> some(["a", "b", "c", "d", "e"])
        'a, b, c and 2 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def number_of(count: int, noun: str) -> str:
    """A count with its noun, which is in the plural if needed.

    Examples:
        >>> number_of(1, "verdict"), number_of(1200, "verdict")
        ('1 verdict', '1,200 verdicts')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode("ascii")


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the error's kind if it has none.

    Examples:
        >>> first_line(ValueError("no such file\\nat line 3")), first_line(KeyboardInterrupt())
        ('no such file', 'KeyboardInterrupt')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def markdown_table(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as Markdown; markup in its texts is escaped.

    Args:
        names: The names of the columns.
        rows: The cells of each row: texts, numbers or nothing.

    Examples:
        >>> print(markdown_table(["word", "share"], [["*he*", 0.123456], ["<b>", None]]))
        | word | share |
        | --- | --- |
        | \\*he\\* | 0.1235 |
        | &lt;b> |  |
    """

    def cell(value: Any) -> str:
        text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
        return _MARKDOWN.sub(r"\\\1", text).replace("<", "&lt;").replace("\n", " ")

    lines = [list(names), ["---"] * len(names), *([cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table for LaTeX, with the rules of its package `booktabs`; columns of numbers are right-aligned.

    Args:
        names: The names of the columns.
        rows: The cells of each row: texts, numbers or nothing.
    """
    import pandas as pd

    numbers = [any(isinstance(row[index], int | float) for row in rows) for index in range(len(names))]
    cells = [["" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    styled = pd.DataFrame(cells, columns=list(names)).style.hide(axis="index")
    styled = styled.format(escape="latex").format_index(escape="latex", axis=1)
    return str(styled.to_latex(column_format="".join("r" if number else "l" for number in numbers), hrules=True))
