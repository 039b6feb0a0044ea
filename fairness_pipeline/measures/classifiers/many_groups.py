"""Does a classifier decide differently about the texts of one of several groups?

The omnibus test comes first: authors' rates change places (Welch's statistic), as a rate that a group hardly ever has
makes that group's error tiny and its t huge. Its p is never below the smallest of the groups' own t tests, which know
of the seeds of a training. Each group is compared with the others. Who is shown to differ is no longer among the
others: one group that is treated otherwise would move the others' mean against every other group. The first to leave is
the one without which the pairs of the rest differ least; a large group may differ more surely from the others only
because one of these does. Pairs by Holm. No p is below the omnibus test's.
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
from fairness_pipeline.statistics.verdicts import verdict
from fairness_pipeline.statistics.welch import LARGEST, NO_PAIR, OTHERS, PAIR


def compare_many_groups(predictions: pa.Table, settings: GroupRatesSettings, names: Sequence[str]) -> pa.Table:
    """A table of `CLASSIFIER_FAIRNESS` for three groups or more: of each rate the two groups that differ most, each
    group against the others, and each pair.

    Args:
        predictions: As `CLASSIFIER_PREDICTIONS`.
        settings: Margin and level.
        names: The names of the groups.
    """
    found = Predictions.of(predictions)
    present = {measure: found.with_texts(measure) for measure in RATES}
    told = [measure for measure in RATES if len(present[measure]) > 1]
    pairs = {
        measure: {
            pair: compared(found.between(pair[0], pair[1:]), measure, settings)
            for pair in combinations(present[measure], 2)
        }
        for measure in told
    }
    others = {measure: _each_against_others(found, measure, pairs[measure], settings) for measure in told}
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
        of_pairs = pairs[measure]
        equivalent = max(row.p_equivalence for row, _ in of_pairs.values()) if len(groups) == len(names) else 1.0
        largest = max(of_pairs, key=lambda pair: abs(of_pairs[pair][0].difference))
        shown = found.between(largest[0], largest[1:])
        row = compared(shown, measure, settings, (len(of_pairs), omnibus[measure]))[0]
        row = replace(row, p_paired=omnibus[measure], p_equivalence=equivalent)
        row = replace(row, paired_test="authors' rates exchanged (Welch's statistic)", paired_statistic=None)
        missing = [name for place, name in enumerate(names) if place not in groups]
        note = f"fewer than two texts of a label: {', '.join(missing)}" if missing else row.note
        of_pair = {"group": names[largest[0]], "against": names[largest[1]]}
        whole = {**asdict(replace(row, note=note)), **of_pairs[largest][1], **of_pair, "contrast": LARGEST}
        whole = _with_verdict(whole, p_holm[measure], settings)
        if whole["verdict"] == "biased" and whole["ci_low"] <= 0 <= whole["ci_high"]:
            whole["note"] = "; ".join(filter(None, [whole["note"], NO_PAIR]))
        rows.append(whole)
        for kind, listed, against in ((OTHERS, others[measure], "the others"), (PAIR, of_pairs, "")):
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
    found: Predictions,
    measure: str,
    pairs: Mapping[tuple[int, int], tuple[Comparison, dict[str, Any]]],
    settings: GroupRatesSettings,
) -> dict[tuple[int, ...], tuple[Comparison, dict[str, Any]]]:
    """Each group against the others; a group that is shown to differ leaves the others."""
    told: dict[tuple[int, ...], tuple[Comparison, dict[str, Any]]] = {}
    left = sorted({group for pair in pairs for group in pair})

    def rest_alike(group: int) -> float:
        """The smallest p of two groups among those that are left without this one."""
        return min(own.p_decides for pair, (own, _) in pairs.items() if set(pair) <= {*left} - {group})

    while True:
        now = {
            group: compared(found.between(group, [own for own in left if own != group]), measure, settings)
            for group in left
        }
        differ = [group for group in left if now[group][0].p_decides * len(left) < settings.alpha]
        if len(left) < 3 or not differ:
            return told | {(group,): own for group, own in now.items()}
        odd = max(differ, key=rest_alike)
        told[(odd,)] = now[odd]
        left.remove(odd)
