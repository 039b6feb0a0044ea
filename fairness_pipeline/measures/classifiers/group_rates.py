"""Does a classifier decide differently about one group's texts? (Liu 2022, sections 4.2.2 and 4.5.4)

FPR, FNR and the rate of positive predictions (DPR) by author group. FPED, FNED and DPD are the absolute differences.
The groups' texts are different texts, so nothing is paired, and the unit is the author. All test texts count: FPR and
FNR are about one label, and DPR is the mean of the rates among positive and among negative texts, as in balanced tests.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.classifiers.authored_corpus import LETTERS
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.foundation.yaml_files import Share, Specification
from fairness_pipeline.statistics.change import DEBIASING_EFFECTS, SMALLER, change_of_estimates, level_columns
from fairness_pipeline.statistics.comparison import (
    COMPARISON,
    Comparison,
    Published,
    adjusted,
    beside,
    compare_groups,
)
from fairness_pipeline.statistics.controls import p_smaller, too_small
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.intervals import Estimate, combined
from fairness_pipeline.statistics.verdicts import ARTEFACT, joined_notes
from fairness_pipeline.statistics.welch import LARGEST, OTHERS, PAIR, TWO, of_like_labour, permuted_welch

FP, FN, DP = "fp_rate", "fn_rate", "dp_rate"
RATES = (FP, FN, DP)
CLASSIFIER_FAIRNESS = schema(
    COMPARISON,
    measure="fp_rate, fn_rate or dp_rate; of single groups with their names",
    n="texts of both groups that the rate is about",
    ci_low="lower end of the 95% interval of the difference",
    ci_high="upper end of the 95% interval of the difference",
    test="none: the thesis prints rates without a test",
    paired_test="what is compared over: nothing is paired",
    paired_statistic="its t",
    contrast=(pa.string(), f"{TWO}; of more {LARGEST} (the two that differ most), {OTHERS}, or {PAIR}"),
    group=(pa.string(), "group a"),
    against=(pa.string(), "group b"),
    seeds=(pa.int64(), "trainings"),
    sd_seeds=optional(pa.float64(), "standard deviation of the difference between seeds"),
    authors_a=(
        pa.float64(),
        "authors of one size that weigh as much as those of group a: one who wrote most leaves few",
    ),
    authors_b=(pa.float64(), "the same of group b"),
    masked_n=optional(pa.int64(), "texts whose group could be inferred without the words that tell the label"),
    masked_difference=optional(pa.float64(), "the difference between these groups; null where groups are known"),
    masked_p=optional(pa.float64(), "its p, adjusted over the rates"),
    p_trainings=optional(
        pa.float64(), "p of trainings whose differences vary by chance alone, adjusted over the rates"
    ),
    trainings=optional(pa.float64(), "the standard deviation of the trainings' differences beyond chance, in points"),
    trainings_upper=optional(pa.float64(), "its upper 95% bound"),
)
"""One row per rate. Values are means over the seeds. If a difference is shown only with the original groups, the
verdict is `artefact` if less is shown to be left than groups that are merely inferred less reliably would leave.
Otherwise it stays `biased`, and `note` says that the control is too small to tell."""
CLASSIFIER_METRICS = schema(
    metric=(
        pa.string(),
        "accuracy, f1 (of the positive class), or the absolute difference of a rate, of more than two groups the "
        "largest: fped, fned, dpd",
    ),
    value=(pa.float64(), "mean over the seeds"),
    **fields(COMPARISON, "unit"),
    seeds=(pa.list_(pa.float64()), "the value of each training"),
    ci_low=optional(pa.float64(), "lower end of the mean's 95% interval over the trainings; null with one"),
    ci_high=optional(pa.float64(), "upper end of it"),
    published_value=optional(pa.float64(), "what the thesis prints"),
)
"""One row per metric."""


class GroupRatesSettings(Specification):
    """How the rates of a classifier are judged."""

    margin: Margin = Margin(cohens_h=0.05)
    """The largest difference that does not matter."""
    alpha: Share = 0.05
    """Level of the tests."""


class Predictions(NamedTuple):
    """(seeds, texts) of 0 or 1, with each text's label, group (0 is a, 1 is b, ...) and author (numbered from 0).

    If authors are not `known`, each text has its own author.
    """

    decisions: np.ndarray
    labels: np.ndarray
    groups: np.ndarray
    authors: np.ndarray
    known: bool = True

    @classmethod
    def of(cls, table: pa.Table) -> "Predictions":
        """Reads a table of `CLASSIFIER_PREDICTIONS`. All seeds hold the same texts in the same order."""
        seeds = table["seed"].to_numpy()
        first = table.filter(pa.array(seeds == seeds[0]))
        _, authors = np.unique(first["author_id"].to_numpy(zero_copy_only=False), return_inverse=True)
        return cls(
            table["prediction"].to_numpy().reshape(len(np.unique(seeds)), first.num_rows),
            first["label"].to_numpy(),
            np.array([LETTERS.index(group) for group in first["author_group"].to_pylist()], dtype=np.int64),
            authors,
            first["author_id"] != first["text_id"],
        )

    def between(self, first: int, others: Sequence[int]) -> "Predictions":
        """The texts of one group (then a), and of others (then b)."""
        both = self.only([first, *others])
        return both._replace(groups=(both.groups != first).astype(np.int64))

    def only(self, groups: Sequence[int]) -> "Predictions":
        """The texts of these groups."""
        kept = np.isin(self.groups, groups)
        return self._replace(
            decisions=self.decisions[:, kept],
            labels=self.labels[kept],
            groups=self.groups[kept],
            authors=self.authors[kept],
        )

    def with_texts(self, measure: str) -> list[int]:
        """The groups with two texts or more of each label that a rate is about."""
        return [
            group
            for group in np.unique(self.groups).tolist()
            if all(((self.groups == group) & (self.labels == label)).sum() > 1 for label in CELLS[measure])
        ]


def rates(predictions: Predictions, measure: str, groups: Sequence[int] = (0, 1)) -> np.ndarray:
    """(seeds, groups): the rate of each group; DPR is the mean over both labels.

    Args:
        predictions: The predictions.
        measure: One of `RATES`.
        groups: The numbers of the groups.
    """
    counted = counted_decisions(predictions, measure)
    of_cells = [
        [
            counted[:, (predictions.groups == group) & (predictions.labels == label)].mean(axis=1)
            for label in CELLS[measure]
        ]
        for group in groups
    ]
    return np.stack([np.mean(cells, axis=0) for cells in of_cells], axis=1)


def difference(predictions: Predictions, measure: str) -> Estimate:
    """Group a's rate minus group b's, with the variance of each group's texts and the variance between seeds.

    Between seeds the variance is s^2 / k. For the texts of a group it is the jackknife that leaves out one author,
    within the cells of label and group. The degrees of freedom come from the effective number of authors. One text of
    either outcome is added to every cell (Agresti and Caffo 2000), so that a few texts without errors do not claim
    certainty. Nothing is known if one author wrote a whole cell.

    Args:
        predictions: The predictions.
        measure: One of `RATES`.
    """
    by_group = rates(predictions, measure)
    signed = by_group[:, 0] - by_group[:, 1]
    return combined(
        float(signed.mean()),
        [*_of_texts(predictions, measure, counted_decisions(predictions, measure).mean(axis=0)), _of_seeds(signed)],
    )


def authors_of(predictions: Predictions, measure: str, group: int) -> float:
    """The effective number of a group's authors: 1 / sum of squared shares (Kish 1965).

    Args:
        predictions: The predictions.
        measure: One of `RATES`.
        group: 0 is a, 1 is b.
    """
    sizes = np.bincount(predictions.authors[_about(predictions, measure, group)])
    return float(sizes.sum() ** 2 / np.square(sizes).sum())


def compare_error_rates(
    predictions: pa.Table,
    settings: GroupRatesSettings,
    published: Mapping[str, Published],
    masked: pa.Table | None = None,
    groups: Sequence[str] = ("a", "b"),
) -> pa.Table:
    """A table of `CLASSIFIER_FAIRNESS` for two groups (`many_groups` is for more).

    Args:
        predictions: As `CLASSIFIER_PREDICTIONS`.
        settings: Margin and level.
        published: The values that the thesis prints, by measure.
        masked: As `MASKED_GROUPS`, if groups were inferred from texts.
        groups: The names of both groups.

    Examples:
        >>> rows = [(f"t{i}", f"t{i}", i % 2, "ab"[i // 200], int(i % 2 or i >= 300), 1) for i in range(400)]
        >>> names = ["text_id", "author_id", "label", "author_group", "prediction", "seed"]
        >>> predictions = pa.table(dict(zip(names, zip(*rows))))
        >>> found = compare_error_rates(predictions, GroupRatesSettings(), {})
        >>> found.select(["measure", "difference", "verdict"]).to_pylist()[0]
        {'measure': 'fp_rate', 'difference': -50.0, 'verdict': 'biased'}
    """
    judged, further = _judged(Predictions.of(predictions), settings)
    contrast = {"contrast": TWO, "group": groups[0], "against": groups[1]}
    table = [{**asdict(row), **further[row.measure], **contrast} for row in beside(judged, published)]
    regrouped = _regrouped(predictions, masked) if masked is not None else None
    if masked is not None and regrouped is None:
        table = [
            {**row, "note": joined_notes(row["note"], _NO_CONTROL)} if row["verdict"] == "biased" else row
            for row in table
        ]
    if regrouped is not None:
        control = {row.measure: row for row in _judged(regrouped.predictions, settings)[0]}
        for row in table:
            masked_row = control[row["measure"]]
            row |= {"masked_n": masked_row.n, "masked_difference": masked_row.difference, "masked_p": masked_row.p_holm}
            if row["verdict"] == "biased" and masked_row.verdict != "biased":
                if _p_regrouped(row["measure"], Predictions.of(predictions), regrouped) < settings.alpha:
                    row["verdict"] = ARTEFACT
                else:
                    row["note"] = joined_notes(row["note"], too_small(f"{masked_row.n:,} texts"))
    return pa.Table.from_pylist(table, schema=CLASSIFIER_FAIRNESS)


_NO_CONTROL = too_small("fewer than two texts of a label in a group")


def _p_regrouped(measure: str, predictions: Predictions, regrouped: "_Regrouped") -> float:
    """The p of the hypothesis that as much of a difference is left as groups that are merely inferred less reliably
    would leave.

    If a share c of the texts stay in their original group, a difference that is unrelated to the label's words shrinks
    to k = 2 c - 1 of itself. The test is of the difference between the new groups minus k times that between the old
    ones. It leaves out each author from both, because many texts are in both.
    """
    about = _about(regrouped.predictions, measure, 0) | _about(regrouped.predictions, measure, 1)
    shrinkage = 2 * float(regrouped.same[about].mean()) - 1
    old, new = (rates(grouping, measure) @ [1, -1] for grouping in (predictions, regrouped.predictions))
    influences = [
        _without_authors(grouping, measure, counted_decisions(grouping, measure).mean(axis=0))
        for grouping in (predictions, regrouped.predictions)
    ]
    if shrinkage <= 0 or None in influences:
        return 1.0
    (of_old, added_old), (of_new, added_new) = (influence for influence in influences if influence)
    influence_change = np.zeros(len(of_old[0]))
    influence_change[: len(of_new[0])] += of_new[0] - of_new[1]
    influence_change -= shrinkage * (of_old[0] - of_old[1])
    authors = len(np.unique(predictions.authors))
    variance = (authors - 1) / authors * float(np.square(influence_change).sum())
    freedom = (
        min(
            authors_of(grouping, measure, group)
            for grouping in (predictions, regrouped.predictions)
            for group in (0, 1)
        )
        - 1
    )
    excess = new - shrinkage * old
    parts = [(variance + sum(added_new) + shrinkage**2 * sum(added_old), freedom), _of_seeds(excess)]
    return p_smaller(shrinkage * float(old.mean()), combined(float(excess.mean()), parts))


class _Regrouped(NamedTuple):
    """Predictions with groups from the second inference, and which texts stay in their original group."""

    predictions: Predictions
    same: np.ndarray


def _regrouped(predictions: pa.Table, masked: pa.Table) -> _Regrouped | None:
    """The predictions with the groups of the second inference. None if a group has fewer than two texts of a label."""
    groups = dict(zip(masked["text_id"].to_pylist(), masked["author_group"].to_pylist(), strict=True))
    seeds = predictions["seed"].to_numpy()
    ids = predictions.filter(pa.array(seeds == seeds[0]))["text_id"].to_pylist()
    original = Predictions.of(predictions)
    new_groups = np.array([LETTERS.find(groups.get(name, "?")) for name in ids])
    if min(int(((new_groups == group) & (original.labels == label)).sum()) for group in (0, 1) for label in (0, 1)) < 2:
        return None
    regrouped = original._replace(groups=new_groups).only(range(len(LETTERS)))
    return _Regrouped(regrouped, (original.groups == new_groups)[new_groups >= 0])


def _judged(
    predictions: Predictions, settings: GroupRatesSettings
) -> tuple[list[Comparison], dict[str, dict[str, Any]]]:
    """Every rate compared between the two groups, and further columns by measure."""
    results = {measure: compared(predictions, measure, settings) for measure in RATES}
    rows = adjusted([row for row, _ in results.values()], settings.alpha)
    return rows, {measure: further for measure, (_, further) in results.items()}


def _guarded(predictions: Predictions, measure: str, estimate: Estimate, alpha: float) -> Estimate:
    """The difference. If a group's rate is close to 0 or 1, its error is at least what exchanged authors allow, because
    t alone then calls up to 12% of equal rates different where groups differ in size."""
    counted = counted_decisions(predictions, measure).mean(axis=0)
    cells = [
        counted[(predictions.groups == g) & (predictions.labels == label)] for g in (0, 1) for label in CELLS[measure]
    ]
    if min(min(cell.sum(), (1 - cell).sum()) for cell in cells) >= _FEWEST_EVENTS or estimate.p_zero() >= alpha:
        return estimate
    return estimate.in_accord_with(authors_exchanged(predictions, measure), alpha)[0]


def authors_exchanged(predictions: Predictions, measure: str, groups: Sequence[int] = (0, 1)) -> float:
    """The p of the hypothesis that the groups' rates are equal. An author's score is the mean over their texts of what
    counts for the rate, minus its mean over all texts of the label. Authors with similarly many texts change groups.
    For DPR a text has the weight that its label has in its group's rate, so that opposite differences in the two labels
    do not cancel.

    Args:
        predictions: The predictions.
        measure: One of `RATES`.
        groups: The numbers of the groups.
    """
    counted = counted_decisions(predictions, measure).mean(axis=0)
    about = np.isin(predictions.labels, CELLS[measure]) & np.isin(predictions.groups, groups)
    centred = np.zeros(len(counted))
    for label in CELLS[measure]:
        cell = about & (predictions.labels == label)
        centred[cell] = counted[cell] - counted[cell].mean()
    for number in groups:
        whole = about & (predictions.groups == number)
        for label in CELLS[measure]:
            cell = whole & (predictions.labels == label)
            centred[cell] *= whole.sum() / (len(CELLS[measure]) * max(1, cell.sum()))
    size = predictions.authors.max() + 1
    count = np.bincount(predictions.authors[about], minlength=size)
    score = np.bincount(predictions.authors[about], centred[about], size) / np.maximum(count, 1)
    group = np.full(size, -1)
    group[predictions.authors[about]] = np.searchsorted(groups, predictions.groups[about])
    return permuted_welch(score, group, 0, of_like_labour(count, group))


def compared(
    predictions: Predictions, measure: str, settings: GroupRatesSettings, largest: tuple[int, float] | None = None
) -> tuple[Comparison, dict[str, Any]]:
    """A rate compared between group a and group b, and further columns.

    Args:
        predictions: The predictions.
        measure: One of `RATES`.
        settings: Margin and level.
        largest: For the two groups that differ most: the number of pairs, and the p of the test of all groups.
    """
    estimate = difference(predictions, measure)
    if largest is None:
        estimate = _guarded(predictions, measure, estimate, settings.alpha)
    else:
        estimate = estimate.corrected(largest[0]).in_accord_with(largest[1], settings.alpha)[0]
    by_group, unit = rates(predictions, measure), "authors" if predictions.known else "texts, as authors are not known"
    row = compare_groups(
        measure,
        _texts(predictions, measure),
        (float(by_group[:, 0].mean()), float(by_group[:, 1].mean())),
        estimate,
        settings.margin,
        settings.alpha,
        f"{unit}, and seeds" if len(predictions.decisions) > 1 else unit,
    )
    signed = 100 * (by_group[:, 0] - by_group[:, 1])
    further: dict[str, Any] = {
        "seeds": len(signed),
        "sd_seeds": float(signed.std(ddof=1)) if len(signed) > 1 else None,
        **{f"authors_{side}": authors_of(predictions, measure, group) for group, side in enumerate("ab")},
    }
    return row, further


def measure_performance(predictions: pa.Table, published: Mapping[str, float]) -> pa.Table:
    """A table of `CLASSIFIER_METRICS`.

    Args:
        predictions: As `CLASSIFIER_PREDICTIONS`.
        published: The values that the thesis prints, by metric.
    """
    predicted = Predictions.of(predictions)
    groups = np.unique(predicted.groups).tolist()
    gaps = {name: np.ptp(rates(predicted, measure, groups), axis=1) for name, measure in _DIFFERENCES.items()}
    values = {"accuracy": _accuracy(predicted), "f1": _f1(predicted), **gaps}
    rows = []
    for name, shares in values.items():
        percent = 100 * shares
        low, high = np.clip(_over_seeds(percent).interval(0.95), 0, 100) if len(percent) > 1 else (None, None)
        rows.append(
            {
                "metric": name, "value": float(percent.mean()), "unit": "percent", "seeds": percent.tolist(),
                "ci_low": low, "ci_high": high, "published_value": published.get(name),
            }
        )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=CLASSIFIER_METRICS)


def compare_methods(before: pa.Table, after: pa.Table, judged: tuple[pa.Table, pa.Table], alpha: float) -> pa.Table:
    """A table of `DEBIASING_EFFECTS`: did a method change the differences, on the same texts?

    If either classifier was trained only once, another seed might have had the same effect, so no change is shown.

    Args:
        before: The predictions of the base, as `CLASSIFIER_PREDICTIONS`.
        after: The predictions of the debiased classifier for the same texts.
        judged: As `CLASSIFIER_FAIRNESS`: of the base, and of the debiased classifier.
        alpha: The level.
    """
    first, second = Predictions.of(before), Predictions.of(after)
    changes, values = {}, {}
    rows_of = [{row["measure"]: row for row in table.to_pylist()} for table in judged]
    for measure in RATES:
        values[measure] = [100 * rates(predicted, measure).mean(axis=0) for predicted in (first, second)]
        signed = [(by_group[:, 0] - by_group[:, 1]) for by_group in (rates(first, measure), rates(second, measure))]
        counted = [counted_decisions(predicted, measure).mean(axis=0) for predicted in (first, second)]
        once = min(len(gaps) for gaps in signed) < 2
        seeds = [(math.inf, 1.0)] if once else [_of_seeds(gaps) for gaps in signed]
        estimates = [
            combined(
                float(signed[1].mean() + sign * signed[0].mean()),
                [*_of_texts(first, measure, counted[1] + sign * counted[0], span=2), *seeds],
            )
            for sign in (-1, 1)
        ]
        means = float(signed[0].mean()), float(signed[1].mean())
        test = "not told from another seed: one training" if once else "same texts, by authors and seeds"
        changes[measure] = change_of_estimates(means, estimates[0], estimates[1], test)
    rows = []
    for (measure, change), p_holm in zip(changes.items(), holm([c.p for c in changes.values()]), strict=True):
        effect = change.scaled(100.0).row(p_holm, alpha)
        was, now = ((float(shares[0]), float(shares[1])) for shares in values[measure])
        rows.append(
            {
                "measure": measure,
                "unit": "percent",
                "n": _texts(first, measure),
                **effect,
                **level_columns(was, now, rows_of[0][measure]["margin"], smaller=effect["effect"] == SMALLER),
                "verdict_before": rows_of[0][measure]["verdict"],
                "verdict_after": rows_of[1][measure]["verdict"],
            }
        )
    return pa.Table.from_pylist(rows, schema=DEBIASING_EFFECTS)


_FEWEST_EVENTS = 15
_DIFFERENCES = {"fped": FP, "fned": FN, "dpd": DP}
CELLS = {FP: (0,), FN: (1,), DP: (0, 1)}
"""The labels of the texts that a rate is about."""


def _about(predictions: Predictions, measure: str, group: int) -> np.ndarray:
    """Which texts a group's rate is about."""
    about: np.ndarray = (predictions.groups == group) & np.isin(predictions.labels, CELLS[measure])
    return about


def _texts(predictions: Predictions, measure: str) -> int:
    """How many texts of both groups a rate is about."""
    return sum(int(_about(predictions, measure, group).sum()) for group in (0, 1))


def counted_decisions(predictions: Predictions, measure: str) -> np.ndarray:
    """(seeds, texts): 1 where a prediction counts for the rate, else 0."""
    return 1 - predictions.decisions if measure == FN else predictions.decisions


def _of_texts(predictions: Predictions, measure: str, values: np.ndarray, span: int = 1) -> list[tuple[float, float]]:
    """Variance and degrees of freedom of each group's mean of `values` (one per text). `span` is the largest
    possible difference between values."""
    influences = _without_authors(predictions, measure, values, span)
    if influences is None:
        return [(math.inf, 1.0)]
    moved, added = influences
    parts = []
    for group in (0, 1):
        authors = len(np.unique(predictions.authors[_about(predictions, measure, group)]))
        variance = (authors - 1) / authors * float(np.square(moved[group]).sum())
        parts.append((variance + added[group], authors_of(predictions, measure, group) - 1))
    # An author with texts in both groups moves both rates together. A smaller variance due to that is not used.
    together = max(0.0, -2 * float((moved[0] * moved[1]).sum()))
    return [*parts, (together, min(freedom for _, freedom in parts))]


def _without_authors(
    predictions: Predictions, measure: str, values: np.ndarray, span: int = 1
) -> tuple[list[np.ndarray], list[float]] | None:
    """How much each group's mean of `values` falls without each author, and the variance of the texts that are added
    to each group. None if one author wrote a whole cell."""
    moved, added = [], []
    for group in (0, 1):
        about = _about(predictions, measure, group)
        without = np.zeros(predictions.authors.max() + 1)
        variance = 0.0
        for label in CELLS[measure]:
            cell = about & (predictions.labels == label)
            count, share = int(cell.sum()), 1 / len(CELLS[measure])
            sizes = np.bincount(predictions.authors[cell], minlength=len(without))
            sums = np.bincount(predictions.authors[cell], values[cell] - values[cell].mean(), minlength=len(without))
            if sizes.max() == count:
                return None
            without += share * sums / (count - sizes)
            variance += 2 * (share / (count + 2) * span / 2) ** 2
        moved.append(without)
        added.append(variance)
    return moved, added


def _of_seeds(signed: np.ndarray) -> tuple[float, float]:
    """Variance and degrees of freedom of the mean over seeds."""
    return _between(signed), len(signed) - 1


def _between(signed: np.ndarray) -> float:
    """The part of the variance of the mean over seeds that comes from the seeds."""
    return float(signed.var(ddof=1)) / len(signed) if len(signed) > 1 else 0.0


def _over_seeds(values: np.ndarray) -> Estimate:
    return Estimate(float(values.mean()), math.sqrt(_between(values)), len(values) - 1)


def _accuracy(predictions: Predictions) -> np.ndarray:
    right: np.ndarray = (predictions.decisions == predictions.labels).mean(axis=1)
    return right


def _f1(predictions: Predictions) -> np.ndarray:
    """F1 of the positive class. It is 0 if nothing is predicted positive."""
    both = ((predictions.decisions == 1) & (predictions.labels == 1)).sum(axis=1)
    either = (predictions.decisions == 1).sum(axis=1) + (predictions.labels == 1).sum()
    score: np.ndarray = 2 * both / np.maximum(either, 1)
    return score
