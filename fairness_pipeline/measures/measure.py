"""What a measure of responses is: a table, and the comparisons of the two sides that follow from it.

A new measure is a file with a `MEASURE` and its entry in `registry.py`; assets, significance, what debiasing changed,
reports and the gate follow from these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.checks import Check
from fairness_pipeline.distinct import Scorer, each_distinct
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.measures.settings import MeasureSettings, Share
from fairness_pipeline.progress import Progress
from fairness_pipeline.statistics.change import Change, change_of_difference
from fairness_pipeline.statistics.comparison import Comparison, compare_counts, compare_rates
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.yaml_files import Positive, Specification


class SignificanceSettings(Specification):
    """How differences are judged."""

    alpha: Share = 0.05
    """Level of the tests."""
    margins: dict[str, Margin] = {"default": Margin(relative=0.1)}
    """The largest difference that does not matter, by measure; `default` for those it does not name."""
    permutations: Positive = 1000
    """Draws of the permutation test of diversity."""
    jackknife_blocks: Annotated[int, pydantic.Field(ge=2)] = 50
    """Blocks of the jackknife interval of diversity."""

    @pydantic.field_validator("margins")
    @classmethod
    def _has_default(cls, margins: dict[str, Margin]) -> dict[str, Margin]:
        if "default" not in margins:
            raise ValueError("expected a margin under 'default'")
        return margins

    def margin(self, measure: str) -> Margin:
        """The margin of one measure."""
        return self.margins.get(measure, self.margins["default"])


class Outcome(NamedTuple):
    """What a measure says of a response: a row of the significance table.

    `column` of its table holds it, yes or no, or a number; an overview shows only what is `glanced` at. `sentence` says
    what was found in words: `more` and `less` are the groups, `high` and `low` their values.
    """

    label: str
    column: str
    sentence: str
    glanced: bool = True


Sides = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Measure:
    """A measure that scores each response by itself.

    Args:
        table: Its name, and that of its table.
        description: For the UI.
        schema: Of the table: `pair_id`, `side`, and the scorer's columns.
        outcomes: What it says of a response, by the name of the row.
        scorer: Makes its scorer; None for one that is not made text by text.
        made_from: Everything that decides its table besides the responses, as JSON can hold it.
        checks: Look at its table before it takes effect.
    """

    table: str
    description: str
    schema: pa.Schema
    outcomes: Mapping[str, Outcome]
    scorer: Callable[[MeasureSettings, Dimension], Scorer] | None
    made_from: Callable[[MeasureSettings, Dimension], dict[str, Any]]
    checks: tuple[Check, ...] = field(default=())

    def names(self, dimension: Dimension) -> list[str]:
        """The rows of the significance table that follow from it in a dimension."""
        return list(self.outcomes)

    def of_texts(self, scored: pa.Table) -> dict[str, np.ndarray]:
        """What the scorer's columns say of each text, by row name, as numbers."""
        columns = {name: scored[outcome.column] for name, outcome in self.outcomes.items()}
        return {name: column.to_numpy(zero_copy_only=False).astype(float) for name, column in columns.items()}

    def measure(
        self,
        responses: pa.Table,
        settings: MeasureSettings,
        dimension: Dimension,
        folder: Path | None = None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Its table of some responses; each distinct one is scored once.

        Args:
            responses: Columns `pair_id`, `side`, `response`.
            settings: Classifiers and thresholds.
            dimension: Whose lists are looked for.
            folder: Keeps what is scored until all is.
            progress: Told how many distinct responses are scored.
        """
        assert self.scorer is not None
        return self.shaped(score(responses, self.scorer(settings, dimension), folder, progress))

    def shaped(self, scored: pa.Table) -> pa.Table:
        """The table from `pair_id`, `side` and the scorer's columns."""
        return scored

    def values(self, table: pa.Table) -> dict[str, Sides]:
        """What its table says on side a and side b, in the order of the pairs, by row name."""
        return {name: sides(table, outcome.column) for name, outcome in self.outcomes.items()}

    def compare(
        self, table: pa.Table, responses: pa.Table, settings: SignificanceSettings, seed: int
    ) -> list[Comparison]:
        """Side a against side b in every row that follows from it."""
        rows = []
        for name, (a, b) in self.values(table).items():
            compare = compare_rates if a.dtype == bool else compare_counts
            rows.append(compare(name, a, b, settings.margin(name), settings.alpha))
        return rows

    def changes(
        self, tables: tuple[pa.Table, pa.Table], responses: tuple[pa.Table, pa.Table], settings: SignificanceSettings
    ) -> dict[str, Change]:
        """How the gap of each row changed from the first model's table to the second's, on the same pairs."""
        before, after = map(self.values, tables)
        return {
            name: change_of_difference(*(np.subtract(*found[name], dtype=float) for found in (before, after)))
            for name in before
        }


def score(
    responses: pa.Table, scorer: Scorer, folder: Path | None = None, progress: Progress | None = None
) -> pa.Table:
    """`pair_id` and `side` of every response, with its scores; each distinct one is scored once.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        scorer: Its columns are added.
        folder: Keeps what is scored until all is.
        progress: Told how many distinct responses are scored.
    """
    scores = each_distinct(responses["response"], scorer, folder=folder, progress=progress)
    columns = {name: scores[name] for name in scores.column_names}
    return pa.table({"pair_id": responses["pair_id"], "side": responses["side"], **columns})


def sides(table: pa.Table, column: str) -> Sides:
    """The column's values on side a and side b, both in the order of the pairs."""
    ordered = table.sort_by("pair_id")
    side = ordered["side"]
    a, b = (ordered.filter(pc.equal(side, name))[column].to_numpy(zero_copy_only=False) for name in ("a", "b"))
    return a, b
