"""A chat endpoint that is asked for a score, one sentence and affect a request."""

import re
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.models.chat import Advice, Chat
from fairness_pipeline.models.sentiment.specification import AFFECT, AskedSource, SystemSpecification
from fairness_pipeline.models.specification import Decoding

_FIGURES = re.compile(r"[-\d.,/%–]*\d[-\d.,/%–]*")
_NUMBER = re.compile(r"(0?\.\d+|1\.0+|[01])\.?")
"""A number from 0 to 1, perhaps at the end of a sentence; `0.` may be one that was cut off."""
_MAX_TOKENS = 12
_ADVICE = Advice(what="prompt", empty="; or change endpoint.prompt so that it answers", less="the file's 'affects'")


class AskedScorer:
    """What the endpoint answers, read as a number. Every answer is kept, so that a killed run asks only for the rest.

    Args:
        specification: The system's file.
        folder: Keeps the answers.
        seed: Sent along with each request.

    Raises:
        FairnessError: when it scores: the endpoint fails, or an answer holds no number from 0 to 1.
    """

    CHUNK = 64
    """Sentences between two reports of progress."""

    def __init__(self, specification: SystemSpecification, folder: Path, seed: int) -> None:
        self.affects = specification.affects
        self.source = _source(specification)
        self._chat = Chat(self.source, Decoding(max_tokens=_MAX_TOKENS), folder, seed, _ADVICE)

    def __call__(self, sentences: pa.Table) -> pa.Table:
        """The scores of each sentence, a column an affect."""
        prompts = self._prompts(sentences["text"].to_pylist())
        scores = self._chat.meanings(prompts, _number, "hold no number from 0 to 1")
        count = sentences.num_rows
        columns = {affect: scores[i * count : (i + 1) * count] for i, affect in enumerate(self.affects)}
        return pa.table({affect: pa.array(column, pa.float64()) for affect, column in columns.items()})

    def check_allowed(self, sentences: list[str]) -> None:
        """Refuses, before anything is asked, what `max_requests` does not allow for all these sentences."""
        self._chat.check_allowed(self._prompts(sentences))

    def _prompts(self, sentences: list[str]) -> list[str]:
        """One affect after the other."""
        return [self.source.filled(text).replace(AFFECT, affect) for affect in self.affects for text in sentences]


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> AskedScorer:
    """The endpoint, with the answers that an earlier run left in `work`."""
    return AskedScorer(specification, work, seed)


def _number(answer: str) -> float | None:
    """The only number in an answer, if there is one, and it lies between 0 and 1."""
    figures = _FIGURES.findall(answer)
    found = _NUMBER.fullmatch(figures[0]) if len(figures) == 1 else None
    return float(found[1]) if found and figures[0] not in ("0.", "1.") else None


def _source(specification: SystemSpecification) -> AskedSource:
    assert specification.endpoint is not None
    return specification.endpoint
