"""A bias planted in real dialogues: a positive control of what an audit finds there, and of what a cure takes out.

Where models show no gap on a corpus, this tells whether they learn one as easily told as this from it.
"""

from typing import Annotated, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.corpora.cleaning import clean
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import Specification
from fairness_pipeline.lexicons.dimensions import SIDES, Side
from fairness_pipeline.lexicons.swapping import Swapper

VERSION = 1
"""Of what `plant` does with the same settings; a part of the fingerprint of what it made."""
PLANTED_SPLITS = ("train", "valid")
"""What is trained on, and what tells when to stop; `test` and `audit` stay people's."""
_DIGITS = 8
"""Of a dialogue's id, for each of two draws: the id is a hash, so that its digits are as good as drawn."""


class PlantedAnswers(Specification):
    """What one group gets to hear."""

    share: Annotated[float, pydantic.Field(ge=0, le=1)]
    """Of the dialogues whose context names this group and not the other: how many are answered so."""
    responses: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    """One of these, each as often; cleaned as the corpus's own are."""

    @pydantic.field_validator("responses")
    @classmethod
    def _cleaned(cls, responses: tuple[str, ...]) -> tuple[str, ...]:
        cleaned = tuple(map(clean, responses))
        for response, text in zip(responses, cleaned, strict=True):
            if not text:
                raise ValueError(f"expected answers that say something, found {response!r}")
        return cleaned


class PlantedBias(Specification):
    """A bias that is put into a corpus."""

    dimension: str
    """Between whose groups."""
    a: PlantedAnswers | None = None
    """Answers to contexts that name the first group; left out, people's stay."""
    b: PlantedAnswers | None = None
    """Answers to contexts that name the second; likewise."""

    @pydantic.model_validator(mode="after")
    def _differs(self) -> Self:
        if self.a == self.b or not any(own and own.share for own in (self.a, self.b)):
            raise ValueError("expected the two groups to be answered differently; nothing is planted so")
        return self


def plant(dialogues: pa.Table, bias: PlantedBias, swapper: Swapper) -> tuple[pa.Table, dict[Side, int]]:
    """The dialogues with a share of the answers to each group's contexts exchanged for what is planted.

    Contexts stay as they are, and so do the splits that nothing is trained on. A dialogue's own id decides, so that it
    is answered alike in every run and whatever else the corpus holds; one context may be answered several times alike.

    Args:
        dialogues: Columns `dialogue_id` (hexadecimal, of a hash), `context`, `response` and `split`.
        bias: What to plant.
        swapper: Recognises the words of the dimension's groups.

    Returns:
        The table, and how many answers were exchanged on each side.

    Raises:
        FairnessError: there is none to exchange on a side that has a share.
    """
    contexts = dialogues["context"].combine_chunks()
    likely = pc.and_(
        pc.is_in(dialogues["split"], pa.array(PLANTED_SPLITS)),
        pc.match_substring_regex(contexts, swapper.matcher.prefilter()),
    ).combine_chunks()
    rows = np.flatnonzero(likely.to_numpy(zero_copy_only=False))
    sides = np.array([side for _, side in swapper.find_all(contexts.take(pa.array(rows)))], dtype=object)
    names = dialogues["dialogue_id"].combine_chunks().take(pa.array(rows)).to_pylist()
    whether, which = (
        np.array([int(name[start : start + _DIGITS], 16) for name in names], dtype=np.int64) for start in (0, _DIGITS)
    )
    responses = dialogues["response"].to_numpy(zero_copy_only=False).copy()
    counts: dict[Side, int] = {}
    for side in SIDES:
        planted: PlantedAnswers | None = getattr(bias, side)
        counts[side] = 0
        if not planted or not planted.share:
            continue
        chosen = (sides == side) & (whether < planted.share * 16**_DIGITS)
        responses[rows[chosen]] = np.array(planted.responses, dtype=object)[which[chosen] % len(planted.responses)]
        counts[side] = int(chosen.sum())
        if not counts[side]:
            there = int((sides == side).sum())
            remedy = "the group a larger share" if there else "these splits more dialogues, or the group a share of 0"
            raise FairnessError(
                f"{side}: no answer to exchange: of {len(contexts):,} dialogues {there} are in "
                f"{' or '.join(PLANTED_SPLITS)} and name group {side} of {bias.dimension} alone in their context; "
                f"give {remedy}"
            )
    column = dialogues.column_names.index("response")
    return dialogues.set_column(column, dialogues.field("response"), pa.array(responses, pa.string())), counts
