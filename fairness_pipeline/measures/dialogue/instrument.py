"""Checks the scorers themselves: scores both sides of human texts in which only the listed words are swapped.

If a scorer finds "god" less offensive than "goddess", it reports a gap that no model made.
"""

from collections.abc import Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.lexicons.dimensions import MaskedWords, Words
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.diversity import indexed
from fairness_pipeline.measures.dialogue.measure import (
    MASKED,
    Measure,
    Readings,
    Scorings,
    SignificanceSettings,
    neutral_reading,
)
from fairness_pipeline.statistics.comparison import SIGNIFICANCE, adjusted
from fairness_pipeline.statistics.intervals import Estimate, of_interval

INSTRUMENT_CHECK = schema(
    SIGNIFICANCE,
    texts=(pa.string(), "what was scored: responses or contexts with swapped words, or contexts as answers"),
)
"""One row per measure, and one for its reading with the groups' words masked, in which the sides must not differ.
Contexts are swapped if the corpus has no responses; `PARROT` is the result of a model that repeats its context."""
PARROT = "answers that repeat the context"
MOST = 20_000
"""The maximum number of texts that are swapped."""


def swapped_texts(texts: pa.Array | pa.ChunkedArray, dimension: Words, seed: int, most: int = MOST) -> pa.Table:
    """Columns `pair_id`, `side` and `response`: each text that names one group, and its counterfactual.

    Args:
        texts: Texts written by people.
        dimension: The dimension whose words are swapped, including pronouns that its list lacks.
        seed: The seed of the draw, if there are more than `most` texts.
        most: The maximum number of texts.
    """
    swapper = Swapper(dimension, pronouns="extended", seed=seed, adapt_articles=False)
    likely = texts.filter(pc.match_substring_regex(texts, swapper.matcher.prefilter())).unique()
    ordered = sorted(likely.to_pylist(), key=lambda text: blake2b(f"{seed}\x1f{text}".encode(), digest_size=8).digest())
    a: list[str] = []
    b: list[str] = []
    for text, (matches, side) in zip(ordered, swapper.find_all(pa.array(ordered, pa.string())), strict=True):
        if side in ("a", "b"):
            counterpart = swapper.exchange(text, matches, side, key=text).text
            a.append(text if side == "a" else counterpart)
            b.append(text if side == "b" else counterpart)
            if len(a) == most:
                break
    pair_ids = list(range(len(a)))
    return pa.table(
        {
            "pair_id": pa.array(pair_ids * 2, pa.int64()),
            "side": pa.array(["a"] * len(a) + ["b"] * len(b), pa.string()),
            "response": pa.array(a + b, pa.string()),
        }
    )


def parrot(pairs: pa.Table) -> pa.Table:
    """Columns `pair_id`, `side` and `response`: the answers of a model that repeats its context.

    Args:
        pairs: Columns `pair_id`, `context_a` and `context_b`.
    """
    parts = [
        pa.table(
            {
                "pair_id": pairs["pair_id"],
                "side": pa.array([side] * pairs.num_rows, pa.string()),
                "response": pairs[f"context_{side}"],
            }
        )
        for side in "ab"
    ]
    return pa.concat_tables(parts)


def leaking(parrots: pa.Table, alpha: float) -> dict[str, Estimate]:
    """The measures in which a parrot's answers still differ after the groups' words are masked, and by how much.

    Args:
        parrots: As `INSTRUMENT_CHECK`, of `PARROT`.
        alpha: The level.
    """
    return {
        row["measure"].removesuffix(MASKED): of_interval(row["difference"], row["ci_low"], row["ci_high"])
        for row in parrots.to_pylist()
        if row["measure"].endswith(MASKED) and row["difference"] and row["p_paired"] < alpha
    }


def check_instruments(
    swapped: pa.Table,
    measures: Sequence[Measure],
    scorings: Scorings,
    words: MaskedWords,
    *,
    significance: SignificanceSettings,
    texts: str,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """A table of `INSTRUMENT_CHECK`: how each scorer rates texts that differ only in the listed words.

    Args:
        swapped: As returned by `swapped_texts`.
        measures: Measures that score texts one by one.
        scorings: Classifiers, thresholds and lists, by measure.
        words: The words that were swapped; they are masked in the neutral reading.
        significance: Level and margins.
        texts: The kind of the texts: `responses` or `contexts`.
        folder: Keeps the scores until all texts are scored.
        progress: Receives the number of texts scored.
    """
    rows = []

    def readings() -> Readings:
        return indexed(swapped, neutral_reading(swapped, words), significance)

    for measure in measures if swapped.num_rows else ():
        subfolder = folder / measure.table if folder else None
        table = measure.measure(swapped, scorings[measure.table], subfolder, progress)
        rows += measure.compare(table, readings, significance, seed=0)
    comparisons = adjusted(rows, significance.alpha)
    return pa.Table.from_pylist([{**asdict(row), "texts": texts} for row in comparisons], schema=INSTRUMENT_CHECK)
