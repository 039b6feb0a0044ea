"""Judges the same responses under other choices, to show whether a verdict holds."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.foundation.side_by_side import in_threads
from fairness_pipeline.lexicons.dimensions import MaskedWords
from fairness_pipeline.measures.dialogue.breakdown import Words
from fairness_pipeline.measures.dialogue.diversity import DiversityMeasure
from fairness_pipeline.measures.dialogue.judgement import Controls, judged
from fairness_pipeline.measures.dialogue.measure import MASKED, Measure, Readings, Sides, SignificanceSettings, score
from fairness_pipeline.measures.dialogue.registry import is_part
from fairness_pipeline.statistics.comparison import COMPARISON, Clusterings, Comparison
from fairness_pipeline.workspace.distinct import Scorer

VARIATIONS = schema(
    **fields(COMPARISON, "measure"),
    kind=(pa.string(), "of variation: base, words, half, threshold, classifier, without, carriers, source"),
    variation=(pa.string(), "what is otherwise"),
    **fields(COMPARISON, "n", "value_a", "value_b", "difference", "p_holm", "verdict"),
)
"""One row per measure and variation.

`kind`: `base` (nothing changed), `words` (a tenth of the listed pairs left out), `half` (half of the contexts),
`threshold`, `classifier`. Three further kinds are not choices of an auditor but questions: `without` (pairs of one kind
left out), `carriers` (without the pairs whose words carry the measure's gap; `variation` names the words) and `source`
(only contexts that named one group before the exchange; `variation` names the group).
"""
CHOICES = ("words", "half", "threshold", "classifier")
"""The kinds that count in the columns `holds` and `variations` of the significance table."""
CARRIERS = "carriers"
SOURCE = "source"

_FOLDS, _HALVES = 10, 5


class Variation(NamedTuple):
    """One variation: the pairs that are kept (all if None), and the new values of measures.

    A variation of a single measure names it in `only`.
    """

    kind: str
    name: str
    kept: np.ndarray | None = None
    values: Mapping[str, Sides] | None = None
    only: str | None = None


def subsets(words: Words, count: int, seed: int) -> Iterator[Variation]:
    """Leaves out each tenth of the word list in turn, and draws halves of the contexts."""
    random = np.random.default_rng(seed)
    folds = min(_FOLDS, len(words.names))
    fold_of = random.permutation(len(words.names)) % max(folds, 1)
    for fold in range(folds if folds > 1 else 0):
        yield Variation("words", f"without tenth {fold + 1}", words.without(fold_of == fold, count))
    for split in range(_HALVES):
        half = random.permutation(count) < count / 2
        yield Variation("half", f"half {2 * split + 1}", half)
        yield Variation("half", f"half {2 * split + 2}", ~half)


def other_scores(
    measures: Sequence[Measure],
    tables: Mapping[str, pa.Table],
    responses: pa.Table,
    others: Mapping[str, Mapping[str, Scorer]],
    words: MaskedWords,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Variation]:
    """The same responses at other thresholds, and scored by other classifiers.

    Args:
        measures: Measures that score responses one by one.
        tables: The table of each measure, by name.
        responses: Columns `pair_id`, `side`, `response`.
        others: The other scorers of a measure by name, by the name of its table.
        words: The words that are masked in the neutral reading.
        folder: Keeps the scores until all responses are scored.
        progress: Receives the number of distinct responses scored.
    """
    for measure in measures:
        for threshold in measure.thresholds:
            values = measure.at_threshold(tables[measure.table], threshold)
            yield Variation("threshold", f"{measure.table} at {threshold:g}", values=values)
        for number, (name, scorer) in enumerate(others.get(measure.table, {}).items()):
            subfolder = folder / f"{measure.table}-{number}" if folder else None
            table = measure.shaped(score(responses, scorer, words, subfolder, progress))
            yield Variation("classifier", name, values=measure.readings(table))


def without(masks: Mapping[str, np.ndarray]) -> Iterator[Variation]:
    """Leaves out the pairs of each kind, if there are any. `masks` marks the pairs, by the name of the kind."""
    for name, mask in masks.items():
        if mask.any() and not mask.all():
            yield Variation("without", name, ~mask)


def by_source(source: np.ndarray, groups: tuple[str, str]) -> Iterator[Variation]:
    """Only the pairs whose original context named one group, for each of the two.

    Args:
        source: (pairs,) the side that the original named.
        groups: The names of the groups.
    """
    for side, group in zip("ab", groups, strict=True):
        kept = source == side
        if kept.any() and not kept.all():
            yield Variation(SOURCE, group, kept)


def without_carriers(words: Words, count: int, carriers: Mapping[str, list[str]]) -> Iterator[Variation]:
    """For each measure: the pairs without the words that carry its gap.

    Args:
        words: The words of each pair.
        count: The number of pairs.
        carriers: The words that carry a measure's gap, spelled as in `words.names`, by row name.
    """
    for measure, names in carriers.items():
        kept = words.without(np.isin(words.names, names), count)
        if names and kept.any():
            yield Variation(CARRIERS, "; ".join(names), kept, only=measure)


class Judged(NamedTuple):
    """The input of the repeated judgement: both readings of every measure.

    `values` are each measure's values on both sides of every pair, by row name. `diversity` is the measure of all
    responses together, with its input. `clusters` says how pairs move together.
    """

    values: Sequence[tuple[Measure, Mapping[str, Sides]]]
    diversity: tuple[DiversityMeasure, Readings]
    clusters: Clusterings = ()


def judged_again(inputs: Judged, variations: Sequence[Variation], settings: SignificanceSettings) -> pa.Table:
    """A table of `VARIATIONS`.

    Diversity is judged by the jackknife alone. Permutations would take longer than all other measures together.
    """
    base = _judge(inputs, Variation("base", "as it is"), settings, {})
    before = {row.measure: row for row in base}
    rows = [_row(Variation("base", "as it is"), row) for row in base if not is_part(row.measure)]
    enough = [each for each in variations if each.kept is None or each.kept.sum() >= 2]
    again = in_threads(lambda variation: _judge(inputs, variation, settings, before), iter(enough))
    for variation, compared in zip(enough, again, strict=True):
        touched = {variation.only} if variation.only else variation.values
        rows += [
            _row(variation, row)
            for row in compared
            if not is_part(row.measure) and (touched is None or row.measure in touched)
        ]
    return pa.Table.from_pylist(rows, schema=VARIATIONS)


def _judge(
    inputs: Judged, variation: Variation, settings: SignificanceSettings, before: Mapping[str, Comparison]
) -> list[Comparison]:
    """Every measure under one variation. Measures that the variation does not touch keep their earlier results."""
    kept, changed = variation.kept, variation.values
    clusters = inputs.clusters if kept is None else [each[kept] for each in inputs.clusters]
    rows: list[Comparison] = []
    values: dict[str, Sides] = {}
    for measure, both_readings in inputs.values:
        for name, sides in both_readings.items():
            a, b = sides if changed is None else changed.get(name, sides)
            values[name] = (a, b) if kept is None else (a[kept], b[kept])
            if changed is not None and name not in changed:
                rows.append(before[name])
            else:
                rows += measure.compare_values({name: values[name]}, settings, ranks=False, clusters=clusters)
    measure, readings = inputs.diversity
    parts = readings if kept is None else (readings[0].take(kept), readings[1].take(kept))
    if changed is None:
        rows += measure.compare_indexed(parts, settings, clusters=clusters, resampled=False)
    else:
        rows += [before[name + suffix] for suffix in ("", MASKED) for name in measure.outcomes]
    controls = Controls(values, lambda: parts, settings.jackknife_blocks, clusters)
    return judged(rows, settings.alpha, controls)


def _row(variation: Variation, row: Comparison) -> dict[str, object]:
    shown = {name: getattr(row, name) for name in VARIATIONS.names if name not in ("kind", "variation")}
    return {"kind": variation.kind, "variation": variation.name, **shown}
