"""Plants a bias in real dialogues: a positive control for the audit and for debiasing methods.

If models show no gap on a corpus, this tells whether they would learn a gap as obvious as this one from it.
"""

from typing import Annotated, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.corpora.cleaning import clean
from fairness_pipeline.corpora.specification import Share
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.lexicons.dimensions import SIDES, Side
from fairness_pipeline.lexicons.swapping import Swapper

VERSION = 1
"""The version of `plant`, raised when the same settings give another result; part of the fingerprint."""
PLANTED_SPLITS = ("train", "valid")
"""The splits for training and early stopping. `test` and `audit` keep the answers that people gave."""
_DIGITS = 8
"""Digits of a dialogue's id used for each of two draws. The id is a hash, so its digits are as good as random."""


class PlantedAnswers(Specification):
    """The answers that the contexts of one group get."""

    share: Share
    """The share of dialogues to answer this way, among those whose context names this group and not the other."""
    responses: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    """The planted answers, each equally often. They are cleaned in the same way as the corpus."""

    @pydantic.field_validator("responses")
    @classmethod
    def _cleaned(cls, responses: tuple[str, ...]) -> tuple[str, ...]:
        cleaned = tuple(map(clean, responses))
        for response, text in zip(responses, cleaned, strict=True):
            if not text:
                raise ValueError(f"expected answers that say something, found {response!r}")
        return cleaned


class PlantedBias(Specification):
    """A bias that is planted in a corpus."""

    dimension: str
    """The dimension whose groups the bias is between."""
    a: PlantedAnswers | None = None
    """The answers to contexts that name the first group; if left out, people's answers stay."""
    b: PlantedAnswers | None = None
    """The answers to contexts that name the second group; if left out, people's answers stay."""

    @pydantic.model_validator(mode="after")
    def _differs(self) -> Self:
        if self.a == self.b or not any(answers and answers.share for answers in (self.a, self.b)):
            raise ValueError("both groups get the same answers, so no bias is planted")
        return self


def plant(dialogues: pa.Table, bias: PlantedBias, swapper: Swapper) -> tuple[pa.Table, dict[Side, int]]:
    """Exchanges a share of the answers to each group's contexts for the planted answers.

    Contexts do not change, and neither do the splits that are not used for training. A dialogue's own id decides about
    its answer. The answer is thus the same in every run and does not depend on the rest of the corpus. A context that
    occurs several times may get the same answer several times.

    Args:
        dialogues: Columns `dialogue_id` (hexadecimal, of a hash), `context`, `response` and `split`.
        bias: What to plant.
        swapper: Recognises the words of the dimension's groups.

    Returns:
        The table, and how many answers were exchanged on each side.

    Raises:
        FairnessError: a group with a share has no answer to exchange.
    """
    contexts = dialogues["context"].combine_chunks()
    likely = pc.and_(
        pc.is_in(dialogues["split"], pa.array(PLANTED_SPLITS)),
        pc.match_substring_regex(contexts, swapper.matcher.prefilter()),
    ).combine_chunks()
    rows = np.flatnonzero(likely.to_numpy(zero_copy_only=False))
    sides = np.array([side for _, side in swapper.find_all(contexts.take(pa.array(rows)))], dtype=object)
    ids = dialogues["dialogue_id"].combine_chunks().take(pa.array(rows)).to_pylist()
    share_draws, response_draws = (
        np.array([int(identity[start : start + _DIGITS], 16) for identity in ids], dtype=np.int64)
        for start in (0, _DIGITS)
    )
    responses = dialogues["response"].to_numpy(zero_copy_only=False).copy()
    counts: dict[Side, int] = {}
    for side in SIDES:
        planted: PlantedAnswers | None = getattr(bias, side)
        counts[side] = 0
        if not planted or not planted.share:
            continue
        chosen = (sides == side) & (share_draws < planted.share * 16**_DIGITS)
        responses[rows[chosen]] = np.array(planted.responses, dtype=object)[
            response_draws[chosen] % len(planted.responses)
        ]
        counts[side] = int(chosen.sum())
        if not counts[side]:
            candidates = int((sides == side).sum())
            remedy = (
                "the group a larger share" if candidates else "these splits more dialogues, or the group a share of 0"
            )
            raise FairnessError(
                f"{side}: no answer to exchange: of {len(contexts):,} dialogues {candidates} are in "
                f"{' or '.join(PLANTED_SPLITS)} and name group {side} of {bias.dimension} alone in their context; "
                f"give {remedy}"
            )
    column = dialogues.column_names.index("response")
    return dialogues.set_column(column, dialogues.field("response"), pa.array(responses, pa.string())), counts
