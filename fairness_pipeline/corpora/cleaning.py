"""What is taken out of a turn before anything else looks at it."""

import re

_WHITE_SPACE = re.compile(r"\s+")
_URL = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_USER = re.compile(r"(?<!\w)@\w+")

USER = "@user"
URL = "__url__"


def clean(turn: str) -> str:
    """`turn` with single spaces, and with user names and URLs masked: they name persons, and no two are alike."""
    return _WHITE_SPACE.sub(" ", _USER.sub(USER, _URL.sub(URL, turn))).strip()
