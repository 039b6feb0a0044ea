"""The significance table of one dimension and model: every measure of its responses, compared between the sides.

Each verdict comes with the checks that could overturn it: the effect of the groups' words, the words that carry the
gap, the number of variations in which it holds, and the number of answers that it rests on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.schemas import optional, schema
from fairness_pipeline.lexicons.dimensions import MaskedWords
from fairness_pipeline.lexicons.no_effect import REWORDING, SAME_GROUP
from fairness_pipeline.measures.dialogue import distinguishable
from fairness_pipeline.measures.dialogue.breakdown import Words
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE, Distinguished
from fairness_pipeline.measures.dialogue.diversity import distinct_responses, indexed
from fairness_pipeline.measures.dialogue.judgement import Controls, judged
from fairness_pipeline.measures.dialogue.measure import (
    MASKED,
    Readings,
    SignificanceSettings,
    deciding,
    neutral_reading,
)
from fairness_pipeline.measures.dialogue.registry import is_gap, is_part, measures, neutral_reading_of
from fairness_pipeline.measures.dialogue.spread import hides_opposite_gaps, in_unit, with_spread
from fairness_pipeline.measures.dialogue.variations import CARRIERS, CHOICES, SOURCE
from fairness_pipeline.statistics.comparison import COMPARISON, Clusterings, Comparison, Published, beside
from fairness_pipeline.statistics.controls import EXPLAINED, TOO_SMALL, control_doubts, p_as_large
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.intervals import Estimate, finite, of_interval, quantile
from fairness_pipeline.statistics.spread import Spread
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.statistics.verdicts import (
    DIFFERS,
    DIFFERS_BY_LENGTH,
    FAIR_ON_AVERAGE,
    HERE_ONLY,
    Doubt,
    joined_notes,
)
from fairness_pipeline.workspace.lake import Row

DIALOGUE_SIGNIFICANCE = schema(
    COMPARISON,
    content_a=optional(pa.float64(), "the value of side a with the groups' words masked, on which the verdict rests"),
    content_b=optional(pa.float64(), "the value of side b with the groups' words masked"),
    content_difference=optional(pa.float64(), "their difference"),
    content_ci_low=optional(pa.float64(), "lower end of its 95% interval"),
    content_ci_high=optional(pa.float64(), "upper end of its 95% interval"),
    masking_ci_low=optional(pa.float64(), "lower end of the 95% interval of how much the mask moves the difference"),
    masking_ci_high=optional(pa.float64(), "upper end of the 95% interval of how much the mask moves the difference"),
    p_as_answered=optional(pa.float64(), "adjusted p of the answers as they are"),
    parrot_difference=optional(pa.float64(), "what answers that only repeat the context would get"),
    instrument_difference=optional(
        pa.float64(), "what the scorer makes of human texts with only the listed words swapped"
    ),
    instrument_p=optional(pa.float64(), "p of that difference"),
    exchanged=(pa.string(), "the commonest exchanged words"),
    hangs_on=optional(pa.string(), "the words that make the difference, where pairs show one and words do not"),
    carried_by=optional(pa.string(), "the words whose pairs make most of a biased measure's gap"),
    without_them=optional(pa.string(), "the verdict on the other pairs"),
    difference_without_them=optional(pa.float64(), "their difference"),
    holds=optional(pa.int64(), "in how many variations the verdict is the same"),
    variations=optional(pa.int64(), "how many there are: word lists, halves of the contexts, thresholds, classifiers"),
    same_group_difference=optional(pa.float64(), "how much another word of the same group moves the gap"),
    same_group_p=optional(pa.float64(), "p of the hypothesis that this is less than half of the difference"),
    rewording_difference=optional(pa.float64(), "how much another wording moves the gap"),
    rewording_p=optional(pa.float64(), "p of the hypothesis that this is less than half of the difference"),
    distinct_shown=optional(pa.int64(), "how many distinct responses show the measure"),
    commonest_shown=optional(pa.float64(), "share in percent of the most frequent of them"),
    told_by=optional(
        pa.string(), "the words by which answers are told apart, and the share of either side's with them"
    ),
    p_spread=optional(pa.float64(), "p of a gap that varies between sentences, threads or topics by chance alone"),
    spread=optional(pa.float64(), "the standard deviation of their gaps beyond chance, in `unit`"),
    spread_upper=optional(pa.float64(), "its upper 95% bound"),
    spread_over=optional(pa.string(), "what these are: sentence (into which persons are put), thread, or topic"),
    units=optional(pa.int64(), "how many of them were asked with two words or more; the spread rests on these"),
    units_a=optional(pa.int64(), "of these, how many have a larger value on side a"),
    units_b=optional(pa.int64(), "how many have one on side b"),
)
"""`COMPARISON`, and further columns that qualify each verdict, null if they are not defined. A verdict rests on the
neutral reading, in which the groups' words are masked; so do `content_*`, `p_holm` and `p_bh`."""


def compared(
    responses: pa.Table,
    tables: Mapping[str, pa.Table],
    *,
    settings: SignificanceSettings,
    seed: int,
    published: Mapping[str, Published],
    masked: MaskedWords,
    clusters: Clusterings = (),
    controls: Controls | None = None,
    distinguished: Distinguished | None = None,
    spreads: Mapping[str, Spread] = MappingProxyType({}),
) -> list[Comparison]:
    """Compares the sides: whether answers can be told apart; diversity, offence, sentiment and so on, one row per
    attribute list, each also with the groups' words masked.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        tables: The table of each measure, by name.
        settings: Level, margins, permutations, blocks.
        seed: The seed of the permutations.
        published: The paper's rows for this dimension and model, by measure.
        masked: The words that are masked.
        clusters: How pairs move together.
        controls: The result of `controls_of`; by default without a parrot.
        distinguished: The result of `distinguishable.distinguish`; without it the row is left out.
        spreads: The result of `spread.spreads`; without it no verdict is better than fair on average.
    """
    controls = controls or controls_of(responses, tables, settings, masked, clusters)
    rows = [
        row
        for measure in measures(tables)
        for row in measure.compare(tables[measure.table], controls.readings, settings, seed=seed, clusters=clusters)
    ]
    if distinguished:
        rows.insert(0, distinguishable.comparison(distinguished))
    judged_rows = with_spread(judged(rows, settings.alpha, controls), controls.values, spreads, settings.alpha)
    if distinguished:
        judged_rows = _with_any_difference(judged_rows, distinguished, settings.alpha)
    return beside(judged_rows, published)


def controls_of(
    responses: pa.Table,
    tables: Mapping[str, pa.Table],
    settings: SignificanceSettings,
    masked: MaskedWords,
    clusters: Clusterings = (),
    leaking: Mapping[str, Estimate] = MappingProxyType({}),
) -> Controls:
    """The controls that could overrule a difference between the sides: the masked reading, and a parrot's answers.

    Args:
        responses: Columns `pair_id`, `side`, `response`.
        tables: The table of each measure, by name.
        settings: Blocks of the jackknife.
        masked: The words that are masked.
        clusters: How pairs move together.
        leaking: The gap of a parrot's answers in the masked reading, by measure, if they have one.
    """
    single = [measure for measure in measures(tables) if measure.scorer]
    values = {name: both for each in single for name, both in each.readings(tables[each.table]).items()}

    @cache
    def readings() -> Readings:
        return indexed(responses, neutral_reading(responses, masked), settings)

    return Controls(values, readings, settings.jackknife_blocks, clusters, leaking)


def _with_any_difference(rows: list[Comparison], distinguished: Distinguished, alpha: float) -> list[Comparison]:
    """The rows with the verdict of the first. If the answers can be told apart, a fair row is fair on its measure
    only."""
    first = distinguishable.with_verdict(rows[0], distinguished, alpha)
    if first.verdict in (DIFFERS, DIFFERS_BY_LENGTH):
        rows = [
            replace(row, note=joined_notes(row.note, HERE_ONLY))
            if row.verdict in ("fair", FAIR_ON_AVERAGE) and not is_part(row.measure)
            else row
            for row in rows
        ]
    return [first, *rows[1:]]


def judge_responses(
    comparisons: Sequence[Comparison],
    responses: pa.Table,
    tables: Mapping[str, pa.Table],
    *,
    words: Words,
    varied: pa.Table,
    instrument: pa.Table,
    parrots: pa.Table,
    alpha: float,
    controls: Controls | None = None,
    beside: Sequence[Comparison] = (),
    without_effect: pa.Table | None = None,
    distinguished: Distinguished | None = None,
    spreads: Mapping[str, Spread] = MappingProxyType({}),
    unit: str | None = None,
) -> pa.Table:
    """A table of `DIALOGUE_SIGNIFICANCE`: each verdict with the columns that qualify it.

    Args:
        comparisons: The result of `compared`.
        responses: Columns `pair_id`, `side`, `response`.
        tables: The table of each measure, by name.
        words: The words that each pair swaps.
        varied: As `measures.dialogue.variations.VARIATIONS`.
        instrument: As `measures.dialogue.instrument.INSTRUMENT_CHECK`, for texts with swapped words.
        parrots: The same, with contexts as answers.
        alpha: The level.
        controls: As for `compared`.
        beside: Further rows, after the others: of `answer_changes.compare_changes` and `naming.compare_naming`.
        without_effect: As `answer_changes.NO_EFFECT_DIFFERENCES`.
        distinguished: As for `compared`.
        spreads: As for `compared`.
        unit: The unit that the spreads are taken over.
    """
    rows, by_measure = [asdict(row) for row in comparisons], {row.measure: row for row in comparisons}
    by_name = {row["measure"]: row for row in rows}
    whole = [row.measure for row in comparisons if is_gap(row.measure)]
    raw = _holm({row.measure: row.p_decides for row in comparisons if row.measure in whole})
    by_pairs = _holm({name: deciding(by_name, name)["p_paired"] for name in whole})
    swapped, repeated = ({row["measure"]: row for row in table.to_pylist()} for table in (instrument, parrots))
    variations: dict[str, list[Row]] = {}
    for other in varied.to_pylist():
        variations.setdefault(other["measure"], []).append(other)
    moved = {(row["change"], row["measure"]): row for row in without_effect.to_pylist()} if without_effect else {}
    shown = _shown(responses, tables)
    for row in rows:
        name = row["measure"]
        row |= {**shown.get(name, {}), "exchanged": words.most_frequent()}
        if name in swapped:
            row |= {"instrument_difference": swapped[name]["difference"], "instrument_p": swapped[name]["p_paired"]}
        if name in repeated:
            row["parrot_difference"] = repeated[name]["difference"]
        for change in (SAME_GROUP, REWORDING):
            if other := moved.get((change, name + MASKED if name + MASKED in by_name else name)):
                row |= {f"{change}_difference": other["difference"], f"{change}_p": _p_moved(other, row, by_name)}
        if spread := spreads.get(name):
            row |= {"p_spread": spread.p, "spread_over": unit, "units": spread.units}
            row |= {"units_a": spread.towards_a, "units_b": spread.towards_b}
            row |= {"spread": in_unit(row["unit"], spread.typical), "spread_upper": in_unit(row["unit"], spread.upper)}
        if name == DISTINGUISHABLE and distinguished:
            row |= {"told_by": distinguishable.describe_carriers(distinguished), "holds": 0, "variations": 0}
        elif not is_part(name):
            if neutral := by_name.get(name + MASKED):
                row |= {f"content_{side}": neutral[f"value_{side}"] for side in "ab"}
                row |= {f"content_{figure}": neutral[figure] for figure in ("difference", "ci_low", "ci_high")}
                if controls:
                    low, high = controls.excess(by_measure[name]).interval(0.95)
                    row |= {"masking_ci_low": finite(low), "masking_ci_high": finite(high)}
            row["p_as_answered"] = raw[name]
            row |= _held(row, variations.get(name, []))
            if reservation := _of_one_source(row, variations.get(name, []), alpha):
                row["note"] = joined_notes(row["note"], reservation)
            if row["verdict"] == "inconclusive" and by_pairs[name] < alpha and row["clusters"] is not None:
                row["hangs_on"] = _carriers(variations.get(name, []))
    for other in beside:
        rows.append({**asdict(other), "exchanged": words.most_frequent(), "holds": 0, "variations": 0})
    return pa.Table.from_pylist(rows, schema=DIALOGUE_SIGNIFICANCE)


def _p_moved(moved: Row, row: Row, by_name: Mapping[str, Row]) -> float:
    """The p of the hypothesis that a change without effect moves the gap by less than half of it, in either
    direction."""
    change = of_interval(moved["difference"], moved["ci_low"], moved["ci_high"])
    half = EXPLAINED * abs(deciding(by_name, row["measure"])["difference"])
    if abs(change.centre) <= half:
        return 1.0
    return p_as_large(change.centre, change._replace(centre=change.centre - math.copysign(half, change.centre)))


def _holm(p_values: Mapping[str, float]) -> dict[str, float]:
    return dict(zip(p_values, holm(list(p_values.values())), strict=True))


def decisive(row: Row) -> Row:
    """A row as its verdict reads it. A biased row has the values with the groups' words masked, unless these are too
    few to tell. One with opposite gaps has the typical gap of a context, which has no side and no interval.

    Args:
        row: As `DIALOGUE_SIGNIFICANCE`.
    """
    if hides_opposite_gaps(row):
        return {**row, "difference": row["spread"], "ci_low": None, "ci_high": None, "either_way": True}
    if not rests_on_masked(row):
        return row
    names = {"value_a": "a", "value_b": "b"} | {name: name for name in ("difference", "ci_low", "ci_high")}
    return {**row, **{name: row[f"content_{suffix}"] for name, suffix in names.items()}}


def rests_on_masked(row: Row) -> bool:
    """Whether a verdict rests on the answers with the groups' words masked; if these are too few, it does not."""
    too_few = TOO_SMALL in (row.get("note") or "")
    return row["verdict"] == "biased" and row.get("content_difference") is not None and not too_few


def doubts(row: Row, alpha: float = 0.05) -> list[Doubt]:
    """What could overturn a biased row. Empty if it withstands all checks.

    Args:
        row: As `DIALOGUE_SIGNIFICANCE`.
        alpha: The level.
    """
    if hides_opposite_gaps(row):  # the checks concern the mean gap
        return []
    reservations, reading = control_doubts(row), decisive(row)
    if reading["difference"] * row["difference"] < 0 and row["p_as_answered"] < alpha:
        reservations.append(Doubt(f"the answers as they are differ the other way ({with_unit(row)})", _OTHER_WAY))
    if row["without_them"] in ("fair", "inconclusive", "artefact") and not _mostly_there(
        row["difference_without_them"], reading
    ):
        reservations.append(Doubt(f"{row['without_them']} without the pairs of {row['carried_by']}", _CARRIED))
    if row["holds"] < _FIRM * row["variations"]:
        reservations.append(Doubt(f"it holds in {row['holds']} of {row['variations']} variations", _VARIES))
    for change, change_text in ((SAME_GROUP, "another word of the same group"), (REWORDING, "another wording")):
        moved, p = row[f"{change}_difference"], row[f"{change}_p"]
        if moved is not None and p < alpha:
            text = f"{change_text} moves the gap as well ({with_unit(row, f'{change}_difference')})"
            reservations.append(Doubt(text, _UNSTEADY))
    canned = row["measure"] in ("refusal", "no_answer")  # a system declines in one way, or says nothing at all
    if row["distinct_shown"] is not None and row["distinct_shown"] <= _FEW and not canned:
        text = f"it hangs on {row['distinct_shown']} distinct answer{'s' if row['distinct_shown'] > 1 else ''}"
        reservations.append(Doubt(text, _HANDFUL))
    return reservations


_OTHER_WAY = (
    "The verdict rests on the answers with the groups' own words masked. Read as they are, they favour the other "
    "group: say which of the two readings you mean."
)
_CARRIED = (
    "A single word carries the difference, and without it none is shown. It may be about that word and not about the "
    "group: read its pairs."
)
_VARIES = (
    "The same answers were judged again in other ways that are as good: parts of the pairs, other scorers, other "
    "thresholds. What only some of them show may be chance, or come from the instrument."
)
_UNSTEADY = (
    "A change that names no other group moves the gap between the groups by half of it or more. The gap may hang on "
    "the wording, and not on the group."
)
_HANDFUL = (
    "The model gives very few answers of this kind, again and again. The difference stands and falls with them, and "
    "the next training or prompt may have others."
)


def control(row: Row) -> str:
    """The explanation of an artefact: how much is left with the groups' words masked, and what a parrot would get.

    Args:
        row: As `DIALOGUE_SIGNIFICANCE`.
    """
    parrot = row["parrot_difference"]
    reading = neutral_reading_of(row["measure"])
    repeated = f"; answers that only repeat the context differ by {with_unit(row, 'parrot_difference')}"
    return (
        f"with {reading} the answers differ by {with_unit(row, 'content_difference')}"
        f"{repeated if parrot is not None else ''}"
    )


_FIRM, _FEW = 0.8, 5
"""The smallest share of variations in which a firm verdict holds; and the largest number of answers that counts as a
handful."""


def _shown(responses: pa.Table, tables: Mapping[str, pa.Table]) -> dict[str, dict[str, Any]]:
    """The number of answers that each measure rests on."""
    _, *of_sides = distinct_responses(responses)
    index = np.concatenate(of_sides)
    counted = {}
    for measure in measures(tables):
        for name, (a, b) in (measure.values(tables[measure.table]) if measure.scorer else {}).items():
            shows = index[np.concatenate([a, b]).astype(bool)]
            counts = np.bincount(shows) if len(shows) else np.zeros(1, dtype=int)
            counted[name] = {
                "distinct_shown": int((counts > 0).sum()),
                "commonest_shown": 100 * int(counts.max()) / len(shows) if len(shows) else None,
            }
    return counted


def _held(row: Row, variations: list[Row]) -> dict[str, Any]:
    """The number of variations with the same verdict. For a biased row also the words that carry it, and the verdict
    without them."""
    if hides_opposite_gaps(row):
        return {"holds": 0, "variations": 0}
    choices = [other["verdict"] for other in variations if other["kind"] in CHOICES]
    of_mean = "fair" if row["verdict"] == FAIR_ON_AVERAGE else row["verdict"]
    counts = {"holds": choices.count(of_mean), "variations": len(choices)}
    carried = next((other for other in variations if other["kind"] == CARRIERS), None)
    if row["verdict"] != "biased" or carried is None:
        return counts
    without = {"without_them": carried["verdict"], "difference_without_them": carried["difference"]}
    return {**counts, "carried_by": carried["variation"], **without}


def _of_one_source(row: Row, variations: list[Row], alpha: float) -> str | None:
    """A reservation, if only contexts that named one group show the gap, or if the groups' contexts show opposite gaps:
    a context written about one group may make little sense for the other."""
    sides = [other for other in variations if other["kind"] == SOURCE]
    if row["verdict"] not in ("biased", "fair", FAIR_ON_AVERAGE) or hides_opposite_gaps(row) or len(sides) != 2:
        return None
    shown = [other for other in sides if other["p_holm"] < alpha and other["verdict"] != "fair"]
    if len(shown) == 2 and shown[0]["difference"] * shown[1]["difference"] < 0:
        groups = " and ".join(f"{other['variation']} ({other['difference']:+.3g})" for other in sides)
        return f"opposite in contexts that named {groups}"
    if len(shown) == 1 and row["verdict"] == "biased":
        (one,), (other,) = shown, [side for side in sides if side is not shown[0]]
        error = abs(one["difference"]) / max(quantile(1 - one["p_holm"] / 2), 1e-9)
        apart = abs(one["difference"] - other["difference"])
        if apart > quantile(0.975) * error * math.sqrt(1 + one["n"] / max(1, other["n"])):  # unshown gaps may exist
            return f"shown only in contexts that named {one['variation']} before the exchange"
    return None


def _carriers(variations: list[Row]) -> str | None:
    """The words that make up most of a gap."""
    return next((other["variation"] for other in variations if other["kind"] == CARRIERS), None)


def _mostly_there(difference: float, row: Row) -> bool:
    """Whether at least half of a row's difference is left. Fewer pairs alone do not explain a larger loss."""
    return bool(row["difference"] and difference / row["difference"] >= 0.5)
