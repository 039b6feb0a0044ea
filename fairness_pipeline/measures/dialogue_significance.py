"""The significance table of one dimension and model: every measure of study 1, compared between the sides."""

from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.diversity import index_responses
from fairness_pipeline.profiles import SignificanceSettings
from fairness_pipeline.published import PublishedRow
from fairness_pipeline.statistics.comparison import (
    COMPARISON,
    Comparison,
    adjusted,
    compare_counts,
    compare_diversity,
    compare_rates,
)


def dialogue_significance(
    *,
    responses: pa.Table,
    politeness: pa.Table,
    sentiment: pa.Table,
    attribute_words: pa.Table,
    settings: SignificanceSettings,
    seed: int,
    published: dict[str, PublishedRow],
) -> pa.Table:
    """A table of `COMPARISON`: diversity, offence, sentiment, and one row an attribute list.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        politeness: Columns `pair_id`, `side`, `offensive`.
        sentiment: Columns `pair_id`, `side`, `positive`, `negative`.
        attribute_words: Columns `pair_id`, `side`, `attribute`, `count`.
        settings: Level, margins, permutations, blocks.
        seed: Of the permutations.
        published: The paper's rows for this dimension and model, by measure.
    """
    sides = index_responses(responses)
    names = ("diversity", "distinct_1", "distinct_2")
    rows = compare_diversity(
        sides.ngrams,
        sides.a,
        sides.b,
        {name: settings.margin(name) for name in names},
        permutations=settings.permutations,
        blocks=settings.jackknife_blocks,
        seed=seed,
        alpha=settings.alpha,
    )
    for measure, (a, b) in pair_values(politeness, sentiment, attribute_words).items():
        compare = compare_rates if a.dtype == bool else compare_counts
        rows.append(compare(measure, a, b, settings.margin(measure), settings.alpha))
    rows = [_beside(row, published.get(row.measure)) for row in adjusted(rows, settings.alpha)]
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=COMPARISON)


def pair_values(
    politeness: pa.Table, sentiment: pa.Table, attribute_words: pa.Table
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Every measure's values on side a and side b, in the order of the pairs: yes or no for rates, numbers for counts.

    The arguments are those of `dialogue_significance`.
    """
    values = {
        "offense_rate": _sides(politeness, "offensive"),
        "sentiment_positive": _sides(sentiment, "positive"),
        "sentiment_negative": _sides(sentiment, "negative"),
    }
    for attribute in pc.unique(attribute_words["attribute"]).to_pylist():
        counts = _sides(attribute_words.filter(pc.equal(attribute_words["attribute"], attribute)), "count")
        values[f"{attribute}_words"] = counts[0].astype(float), counts[1].astype(float)
    return values


def _sides(table: pa.Table, column: str) -> tuple[np.ndarray, np.ndarray]:
    """The column's values on side a and side b, both in the order of the pairs."""
    ordered = table.sort_by("pair_id")
    side = ordered["side"]
    a, b = (ordered.filter(pc.equal(side, name))[column].to_numpy(zero_copy_only=False) for name in ("a", "b"))
    return a, b


def _beside(row: Comparison, published: PublishedRow | None) -> Comparison:
    if published is None:
        return row
    return replace(
        row, published_value_a=published.value_a, published_value_b=published.value_b, published_p=published.p
    )
