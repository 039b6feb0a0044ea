"""The interface of measures of responses: a table, and the comparisons of the two sides that follow from it.

A new measure is one file with a `MEASURE` and one entry in `registry.py`. Assets, significance, debiasing effects,
reports and the gate follow from these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pydantic

from fairness_pipeline.foundation.checks import Check
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.recent import Recent, content_key
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.yaml_files import Positive, Share, Specification
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS
from fairness_pipeline.lexicons.dimensions import Dimension, MaskedWords
from fairness_pipeline.lexicons.masking import masked
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.statistics.change import Change, change_of_difference
from fairness_pipeline.statistics.comparison import Clusterings, Comparison, compare_counts, compare_rates
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.resampling import SideResponses
from fairness_pipeline.workspace.distinct import Scorer, each_distinct

MARGINS = {
    "rates": Margin(cohens_h=0.05),
    "counts": Margin(standard_deviations=0.05),
    "diversity": Margin(relative=0.05),
    "similarity": Margin(absolute=5.0),
}
"""The default margins of every kind of measure."""
_DEFINED = {
    "rates": ("cohens_h", "relative", "absolute"),
    "counts": ("standard_deviations", "relative", "absolute"),
    "diversity": ("relative", "absolute"),
    "similarity": ("absolute", "standard_deviations", "relative"),
}


class SignificanceSettings(Specification):
    """How differences are judged."""

    alpha: Share = 0.05
    """Level of the tests."""
    margins: dict[str, Margin] = MARGINS
    """The largest difference that does not matter, by measure or by kind: `rates`, `counts`, `diversity`,
    `similarity`."""
    diversity: Literal["equal_length", "as_answered"] = "equal_length"
    """How the answers of both sides are compared in diversity: each pair's longer answer cut to the length of the
    shorter one, or as they are, as in the papers. Shorter answers repeat fewer words, and so count as more varied."""
    permutations: Positive = 1000
    """Number of draws of the permutation test of diversity."""
    jackknife_blocks: Annotated[int, pydantic.Field(ge=2)] = 50
    """Number of blocks of the jackknife interval of diversity."""

    def margin(self, measure: str, kind: str) -> Margin:
        """The margin of one measure, whose kind is a key of `MARGINS`.

        Raises:
            FairnessError: the margin is not defined for such a measure.
        """
        name = measure if measure in self.margins else kind
        margin = self.margins.get(name, MARGINS[kind])
        if margin.kind not in _DEFINED[kind]:
            raise FairnessError(
                f"margins.{name}: '{margin.kind}' is not defined for '{measure}'; expected one of "
                f"{', '.join(_DEFINED[kind])}"
            )
        return margin


class Outcome(NamedTuple):
    """One outcome of a measure: a row of the significance table.

    `column` of the measure's table holds it, as yes or no or as a number. `sentence` states the finding in words:
    `more` and `less` are the groups, `high` and `low` their values. A yes may come from a threshold on the column
    `score` times `sign`. An outcome that is `part` of another outcome has no verdict of its own in an overview or a
    gate, and does not belong to the other's family of tests. If an outcome is `harmful`, a yes is bad for whoever gets
    such a response.
    """

    label: str
    column: str
    sentence: str
    part: bool = False
    harmful: bool = False
    score: str | None = None
    sign: int = 1


MASKED = "_masked"
"""The suffix of a measure's neutral reading, in the names of its rows and of its table's columns."""

Sides = tuple[np.ndarray, np.ndarray]
Readings = tuple[SideResponses, SideResponses]
"""The responses as they are, and in the neutral reading of diversity."""

SIDES = schema(
    **fields(CONTEXT_PAIRS, "pair_id"),
    **fields(CONTEXTS, "side"),
)
"""The columns with which a table of single responses starts."""


def both_readings(**columns: tuple[pa.DataType, str]) -> dict[str, tuple[pa.DataType, str]]:
    """A scorer's columns for `schema`, and each again for the responses with the groups' words masked."""
    masked = {
        name + MASKED: (kind, f"with the groups' words masked in the response: {text}")
        for name, (kind, text) in columns.items()
    }
    return {**columns, **masked}


R = TypeVar("R")


def deciding(rows: Mapping[str, R], name: str) -> R:
    """The row on which a measure's verdict rests: its neutral reading, or the row itself if it has none.

    Args:
        rows: The rows of a significance table, by name.
        name: The name of the measure.
    """
    return rows.get(name + MASKED, rows[name])


@dataclass(frozen=True)
class Scoring:
    """Everything that a measure's table is made from besides the responses.

    `scorer` is a frozen dataclass, whose fields are all that it depends on (None for a measure of all responses
    together). `masked` are the words of the neutral reading, `versions` the versions of the libraries, and `version` is
    the version of the measure's code.
    """

    version: str
    scorer: Scorer | None
    masked: MaskedWords | None
    versions: Mapping[str, str]


Scorings = Mapping[str, Scoring]
"""Scorings by the name of the measure's table."""


@dataclass(frozen=True)
class Measure:
    """A measure that scores each response by itself.

    Args:
        table: The name of the measure and of its table.
        description: For the UI.
        schema: The schema of the table: `SIDES`, then the scorer's columns. With `both_readings`, the reading with the
            groups' words masked decides a verdict; otherwise the unmasked responses do.
        outcomes: The outcomes for each response, by the name of the row.
        scorer: Makes the scorer, a frozen dataclass. None for a measure that does not score text by text.
        version: Raised whenever the measure's code gives another table.
        libraries: The libraries whose versions decide the scores.
        checks: Checks of the table before it takes effect.
        thresholds: Other thresholds at which the responses are judged again.
        others: Other scorers with which the responses are judged again, by name.
        marks_text: Whether a text that shows an outcome counts as biased by itself, for methods that choose texts.
        on_request: Whether it is taken only if the settings name it.
    """

    table: str
    description: str
    schema: pa.Schema
    outcomes: Mapping[str, Outcome]
    scorer: Callable[[MeasureSettings, Dimension], Scorer] | None
    version: str = "2"
    libraries: tuple[str, ...] = ()
    checks: tuple[Check, ...] = field(default=())
    thresholds: tuple[float, ...] = ()
    others: Callable[[MeasureSettings], Mapping[str, Scorer]] = field(default=lambda settings: {})
    marks_text: bool = True
    on_request: bool = False

    neutral_reading: ClassVar[str] = "the groups' own words masked"
    """The description of the neutral reading in reports."""

    @property
    def has_neutral_reading(self) -> bool:
        """Whether the measure is also taken with the groups' words masked."""
        return any(name.endswith(MASKED) for name in self.schema.names)

    def names(self, dimension: Dimension) -> list[str]:
        """The rows of the significance table that the measure has in a dimension."""
        return list(self.outcomes)

    def of_texts(self, scored: pa.Table) -> dict[str, np.ndarray]:
        """The values of the scorer's columns for each text as numbers, by row name."""
        columns = {name: scored[outcome.column] for name, outcome in self.outcomes.items()}
        return {name: column.to_numpy(zero_copy_only=False).astype(float) for name, column in columns.items()}

    def scoring(self, settings: MeasureSettings, dimension: Dimension) -> Scoring:
        """What the measure's table is made from under a profile's settings, in a dimension."""
        masked = dimension.masked if self.has_neutral_reading else None
        scorer = self.scorer(settings, dimension) if self.scorer else None
        return Scoring(self.version, scorer, masked, library_versions(*self.libraries))

    def measure(
        self, responses: pa.Table, scoring: Scoring, folder: Path | None = None, progress: Progress | None = None
    ) -> pa.Table:
        """The table for some responses. Each distinct response is scored once.

        Args:
            responses: Columns `pair_id`, `side`, `response`.
            scoring: Classifiers, thresholds and lists.
            folder: Keeps the scores until all responses are scored.
            progress: Receives the number of distinct responses scored.
        """
        assert scoring.scorer is not None
        return self.shaped(score(responses, scoring.scorer, scoring.masked, folder, progress))

    def shaped(self, scored: pa.Table) -> pa.Table:
        """The table from `pair_id`, `side` and the scorer's columns."""
        return scored

    def at_threshold(self, table: pa.Table, threshold: float) -> dict[str, Sides]:
        """The values of both readings at another threshold, if the measure has one."""
        values = {}
        for name, outcome in self.outcomes.items():
            for suffix in self._suffixes if outcome.score is not None else ():
                a, b = sides(table, f"{outcome.score}{suffix}")
                values[name + suffix] = outcome.sign * a >= threshold, outcome.sign * b >= threshold
        return values

    def kind(self, name: str) -> str:
        """The kind of a row: a key of `MARGINS`."""
        column = self.outcomes[name.removesuffix(MASKED)].column
        return "rates" if self.schema.field(column).type == pa.bool_() else "counts"

    def values(self, table: pa.Table, suffix: str = "") -> dict[str, Sides]:
        """The values on side a and side b, in the order of the pairs, by row name.

        Args:
            table: The measure's table.
            suffix: `MASKED` for the neutral reading, in which every listed word of a response is masked.
        """
        return {name: sides(table, outcome.column + suffix) for name, outcome in self.outcomes.items()}

    def readings(self, table: pa.Table) -> dict[str, Sides]:
        """`values`, and those of the neutral reading if the measure has one, with `MASKED` appended to their names."""
        return {name + suffix: both for suffix in self._suffixes for name, both in self.values(table, suffix).items()}

    @property
    def _suffixes(self) -> tuple[str, ...]:
        return ("", MASKED) if self.has_neutral_reading else ("",)

    def compare(
        self,
        table: pa.Table,
        readings: Callable[[], Readings],
        settings: SignificanceSettings,
        *,
        seed: int,
        clusters: Clusterings = (),
    ) -> list[Comparison]:
        """Compares side a with side b in every row of the measure, and in the neutral reading of each row.

        Args:
            table: The measure's table.
            readings: Gives the words of the responses and of their neutral reading, for measures of all responses
                together.
            settings: Level, margins, permutations, blocks.
            seed: The seed of the permutations.
            clusters: How pairs move together.
        """
        return self.compare_values(self.readings(table), settings, clusters=clusters)

    def compare_values(
        self,
        values: Mapping[str, Sides],
        settings: SignificanceSettings,
        *,
        ranks: bool = True,
        clusters: Clusterings = (),
    ) -> list[Comparison]:
        """One row for each of the `values`. Without `ranks` Wilcoxon's test is left out, which sorts them."""
        rows = []
        for name, (a, b) in values.items():
            margin = settings.margin(name.removesuffix(MASKED), self.kind(name))
            if self.kind(name) == "rates":
                rows.append(compare_rates(name, a, b, margin, settings.alpha, clusters=clusters))
            else:
                rows.append(compare_counts(name, a, b, margin, settings.alpha, ranks=ranks, clusters=clusters))
        return rows

    def changes(
        self,
        tables: tuple[pa.Table, pa.Table],
        neutral: tuple[pa.Table, pa.Table],
        settings: SignificanceSettings,
        clusters: Clusterings = (),
    ) -> dict[str, Change]:
        """The change of each row's gap from the first model's table to the second's, on the same pairs, in the reading
        on which its verdict rests.

        Args:
            tables: The measure's tables of both models.
            neutral: Their responses with the groups' words masked.
            settings: Blocks.
            clusters: How pairs move together.
        """
        before, after = (self.values(table, self._suffixes[-1]) for table in tables)
        return {
            name: change_of_difference(
                np.subtract(*before[name], dtype=float), np.subtract(*after[name], dtype=float), clusters=clusters
            )
            for name in before
        }


def score(
    responses: pa.Table,
    scorer: Scorer,
    words: MaskedWords | None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """`pair_id` and `side` of every response, with the scores of its text and of its masked text.

    Each distinct text is scored once.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        scorer: Its columns are added, and again with `MASKED` appended to their names.
        words: The words that are masked. None leaves out the scores of masked texts.
        folder: Keeps the scores until all texts are scored.
        progress: Receives the number of distinct texts scored.
    """
    texts = responses["response"]
    neutral = _neutral(texts, words).chunks if words else []
    both = pa.chunked_array([*texts.chunks, *neutral], pa.string())
    scores = each_distinct(both, scorer, folder=folder, progress=progress)
    count = len(texts)
    columns = {name: scores[name].slice(0, count) for name in scores.column_names}
    if words:
        columns |= {name + MASKED: scores[name].slice(count) for name in scores.column_names}
    return pa.table({"pair_id": responses["pair_id"], "side": responses["side"], **columns})


def neutral_reading(responses: pa.Table, words: MaskedWords) -> pa.Table:
    """The responses with the groups' words masked. The last result is cached, because each measure of a partition masks
    the same responses.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        words: The words that are masked.
    """
    position = responses.schema.get_field_index("response")
    return responses.set_column(position, "response", _neutral(responses["response"], words))


def _neutral(responses: pa.ChunkedArray, words: MaskedWords) -> pa.ChunkedArray:
    return _neutral_texts.get((content_key(responses), words), lambda: masked(responses, words))


_neutral_texts = Recent[pa.ChunkedArray](1)


def sides(table: pa.Table, column: str) -> Sides:
    """The column's values on side a and side b, both in the order of the pairs.

    Raises:
        FairnessError: the sides do not have the same pairs, or a value is not a number.
    """
    ordered = table.select(["pair_id", "side", column]).sort_by("pair_id")
    side = ordered["side"]
    of_a, of_b = (ordered.filter(pc.equal(side, name)) for name in ("a", "b"))
    if not of_a["pair_id"].equals(of_b["pair_id"]):
        raise FairnessError(f"{column}: expected both sides of every pair, found {of_a.num_rows} a, {of_b.num_rows} b")
    a, b = (part[column].to_numpy(zero_copy_only=False) for part in (of_a, of_b))
    if not (np.isfinite(a.astype(float)).all() and np.isfinite(b.astype(float)).all()):
        raise FairnessError(f"{column}: expected numbers, found NaN or an infinite one")
    return a, b
