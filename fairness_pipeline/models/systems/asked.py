"""A chat endpoint that is asked for a score, one sentence and affect a request."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.models import endpoint
from fairness_pipeline.models.specification import Decoding, ModelSpecification
from fairness_pipeline.models.systems.specification import AFFECT, SystemSpecification

_FIGURES = re.compile(r"[-\d.,/%–]*\d[-\d.,/%–]*")
_NUMBER = re.compile(r"(0?\.\d+|1\.0+|[01])\.?")
"""A number from 0 to 1, perhaps at the end of a sentence; `0.` may be one that was cut off."""
_MAX_TOKENS = 12


class AskedScorer:
    """What the endpoint answers, read as a number. Every answer is kept, so that a killed run asks only for the rest.

    Args:
        specification: The system's file.
        folder: Keeps the answers.
        seed: Sent along with each request.

    Raises:
        FairnessError: when it scores: the endpoint fails, or an answer holds no number from 0 to 1.
    """

    def __init__(self, specification: SystemSpecification, folder: Path, seed: int) -> None:
        self.specification = specification
        self.folder = folder
        self.seed = seed
        self._responders: dict[str, endpoint.EndpointResponder] = {}

    def __call__(self, sentences: pa.Table) -> dict[str, np.ndarray]:
        """The scores of each sentence."""
        asked = pa.table({"context": sentences["sentence"]})
        return {affect: self._scores(affect, asked) for affect in self.specification.affects}

    def _scores(self, affect: str, asked: pa.Table) -> np.ndarray:
        folder = self.folder / affect
        folder.mkdir(parents=True, exist_ok=True)
        if affect not in self._responders:  # one, which counts its requests, however often sentences come
            asking = _asking(self.specification, affect)
            self._responders[affect] = endpoint.EndpointResponder(asking, folder, self.seed)
        answers = self._responders[affect](asked)
        texts = zip(asked["context"].to_pylist(), answers["response"].to_pylist(), strict=True)
        return np.array([_number(sentence, affect, answer, folder) for sentence, answer in texts])


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> AskedScorer:
    """The endpoint, with the answers that an earlier run left in `work`."""
    return AskedScorer(specification, work, seed)


def _number(sentence: str, affect: str, answer: str, folder: Path) -> float:
    figures = _FIGURES.findall(answer)
    found = _NUMBER.fullmatch(figures[0]) if len(figures) == 1 else None
    if found is None or figures[0] in ("0.", "1."):
        raise FairnessError(
            f"{affect} of {sentence!r}: expected one number from 0 to 1 as the answer, found {answer[:80]!r}; the "
            f"answers are kept in {folder}: change endpoint.prompt, or delete the line there to ask again"
        )
    return float(found[1])


def _asking(specification: SystemSpecification, affect: str) -> ModelSpecification:
    """The endpoint as a model that is asked about one affect."""
    source = specification.endpoint
    assert source is not None
    return ModelSpecification(
        architecture="endpoint",
        studies=("sentiment_equity",),
        corpus="equity_sentences",
        endpoint=source.model_copy(update={"prompt": source.prompt.replace(AFFECT, affect)}),
        decoding=Decoding(max_tokens=_MAX_TOKENS),
    )
