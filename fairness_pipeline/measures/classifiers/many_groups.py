"""Does a classifier decide differently about the texts of one of several groups?

The omnibus test comes first: authors' rates change places (Welch's statistic), as a rate that a group hardly ever has
makes that group's error tiny and its t huge. Its p is never below the smallest of the groups' own t tests, which know
of the seeds of a training. Each group is compared with the others, the farthest first, and who is shown to differ is no
longer among the others: one group that is treated otherwise would move the others' mean against every other group.
Pairs by Holm. No p is below the omnibus test's.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import combinations
from typing import Any

import pyarrow as pa

from fairness_pipeline.measures.classifiers.group_rates import (
    CELLS,
    CLASSIFIER_FAIRNESS,
    RATES,
    GroupRatesSettings,
    Predictions,
    authors_exchanged,
    compared,
)
from fairness_pipeline.statistics.comparison import Comparison
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.verdicts import verdict
from fairness_pipeline.statistics.welch import LARGEST, OTHERS, PAIR


def compare_many_groups(predictions: pa.Table, settings: GroupRatesSettings, names: Sequence[str]) -> pa.Table:
    """A table of `CLASSIFIER_FAIRNESS` for three groups or more: of each rate the two groups that differ most, each
    group against the others, and each pair.

    Args:
        predictions: As `CLASSIFIER_PREDICTIONS`.
        settings: Margin and level.
        names: The names of the groups.
    """
    found = Predictions.of(predictions)
    present = {
        measure: [
            group
            for group in range(len(names))
            if all(((found.groups == group) & (found.labels == label)).sum() > 1 for label in CELLS[measure])
        ]
        for measure in RATES
    }
    told = [measure for measure in RATES if len(present[measure]) > 1]
    others = {measure: _each_against_others(found, measure, present[measure], settings) for measure in told}
    omnibus = {
        measure: max(
            authors_exchanged(found, measure, present[measure]),
            min(own.p_decides for own, _ in others[measure].values()),
        )
        for measure in told
    }
    p_holm = dict(zip(told, holm(list(omnibus.values())), strict=True))
    rows = []
    for measure in told:
        groups = present[measure]
        pairs = {
            pair: compared(found.between(pair[0], pair[1:]), measure, settings) for pair in combinations(groups, 2)
        }
        equivalent = max(row.p_equivalence for row, _ in pairs.values()) if len(groups) == len(names) else 1.0
        largest = max(pairs, key=lambda pair: abs(pairs[pair][0].difference))
        row = replace(pairs[largest][0], p_paired=omnibus[measure], p_equivalence=equivalent)
        row = replace(row, paired_test="authors' rates exchanged (Welch's statistic)", paired_statistic=None)
        missing = [name for place, name in enumerate(names) if place not in groups]
        note = f"fewer than two texts of a label: {', '.join(missing)}" if missing else row.note
        of_pair = {"group": names[largest[0]], "against": names[largest[1]]}
        whole = {**asdict(replace(row, note=note)), **pairs[largest][1], **of_pair, "contrast": LARGEST}
        rows.append(_with_verdict(whole, p_holm[measure], settings))
        for kind, listed, against in ((OTHERS, others[measure], "the others"), (PAIR, pairs, "")):
            adjusted_p = holm([own.p_decides for own, _ in listed.values()])
            for (place, (own, more)), p in zip(listed.items(), adjusted_p, strict=True):
                group, other = names[place[0]], against or names[place[1]]
                named = {"contrast": kind, "group": group, "against": other}
                single = {**asdict(own), **more, **named, "measure": f"{measure}: {group} − {other}"}
                rows.append(_with_verdict(single, max(p, p_holm[measure]), settings))
    return pa.Table.from_pylist(rows, schema=CLASSIFIER_FAIRNESS)


def _with_verdict(row: dict[str, Any], p_holm: float, settings: GroupRatesSettings) -> dict[str, Any]:
    equivalent = row["p_equivalence"] <= settings.alpha
    return row | {"p_holm": p_holm, "verdict": verdict(equivalent=equivalent, p_holm=p_holm, alpha=settings.alpha)}


def _each_against_others(
    found: Predictions, measure: str, groups: Sequence[int], settings: GroupRatesSettings
) -> dict[tuple[int, ...], tuple[Comparison, dict[str, Any]]]:
    """Each group against the others, the farthest first; a group that is shown to differ leaves the others."""
    told: dict[tuple[int, ...], tuple[Comparison, dict[str, Any]]] = {}
    left = list(groups)
    while True:
        now = {
            group: compared(found.between(group, [own for own in left if own != group]), measure, settings)
            for group in left
        }
        farthest = min(now, key=lambda group: now[group][0].p_decides)
        if len(left) < 3 or now[farthest][0].p_decides * len(left) >= settings.alpha:
            return told | {(group,): own for group, own in now.items()}
        told[(farthest,)] = now[farthest]
        left.remove(farthest)
