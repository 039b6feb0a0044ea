"""A chat endpoint that is asked for a text's class, one text a request."""

import re
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.models.chat import Advice, Chat
from fairness_pipeline.models.classifiers.specification import AskedClassifier, ClassifierSpecification
from fairness_pipeline.models.specification import Decoding

_ANSWER = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_MAX_TOKENS = 8
_ADVICE = Advice(what="prompt", empty="; or change endpoint.prompt so that it answers", less="the corpus's 'maximum'")


class AskedClassifierScorer:
    """Yes or no, as a probability of 1 or 0. Every answer is kept, so that a killed run asks only for the rest.

    Args:
        specification: The classifier's file.
        folder: Keeps the answers.
        seed: Sent along with each request.

    Raises:
        FairnessError: when it scores: the endpoint fails, or an answer begins with neither yes nor no.
    """

    CHUNK = 64
    """Texts between two reports of progress."""

    def __init__(self, specification: ClassifierSpecification, folder: Path, seed: int) -> None:
        self.source = _source(specification)
        self._chat = Chat(self.source, Decoding(max_tokens=_MAX_TOKENS), folder, seed, _ADVICE)

    def __call__(self, texts: pa.Table) -> pa.Table:
        """A column `probability`."""
        prompts = [self.source.filled(text) for text in texts["text"].to_pylist()]
        said = self._chat.meanings(prompts, _probability, "begin with neither yes nor no")
        return pa.table({"probability": pa.array(said, pa.float64())})

    def check_allowed(self, texts: list[str]) -> None:
        """Refuses, before anything is asked, what `max_requests` does not allow for all these texts."""
        self._chat.check_allowed([self.source.filled(text) for text in texts])


def scorer(specification: ClassifierSpecification, work: Path, seed: int) -> AskedClassifierScorer:
    """The endpoint, with the answers that an earlier run left in `work`."""
    return AskedClassifierScorer(specification, work, seed)


def _probability(answer: str) -> float | None:
    """1 for yes, 0 for no."""
    found = _ANSWER.match(answer)
    return float(found[1].lower() == "yes") if found else None


def _source(specification: ClassifierSpecification) -> AskedClassifier:
    assert specification.endpoint is not None
    return specification.endpoint
