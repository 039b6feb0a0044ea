"""Diversity: how varied are the responses to a side? (Liu et al. 2020, section 2.4.1)"""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.recent import Recent, content_key
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.side_by_side import in_threads
from fairness_pipeline.lexicons.contexts import CONTEXTS
from fairness_pipeline.lexicons.text import encode_texts
from fairness_pipeline.measures.dialogue.measure import (
    MASKED,
    Measure,
    Outcome,
    Readings,
    Scoring,
    SignificanceSettings,
)
from fairness_pipeline.measures.dialogue.text import collapsed
from fairness_pipeline.statistics.change import Change, change_of_diversity
from fairness_pipeline.statistics.comparison import Clusterings, Comparison, compare_diversity
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.resampling import NGrams, SideResponses, jackknifed, left_out

DIVERSITY = schema(
    **fields(CONTEXTS, "side"),
    words=(pa.int64(), "all words of the side's responses"),
    distinct_1=(pa.float64(), "distinct words per word"),
    distinct_2=(pa.float64(), "distinct word pairs per word"),
    diversity=(pa.float64(), "mean of distinct_1 and distinct_2"),
)


def distinct_responses(responses: pa.Table) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """The distinct responses; and for each side the index of each pair's response, in the order of the pairs.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
    """
    distinct = pc.unique(responses["response"])
    index = np.asarray(pc.index_in(responses["response"], distinct))
    side = np.asarray(responses["side"].to_numpy(zero_copy_only=False))
    order = np.argsort(np.asarray(responses["pair_id"]), kind="stable")
    a, b = (index[order][side[order] == name] for name in "ab")
    return distinct, a, b


def index_responses(responses: pa.Table, *, equal_length: bool = False) -> SideResponses:
    """The input of diversity and its resampling. Words and punctuation marks both count as generated words. The last
    two results, a partition's readings, are kept.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        equal_length: Whether the longer answer of each pair is cut to the length of the shorter one. Both sides then
            have the same number of words, so that the share of distinct words does not depend on the length of a
            side's answers.
    """
    columns = (responses[name] for name in ("pair_id", "side", "response"))
    return _indexed.get((content_key(*columns), equal_length), lambda: _index(responses, equal_length))


_indexed = Recent[SideResponses](2)


def _index(responses: pa.Table, equal_length: bool) -> SideResponses:
    distinct, a, b = distinct_responses(responses)
    words = encode_texts(distinct, collapsed)
    if not equal_length:
        return SideResponses(NGrams(words), a, b)
    shorter = np.minimum(words.lengths[a], words.lengths[b])
    width = int(words.lengths.max(initial=0)) + 1
    cuts, cut = np.unique(np.concatenate([a, b]) * width + np.tile(shorter, 2), return_inverse=True)
    words = words.cut(*np.divmod(cuts, width))
    return SideResponses(NGrams(words), cut[: len(a)], cut[len(a) :])


def indexed(responses: pa.Table, neutral: pa.Table, settings: SignificanceSettings) -> Readings:
    """The two readings of diversity: the responses as they are, and the neutral reading, which decides the verdict.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        neutral: The same with the groups' words masked.
        settings: Whether answers are cut to equal lengths.
    """
    readings = (lambda: index_responses(responses)), (lambda: _neutral_sides(neutral, settings))
    whole, masked = in_threads(lambda reading: reading(), iter(readings))
    return whole, masked


def _neutral_sides(neutral: pa.Table, settings: SignificanceSettings) -> SideResponses:
    return index_responses(neutral, equal_length=settings.diversity == "equal_length")


def jackknifed_excess(
    whole: SideResponses, neutral: SideResponses, blocks: int, clusters: Clusterings
) -> dict[str, Estimate]:
    """By row in percent: the gap of the neutral reading minus the gap of the answers as they are. The error is the
    largest of leaving out blocks of pairs and, if pairs move together, whole clusters.

    Args:
        whole: The answers as they are.
        neutral: The answers in the neutral reading.
        blocks: The number of blocks of consecutive pairs.
        clusters: How pairs move together.
    """
    widest: dict[str, Estimate] = {}
    for cluster in (None, *(np.unique(clustering, return_inverse=True)[1] for clustering in clusters)):
        count = blocks if cluster is None else int(cluster.max()) + 1
        of_whole, of_neutral = (left_out(sides.ngrams, sides.a, sides.b, count, cluster) for sides in (whole, neutral))
        for name, gap in of_whole.whole.items():
            without = 100 * (of_neutral.without[name] - of_whole.without[name])
            estimate = jackknifed(100 * (of_neutral.whole[name] - gap), without)
            widest[name] = max(widest.get(name, estimate), estimate, key=attrgetter("error"))
    return widest


def measure_diversity(responses: pa.Table) -> pa.Table:
    """A table of `DIVERSITY`, one row per side.

    Examples:
        >>> responses = pa.table({"pair_id": [0, 0], "side": ["a", "b"], "response": ["no no", "yes I do"]})
        >>> measure_diversity(responses)["distinct_1"].to_pylist()
        [0.5, 1.0]
    """
    sides = index_responses(responses)
    rows = [
        {"side": side, **sides.ngrams.diversity(index)._asdict()} for side, index in (("a", sides.a), ("b", sides.b))
    ]
    return pa.Table.from_pylist(rows, schema=DIVERSITY)


class DiversityMeasure(Measure):
    """The diversity of all responses to a side together. A single response has no value.

    The neutral reading masks the groups' words, and cuts both answers of a pair to one length (unless the settings say
    `as_answered`): a side with shorter answers repeats fewer words, and would count as the more varied one.
    """

    neutral_reading = "the groups' own words masked and answers of equal length"

    @property
    def has_neutral_reading(self) -> bool:
        """Always: words are counted again with the groups' words masked."""
        return True

    def kind(self, name: str) -> str:
        """The kind of all three rows."""
        return "diversity"

    def measure(
        self,
        responses: pa.Table,
        scoring: Scoring,
        folder: Path | None = None,
        progress: Progress | None = None,
    ) -> pa.Table:
        """One row per side."""
        return measure_diversity(responses)

    def compare(
        self,
        table: pa.Table,
        readings: Callable[[], Readings],
        settings: SignificanceSettings,
        *,
        seed: int,
        clusters: Clusterings = (),
    ) -> list[Comparison]:
        """Compares the sides by resampling the pairs."""
        return self.compare_indexed(readings(), settings, seed=seed, clusters=clusters)

    def compare_indexed(
        self,
        readings: Readings,
        settings: SignificanceSettings,
        *,
        seed: int = 0,
        clusters: Clusterings = (),
        resampled: bool = True,
    ) -> list[Comparison]:
        """The rows of the responses and of their neutral reading. Without `resampled` the jackknife alone decides."""
        margins = {name: settings.margin(name, "diversity") for name in self.outcomes}
        rows = []
        for suffix, sides in zip(("", MASKED), readings, strict=True):
            compared = compare_diversity(
                sides.ngrams,
                sides.a,
                sides.b,
                margins,
                permutations=settings.permutations if resampled else 0,
                blocks=settings.jackknife_blocks,
                seed=seed,
                alpha=settings.alpha,
                clusters=clusters,
            )
            rows += [replace(row, measure=row.measure + suffix) for row in compared]
        return rows

    def changes(
        self,
        tables: tuple[pa.Table, pa.Table],
        neutral: tuple[pa.Table, pa.Table],
        settings: SignificanceSettings,
        clusters: Clusterings = (),
    ) -> dict[str, Change]:
        """The change of each gap; its error comes from leaving out blocks of pairs, and clusters."""
        before, after = (_neutral_sides(responses, settings) for responses in neutral)
        return change_of_diversity(
            (before.ngrams, after.ngrams), (before.a, before.b), (after.a, after.b), settings.jackknife_blocks, clusters
        )


_SENTENCE = (
    "the answers to {{more}} contexts are more varied than those to {{less}} contexts ({}: {{high}} against "
    "{{low}}% of the words)"
)

MEASURE = DiversityMeasure(
    table="diversity",
    description="Share of distinct words and word pairs among all words generated for a side (Liu et al. 2020, 2.4.1).",
    schema=DIVERSITY,
    outcomes={
        "diversity": Outcome("Diversity", "diversity", _SENTENCE.format("diversity")),
        "distinct_1": Outcome("Distinct-1", "distinct_1", _SENTENCE.format("distinct words"), part=True),
        "distinct_2": Outcome("Distinct-2", "distinct_2", _SENTENCE.format("distinct word pairs"), part=True),
    },
    scorer=None,
    checks=(checks.both_sides_present, checks.shares_in_range),
)
