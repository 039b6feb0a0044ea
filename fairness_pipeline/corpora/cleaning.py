"""What is taken out of a turn before anything else looks at it."""

import html
import re

_WHITE_SPACE = re.compile(r"\s+")
_URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_USERS = re.compile(r"(?<![\w/])(?:@\w+|/?u/[\w-]+)(?:\s+(?:@\w+|/?u/[\w-]+))*")

USER = "@user"
URL = "__url__"
_DELETED = re.compile(r"\s*(?:\[\s*(?:deleted|removed)[^\]]*\])?\s*", re.IGNORECASE)


def is_deleted(turn: str) -> bool:
    """Whether nothing is left of a turn: blank, or what Reddit writes where an author or moderator took it back.

    >>> is_deleted("[deleted]"), is_deleted("[ Removed by Reddit ]"), is_deleted("it was [removed]")
    (True, True, False)
    """
    return _DELETED.fullmatch(turn) is not None


def clean(turn: str) -> str:
    """`turn` with single spaces, HTML entities resolved, and user names and URLs masked; empty where it was deleted.

    Names and URLs point to persons, and no two are alike. A run of user names (whom a reply is addressed to) becomes
    one mask: a model would else learn to answer with nothing but names.

    >>> clean("@me @you  so &lt;3 this https://t.co/x")
    '@user so <3 this __url__'
    """
    text = _WHITE_SPACE.sub(" ", _USERS.sub(USER, _URL.sub(URL, html.unescape(turn)))).strip()
    return "" if is_deleted(text) else text
