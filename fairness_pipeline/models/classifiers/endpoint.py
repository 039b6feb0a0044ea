"""A chat endpoint that answers which class a text belongs to, with one request for each text."""

import re
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.models.chat import Advice, Asker
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.models.specification import Decoding, given

_ANSWER = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_MAX_TOKENS = 8
_ADVICE = Advice(prompt_name="prompt", less="the corpus's 'maximum'")


class AskedClassifierScorer(Asker):
    """Turns yes or no into a probability of 1 or 0. Every answer is saved, so a killed run only asks for the rest.

    Raises:
        FairnessError: while scoring, if the endpoint fails, or an answer begins with neither yes nor no.
    """

    def __init__(self, specification: ClassifierSpecification, folder: Path, seed: int) -> None:
        super().__init__(given(specification.endpoint), Decoding(max_tokens=_MAX_TOKENS), folder, seed, _ADVICE)

    def __call__(self, texts: pa.Table) -> pa.Table:
        """A table with the column `probability`."""
        prompts = self._prompts(texts["text"].to_pylist())
        probabilities = self._chat.meanings(prompts, _probability, "begin with neither yes nor no")
        return pa.table({"probability": pa.array(probabilities, pa.float64())})


def scorer(specification: ClassifierSpecification, work: Path, seed: int) -> AskedClassifierScorer:
    """The scorer of the endpoint, with the answers that an earlier run saved in `work`."""
    return AskedClassifierScorer(specification, work, seed)


def _probability(answer: str) -> float | None:
    """1 for yes, 0 for no, None for anything else."""
    match = _ANSWER.match(answer)
    return float(match[1].lower() == "yes") if match else None
