"""What counts as a word, and when two spellings are the same one."""

import re

TOKEN = re.compile(r"@?\w+(?:['’-]\w+)*|[^\w\s]")
"""A word (inner apostrophes and hyphens belong to it, and the sign of a user name) or one punctuation mark."""


def fold(text: str) -> str:
    """`text` in the one spelling that lists are compared in: lower case, straight apostrophes."""
    return text.lower().replace("’", "'")


def tokenize(text: str) -> list[str]:
    """The words and punctuation marks of `text`, folded.

    >>> tokenize("He’s my step-son!")
    ["he's", 'my', 'step-son', '!']
    """
    return TOKEN.findall(fold(text))
