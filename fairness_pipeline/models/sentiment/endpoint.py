"""A chat endpoint that answers with a score, with one request for each sentence and affect."""

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.models.chat import Advice, Asker
from fairness_pipeline.models.sentiment.specification import AFFECT, SystemSpecification
from fairness_pipeline.models.specification import Decoding, given

_FIGURES = re.compile(r"[-\d.,/%–]*\d[-\d.,/%–]*")
_NUMBER = re.compile(r"(0?\.\d+|1\.0+|[01])\.?")
"""A number from 0 to 1, optionally followed by a full stop; `0.` may be a number that was cut off."""
_MAX_TOKENS = 12
_ADVICE = Advice(prompt_name="prompt", less="the file's 'affects'")


class AskedScorer(Asker):
    """Reads the endpoint's answers as numbers. Every answer is saved, so a killed run only asks for the rest.

    Raises:
        FairnessError: while scoring, if the endpoint fails, or an answer holds no number from 0 to 1.
    """

    def __init__(self, specification: SystemSpecification, folder: Path, seed: int) -> None:
        self.affects = specification.affects
        super().__init__(given(specification.endpoint), Decoding(max_tokens=_MAX_TOKENS), folder, seed, _ADVICE)

    def __call__(self, sentences: pa.Table) -> pa.Table:
        """The scores of each sentence, with one column for each affect."""
        prompts = self._prompts(sentences["text"].to_pylist())
        scores = self._chat.meanings(prompts, _number, "hold no number from 0 to 1")
        count = sentences.num_rows
        columns = {affect: scores[i * count : (i + 1) * count] for i, affect in enumerate(self.affects)}
        return pa.table({affect: pa.array(column, pa.float64()) for affect, column in columns.items()})

    def set_report(self, report: Callable[[int], None]) -> None:
        """As `Asker.set_report`; a sentence has a prompt for each affect."""
        super().set_report(lambda count: report(count // len(self.affects)))

    def _prompts(self, sentences: list[str]) -> list[str]:
        """The prompts, one affect after the other."""
        return [self.source.filled(text).replace(AFFECT, affect) for affect in self.affects for text in sentences]


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> AskedScorer:
    """The scorer of the endpoint, with the answers that an earlier run saved in `work`."""
    return AskedScorer(specification, work, seed)


def _number(answer: str) -> float | None:
    """The number in an answer, if it is the only one and from 0 to 1."""
    figures = _FIGURES.findall(answer)
    match = _NUMBER.fullmatch(figures[0]) if len(figures) == 1 else None
    return float(match[1]) if match and figures[0] not in ("0.", "1.") else None
