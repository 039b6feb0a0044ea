"""The significance table of one dimension and model: every measure of its responses, compared between the sides."""

from collections.abc import Mapping
from dataclasses import asdict

import pyarrow as pa

from fairness_pipeline.measures.measure import SignificanceSettings
from fairness_pipeline.measures.registry import measures
from fairness_pipeline.statistics.comparison import COMPARISON, Published, adjusted, beside


def dialogue_significance(
    responses: pa.Table,
    tables: Mapping[str, pa.Table],
    *,
    settings: SignificanceSettings,
    seed: int,
    published: Mapping[str, Published],
) -> pa.Table:
    """A table of `COMPARISON`: diversity, offence, sentiment, and one row an attribute list.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        tables: What each measure found in them, by its name.
        settings: Level, margins, permutations, blocks.
        seed: Of the permutations.
        published: The paper's rows for this dimension and model, by measure.
    """
    rows = [row for measure in measures() for row in measure.compare(tables[measure.table], responses, settings, seed)]
    found = beside(adjusted(rows, settings.alpha), published)
    return pa.Table.from_pylist([asdict(row) for row in found], schema=COMPARISON)
