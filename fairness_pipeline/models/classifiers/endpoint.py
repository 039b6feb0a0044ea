"""A chat endpoint that answers which class a text belongs to, with one request for each text."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.models.chat import Advice, Chat
from fairness_pipeline.models.classifiers.specification import AskedClassifier, ClassifierSpecification
from fairness_pipeline.models.specification import Decoding

_ANSWER = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_MAX_TOKENS = 8
_ADVICE = Advice(what="prompt", less="the corpus's 'maximum'")


class AskedClassifierScorer:
    """Turns yes or no into a probability of 1 or 0. Every answer is saved, so a killed run only asks for the rest.

    Args:
        specification: The classifier's file.
        folder: Holds the saved answers.
        seed: Sent with each request.

    Raises:
        FairnessError: while scoring, if the endpoint fails, or an answer begins with neither yes nor no.
    """

    CHUNK = 4096
    """The number of texts between two times at which a server has nothing to answer."""

    def __init__(self, specification: ClassifierSpecification, folder: Path, seed: int) -> None:
        self.source = _source(specification)
        self._chat = Chat(self.source, Decoding(max_tokens=_MAX_TOKENS), folder, seed, _ADVICE)

    def __call__(self, texts: pa.Table) -> pa.Table:
        """A table with the column `probability`."""
        prompts = [self.source.filled(text) for text in texts["text"].to_pylist()]
        said = self._chat.meanings(prompts, _probability, "begin with neither yes nor no")
        return pa.table({"probability": pa.array(said, pa.float64())})

    def tell(self, told: Callable[[int], None]) -> None:
        """From now on `told` is called with the number of texts of the current chunk that have an answer."""
        self._chat.tell(told)

    def check_allowed(self, texts: list[str]) -> None:
        """Raises an error, before anything is asked, if `max_requests` does not allow all these texts."""
        self._chat.check_allowed([self.source.filled(text) for text in texts])


def scorer(specification: ClassifierSpecification, work: Path, seed: int) -> AskedClassifierScorer:
    """The scorer of the endpoint, with the answers that an earlier run saved in `work`."""
    return AskedClassifierScorer(specification, work, seed)


def _probability(answer: str) -> float | None:
    """1 for yes, 0 for no, None for anything else."""
    found = _ANSWER.match(answer)
    return float(found[1].lower() == "yes") if found else None


def _source(specification: ClassifierSpecification) -> AskedClassifier:
    assert specification.endpoint is not None
    return specification.endpoint
