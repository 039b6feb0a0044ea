"""Cleans turns before anything else reads them."""

import html
import re

_WHITE_SPACE = re.compile(r"\s+")
_URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_USERS = re.compile(r"(?<![\w/])(?:@\w+|/?u/[\w-]+)(?:\s+(?:@\w+|/?u/[\w-]+))*")

USER = "@user"
URL = "__url__"
_DELETED = re.compile(r"\s*(?:\[\s*(?:deleted|removed)[^\]]*\])?\s*", re.IGNORECASE)


def is_deleted(turn: str) -> bool:
    """Whether a turn is blank, or holds only Reddit's note that its author or a moderator deleted it.

    >>> is_deleted("[deleted]"), is_deleted("[ Removed by Reddit ]"), is_deleted("it was [removed]")
    (True, True, False)
    """
    return _DELETED.fullmatch(turn) is not None


def clean(turn: str) -> str:
    """`turn` with single spaces, decoded HTML entities, and masked user names and URLs; empty if it was deleted.

    Names and URLs are masked because they point to people and hardly ever repeat. Several user names in a row (the
    people a reply is addressed to) become one mask. Otherwise a model would learn to answer with nothing but names.

    >>> clean("@me @you  so &lt;3 this https://t.co/x")
    '@user so <3 this __url__'
    """
    text = _WHITE_SPACE.sub(" ", _USERS.sub(USER, _URL.sub(URL, html.unescape(turn)))).strip()
    return "" if is_deleted(text) else text
