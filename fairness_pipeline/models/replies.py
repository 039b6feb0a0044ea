"""What came back when a model was asked: an answer, or one of the ways in which there is none."""

from typing import NamedTuple

ANSWER, EMPTY, REFUSED, FILTERED, FAILED = KINDS = ("answer", "empty", "refused", "filtered", "failed")
"""An answer in words; one without words; a refusal in a field of its own; what a filter of contents kept back; a prompt
that failed each time it was sent."""
DECLINED = (REFUSED, FILTERED)
WORDLESS = (EMPTY, FAILED)


class Reply(NamedTuple):
    """What came back for a prompt: its text, which kind it is, the model that the server says has answered, and why
    there is no answer."""

    text: str
    kind: str = ANSWER
    served: str = ""
    problem: str = ""
