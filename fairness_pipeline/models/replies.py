"""A model's reply to a prompt: an answer, or the reason why there is none."""

from typing import NamedTuple

ANSWER, EMPTY, REFUSED, FILTERED, FAILED = KINDS = ("answer", "empty", "refused", "filtered", "failed")
"""An answer in words; one without words; a refusal in a separate field; an answer that a content filter withheld; a
prompt that failed each time it was sent."""
DECLINED = (REFUSED, FILTERED)
WORDLESS = (EMPTY, FAILED)


class Reply(NamedTuple):
    """The reply to a prompt: its text, its kind, the model that answered according to the server, and why there is no
    answer."""

    text: str
    kind: str = ANSWER
    served: str = ""
    problem: str = ""
