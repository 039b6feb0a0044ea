"""Does a classifier decide differently about the texts of one of several groups?

The omnibus test comes first. It exchanges authors' rates (Welch's statistic), because a rate near 0 makes a group's
error tiny and its t huge. Its p is never below the smallest of the groups' own t tests, which account for the seeds of
a training. Each group is then compared with the others. A group that is shown to differ leaves the others, because it
would move their mean against every other group. The first to leave is the one without which the pairs of the rest
differ least; a large group may differ more surely from the others only because one of these does. Pairs are adjusted by
Holm. No p is below the omnibus test's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from typing import Any

import pyarrow as pa

from fairness_pipeline.measures.classifiers.group_rates import (
    CLASSIFIER_FAIRNESS,
    RATES,
    GroupRatesSettings,
    Predictions,
    authors_exchanged,
    compared,
)
from fairness_pipeline.statistics.comparison import Comparison
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.verdicts import joined_notes, verdict
from fairness_pipeline.statistics.welch import LARGEST, NO_PAIR, OTHERS, PAIR


def compare_many_groups(predictions: pa.Table, settings: GroupRatesSettings, names: Sequence[str]) -> pa.Table:
    """A table of `CLASSIFIER_FAIRNESS` for three groups or more: for each rate the two groups that differ most, each
    group against the others, and each pair.

    Args:
        predictions: As `CLASSIFIER_PREDICTIONS`.
        settings: Margin and level.
        names: The names of the groups.
    """
    predicted = Predictions.of(predictions)
    present = {measure: predicted.with_texts(measure) for measure in RATES}
    testable = [measure for measure in RATES if len(present[measure]) > 1]
    pairs = {
        measure: {
            pair: compared(predicted.between(pair[0], pair[1:]), measure, settings)
            for pair in combinations(present[measure], 2)
        }
        for measure in testable
    }
    others = {measure: _each_against_others(predicted, measure, pairs[measure], settings) for measure in testable}
    omnibus = {
        measure: max(
            authors_exchanged(predicted, measure, present[measure]),
            min(comparison.p_decides for comparison, _ in others[measure].values()),
        )
        for measure in testable
    }
    p_holm = dict(zip(testable, holm(list(omnibus.values())), strict=True))
    rows = []
    for measure in testable:
        groups = present[measure]
        of_pairs = pairs[measure]
        equivalent = max(row.p_equivalence for row, _ in of_pairs.values()) if len(groups) == len(names) else 1.0
        largest = max(of_pairs, key=lambda pair: abs(of_pairs[pair][0].difference))
        most_different = predicted.between(largest[0], largest[1:])
        row = compared(most_different, measure, settings, (len(of_pairs), omnibus[measure]))[0]
        row = replace(row, p_paired=omnibus[measure], p_equivalence=equivalent)
        row = replace(row, paired_test="authors' rates exchanged (Welch's statistic)", paired_statistic=None)
        missing = [name for number, name in enumerate(names) if number not in groups]
        note = f"fewer than two texts of a label: {', '.join(missing)}" if missing else row.note
        compared_groups = {"group": names[largest[0]], "against": names[largest[1]]}
        whole = {**asdict(replace(row, note=note)), **of_pairs[largest][1], **compared_groups, "contrast": LARGEST}
        whole = _with_verdict(whole, p_holm[measure], settings)
        if whole["verdict"] == "biased" and whole["ci_low"] <= 0 <= whole["ci_high"]:
            whole["note"] = joined_notes(whole["note"], NO_PAIR)
        rows.append(whole)
        for kind, listed, against in ((OTHERS, others[measure], "the others"), (PAIR, of_pairs, "")):
            adjusted_p = holm([comparison.p_decides for comparison, _ in listed.values()])
            for (numbers, (comparison, further)), p in zip(listed.items(), adjusted_p, strict=True):
                group, other = names[numbers[0]], against or names[numbers[1]]
                contrast = {"contrast": kind, "group": group, "against": other}
                single = {**asdict(comparison), **further, **contrast, "measure": f"{measure}: {group} − {other}"}
                rows.append(_with_verdict(single, max(p, p_holm[measure]), settings))
    return pa.Table.from_pylist(rows, schema=CLASSIFIER_FAIRNESS)


def _with_verdict(row: dict[str, Any], p_holm: float, settings: GroupRatesSettings) -> dict[str, Any]:
    equivalent = row["p_equivalence"] <= settings.alpha
    return row | {"p_holm": p_holm, "verdict": verdict(equivalent=equivalent, p_holm=p_holm, alpha=settings.alpha)}


def _each_against_others(
    predictions: Predictions,
    measure: str,
    pairs: Mapping[tuple[int, int], tuple[Comparison, dict[str, Any]]],
    settings: GroupRatesSettings,
) -> dict[tuple[int, ...], tuple[Comparison, dict[str, Any]]]:
    """Each group against the others; a group that is shown to differ leaves the others."""
    settled: dict[tuple[int, ...], tuple[Comparison, dict[str, Any]]] = {}
    remaining = sorted({group for pair in pairs for group in pair})

    def rest_alike(group: int) -> float:
        """The smallest p of any pair of the remaining groups without this one."""
        return min(
            comparison.p_decides for pair, (comparison, _) in pairs.items() if set(pair) <= {*remaining} - {group}
        )

    while True:
        current = {
            group: compared(
                predictions.between(group, [other for other in remaining if other != group]), measure, settings
            )
            for group in remaining
        }
        differ = [group for group in remaining if current[group][0].p_decides * len(remaining) < settings.alpha]
        if len(remaining) < 3 or not differ:
            return settled | {(group,): result for group, result in current.items()}
        odd = max(differ, key=rest_alike)
        settled[(odd,)] = current[odd]
        remaining.remove(odd)
