"""A chat endpoint that is asked for a score, one sentence and affect a request."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.models import endpoint
from fairness_pipeline.models.specification import CONTEXT, Decoding, ModelSpecification
from fairness_pipeline.models.systems.specification import AFFECT, AskedSource, SystemSpecification

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

    CHUNK = 64
    """Sentences between two reports of progress."""

    def __init__(self, specification: SystemSpecification, folder: Path, seed: int) -> None:
        self.affects = specification.affects
        self.folder = folder
        self.source = _source(specification)
        asking = ModelSpecification(
            architecture="endpoint",
            studies=("sentiment_equity",),
            corpus="equity_sentences",
            endpoint=self.source.model_copy(update={"prompt": CONTEXT}),  # one that is filled here, with the affect too
            decoding=Decoding(max_tokens=_MAX_TOKENS),
        )
        self._responder = endpoint.EndpointResponder(asking, folder, seed)

    def __call__(self, sentences: pa.Table) -> dict[str, np.ndarray]:
        """The scores of each sentence."""
        texts = sentences["sentence"].to_pylist()
        prompts = [self.source.filled(text).replace(AFFECT, affect) for affect in self.affects for text in texts]
        answers = iter(self._responder(pa.table({"context": prompts}))["response"].to_pylist())
        return {
            affect: np.array([_number(text, affect, next(answers), self.folder) for text in texts])
            for affect in self.affects
        }


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


def _source(specification: SystemSpecification) -> AskedSource:
    assert specification.endpoint is not None
    return specification.endpoint
