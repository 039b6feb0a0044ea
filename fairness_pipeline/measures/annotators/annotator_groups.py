"""Tests whether groups of annotators label the same items differently (Liu 2022, section 5.2).

Positive rates are compared over the items that both groups labelled (table 5.2). With three groups or more an omnibus
test comes first, by permuting annotators' scores; pairs are told apart only if it rejects.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.annotation.inference import people, task_table
from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.annotation.truth_inference.group_design import Levels, kish, levels_of
from fairness_pipeline.corpora.annotators.annotated_corpus import of_class
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import optional, schema
from fairness_pipeline.foundation.yaml_files import Share, Specification
from fairness_pipeline.measures.annotators.item_by_group import ItemsByGroup, items_by_group
from fairness_pipeline.measures.annotators.rater_spread import RaterSpread, rater_spread
from fairness_pipeline.statistics.comparison import COMPARISON, Comparison, Published, adjusted, beside, compare_groups
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.intervals import Estimate, combined
from fairness_pipeline.statistics.paired import paired_t
from fairness_pipeline.statistics.verdicts import on_spread, verdict
from fairness_pipeline.statistics.welch import LARGEST, NO_PAIR, PAIR, TWO, UNLIKE_ALL, of_like_labour, permuted_welch

GROUP_POSITIVE_RATES = schema(
    COMPARISON,
    measure="the category whose groups are compared; of several classes with the class; of pairs with the pair",
    n="items that both groups labelled",
    value_a="mean over these items of the share of the first group's labels that are positive",
    value_b="the same of the second group",
    ci_low="lower end of the 95% interval: of a difference, of a contrast, of a score",
    ci_high="upper end of that interval",
    test="paired t over items alone, which takes labels of one annotator for independent",
    p_holm="p adjusted by Holm: over a corpus's categories, or over a draw's contrasts",
    paired_test="the verdict's: over annotators and items; of three groups or more annotators' scores exchanged",
    paper_verdict="fair or biased by items alone",
    label=(pa.string(), "the class that is counted; of two classes the positive one"),
    contrast=(pa.string(), f"{TWO}, {LARGEST} (of three groups or more: the two that differ most), or {PAIR}"),
    group=(pa.string(), "the first of the two groups"),
    against=(pa.string(), "the second of the two groups"),
    labels_a=(pa.int64(), "labels of these items by the first group"),
    labels_b=(pa.int64(), "labels of these items by the second group"),
    annotators_a=(pa.int64(), "how many people of the first group gave them"),
    annotators_b=(pa.int64(), "how many people of the second group gave them"),
    pooled_a=(pa.float64(), "share of positive ones among all of labels_a, in percent"),
    pooled_b=(pa.float64(), "share of positive ones among all of labels_b, in percent"),
    p_items=(
        pa.float64(),
        "p of no interaction of item and group (raters' groups exchanged among raters of like labour)",
    ),
    p_items_holm=(pa.float64(), "the same, adjusted with the means of all categories"),
    items_excess=(pa.float64(), "how many times chance the items' differences vary between the groups"),
    items_typical=(pa.float64(), "the typical (root mean square) difference of a single item's rates, in points"),
    items_upper=optional(pa.float64(), "its upper 95% bound; null where nothing is known"),
    items_compared=(pa.int64(), "items with two labels of each group, on which these rest"),
    p_raters=optional(pa.float64(), "p of annotators who lean alike far in all groups (annotators exchanged)"),
    p_raters_holm=optional(pa.float64(), "the same, adjusted with the means and items of all categories"),
    divided=optional(pa.string(), "the group whose annotators lean farthest from their own mean"),
    raters_typical=optional(pa.float64(), "how far they typically (root mean square) lean beyond chance, in points"),
    raters_least=optional(pa.float64(), "the same of the group that is least divided"),
    raters_upper=optional(pa.float64(), "upper 95% bound of the root of the difference of their squares"),
)
"""One row per category, which is its `measure`; with three groups or more, one for each pair below it, with the
category's figures. A value is the mean over items of a group's share of positive labels.

A category is `fair` only if the mean, single items and the spread of annotators are shown to differ little. If the mean
does not differ but single items do, it is `biased`: the rates are similar, but the groups call other items positive. It
is also `biased` if a group is divided."""


class AnnotatorGroupsSettings(Specification):
    """How groups of annotators are judged."""

    margin: Margin = Margin(cohens_h=0.1)
    """The largest difference of positive rates that does not matter."""
    alpha: Share = 0.05
    """Level of the tests."""


class Labelled(NamedTuple):
    """Labels as integers, and the annotators' groups in every category."""

    labels: Labels
    levels: dict[str, Levels]

    @classmethod
    def of(cls, annotations: pa.Table, annotators: pa.Table, classes: int = 2) -> "Labelled":
        """Reads tables of `ANNOTATIONS` and `ANNOTATORS`, of one draw."""
        labels = Labels.of(task_table(annotations), classes)
        groups = people(annotators).reindex(labels.annotators)
        return cls(labels, {str(name): levels_of(groups[name]) for name in groups.columns})

    def against_rest(self, names: Sequence[str]) -> list["Labelled"]:
        """These labels if they have two classes; else each class against the rest, its name after the category's."""
        if self.labels.classes == 2:
            return [self]
        return [
            Labelled(
                self.labels.one_against_rest(number),
                {of_class(category, name): levels for category, levels in self.levels.items()},
            )
            for number, name in enumerate(names)
        ]


class Rates(NamedTuple):
    """Positive rates of the items that both groups labelled.

    Attributes:
        a: (items,) the share of group a's labels that are positive.
        b: (items,) the share of group b's labels that are positive.
        estimate: The estimate of the mean of a - b.
        labels: The number of labels of each group.
        annotators: The number of annotators of each group.
        pooled: The share of positive labels among all labels of each group.
        item: (items,) the numbers of the items.
        counts: (items, 2) the number of labels of each group.
    """

    a: np.ndarray
    b: np.ndarray
    estimate: Estimate
    labels: tuple[int, int]
    annotators: tuple[int, int]
    pooled: tuple[float, float]
    item: np.ndarray
    counts: np.ndarray


def rates_of(labelled: Labelled, category: str, first: int = 0, second: int = 1) -> Rates | None:
    """Two groups' rates and their difference. None if no item was labelled by both groups.

    The same people label many items, so items are not independent. The variance has two parts: that of leaving out one
    annotator (the jackknife, within each group), and what items add to it. The second part is the variance over items
    minus that of single labels, as for two crossed clusterings (Cameron, Gelbach and Miller 2011). The degrees of
    freedom come from the effective number of annotators (Kish 1965). One item that differs each way is added, so that
    agreement on a few items does not claim certainty.

    Args:
        labelled: Labels of one draw.
        category: The category whose groups are compared.
        first: The index of group a in the category.
        second: The index of group b.
    """
    labels, code = labelled.labels, labelled.levels[category].code
    side = np.select([code == first, code == second], [0, 1], -1)[labels.annotator]
    size = len(labels.items)
    counts = by_group(labels.item, side, size, 2)
    sums = by_group(labels.item, np.where(labels.label == 1, side, -1), size, 2)
    both = np.asarray((counts > 0).all(axis=1))
    if not both.any():
        return None
    n = int(both.sum())
    rates = sums[both] / counts[both]
    difference = rates[:, 0] - rates[:, 1]
    centre = float(difference.mean())
    position = np.full(size, -1)
    position[both] = np.arange(n)
    kept = (side >= 0) & both[labels.item]
    item, group, annotator, z = position[labels.item[kept]], side[kept], labels.annotator[kept], labels.label[kept]
    count, total = counts[both][item, group], sums[both][item, group]
    alone = count == 1
    # Without one label a group's rate is (total - z) / (count - 1). Without its only label the item is dropped.
    change = (total - count * z) / np.maximum(count * (count - 1), 1)
    influence = np.where(alone, -difference[item], np.where(group == 0, change, -change))
    # A label's own variance counts count / (count - 1) times, as the labels it is compared with vary too. What the
    # labels of an annotator have in common does not.
    compared = np.where(alone, counts[both][item, 1 - group], count - 1)
    share = compared / (compared + 1)
    squares = np.square((n * centre + influence) / np.maximum(n - alone, 1) - centre)
    of_labels = float((share * squares).sum())
    parts, annotators = [], []
    people = len(labels.annotators)
    for g in (0, 1):
        shift = np.bincount(annotator[group == g], influence[group == g], people)
        fewer = np.bincount(annotator[group == g], alone[group == g], people)
        labour = np.bincount(annotator[group == g], minlength=people)
        present = labour > 0
        annotators.append(int(present.sum()))
        if annotators[g] < 2 or (n - fewer[present]).min() <= 0:
            parts.append((np.inf, 1.0))
            continue
        without = (n * centre + shift[present]) / (n - fewer[present])
        variance = (annotators[g] - 1) / annotators[g] * float(np.square(without - without.mean()).sum())
        variance = max(0.0, variance - float(((1 - share) * squares)[group == g].sum()))
        parts.append((variance, kish(labour) - 1))
    of_items = float(np.square(difference - centre).sum()) / n**2
    parts.append((max(0.0, of_items - of_labels) + 2 / (n + 2) ** 2, max(1.0, n - 1)))
    pooled = sums[both].sum(axis=0) / counts[both].sum(axis=0)
    given = counts[both].sum(axis=0).astype(int)
    return Rates(
        rates[:, 0], rates[:, 1], combined(centre, parts), (int(given[0]), int(given[1])),
        (annotators[0], annotators[1]), (float(pooled[0]), float(pooled[1])), np.flatnonzero(both),
        counts[both].astype(int),
    )  # fmt: skip


@dataclass(frozen=True)
class _CategoryComparison:
    """A category's row and those of its pairs, before p is adjusted, with the tests of single items and of spread."""

    row: Comparison
    columns: dict[str, object]
    pairs: list[tuple[Comparison, dict[str, object]]]
    items: ItemsByGroup
    spread: RaterSpread | None
    groups: Sequence[str]

    @property
    def small(self) -> bool:
        """Whether single items, and the spread of annotators, are shown to differ little."""
        return self.items.small and self.spread is not None and self.spread.small


def compare_positive_rates(
    labelled: Labelled,
    settings: AnnotatorGroupsSettings,
    published: Mapping[str, Published],
    classes: Sequence[str] = (),
) -> pa.Table:
    """A table of `GROUP_POSITIVE_RATES`. `test` and `p` are over items only; the verdict is over annotators and items.

    With several classes, each is compared with the rest, and p is adjusted over all of them.

    Args:
        labelled: Labels of one draw.
        settings: Margin and level.
        published: The values that the thesis prints, by category.
        classes: The names of several classes.

    Raises:
        FairnessError: no item was labelled by two groups of any category.

    Examples:
        >>> from itertools import product
        >>> pairs = product(range(30), range(20))
        >>> rows = [(f"i{i}", f"r{r}", int(i % 2 == 0 or (r < 10 and i < 24))) for i, r in pairs]
        >>> item, annotator, label = zip(*rows)
        >>> annotations = pa.table({"item_id": item, "annotator_id": annotator, "label": label})
        >>> groups, places = ["young"] * 10 + ["old"] * 10, [0] * 10 + [1] * 10
        >>> people = {"annotator_id": annotator[:20], "category": ["age"] * 20, "group": groups, "place": places}
        >>> labelled = Labelled.of(annotations, pa.table(people))
        >>> table = compare_positive_rates(labelled, AnnotatorGroupsSettings(), {})
        >>> table.select(["measure", "value_a", "value_b", "verdict"]).to_pylist()
        [{'measure': 'age', 'value_a': 90.0, 'value_b': 50.0, 'verdict': 'biased'}]
    """
    binary, names = (
        labelled.against_rest(classes),
        classes if labelled.labels.classes > 2 else classes[1:] or ("positive",),
    )
    parts = [(part, name, category) for part, name in zip(binary, names, strict=True) for category in part.levels]
    comparisons = [
        comparison
        for part, name, category in parts
        if (comparison := _compare_category(part, name, category, settings))
    ]
    if not comparisons:
        raise FairnessError(
            f"no item was labelled by both groups of any category ({', '.join(labelled.levels)}); they cannot be "
            "compared"
        )
    alpha = settings.alpha
    spreads = [comparison.spread.p for comparison in comparisons if comparison.spread]
    adjusted_p = iter(
        holm(
            [
                *(comparison.row.p_decides for comparison in comparisons),
                *(comparison.items.p for comparison in comparisons),
                *spreads,
            ]
        )
    )
    p_of_means, p_of_items = ([float(next(adjusted_p)) for _ in comparisons] for _ in range(2))
    p_of_raters = [float(next(adjusted_p)) if comparison.spread else 1.0 for comparison in comparisons]
    rows = beside(adjusted([comparison.row for comparison in comparisons]), published)
    table = []
    for row, comparison, p_mean, p_item, p_raters in zip(
        rows, comparisons, p_of_means, p_of_items, p_of_raters, strict=True
    ):
        item_columns = {**_columns_of_items(comparison.items, p_item), **_columns_of_raters(comparison, p_raters)}
        judged = {**asdict(row), **comparison.columns, **item_columns, "p_holm": p_mean}
        judged["verdict"] = verdict(equivalent=row.p_equivalence <= alpha, p_holm=p_mean, alpha=alpha)
        if judged["verdict"] != "biased" and p_item < alpha and not comparison.items.small:
            note = SAME_RATE if judged["verdict"] == "fair" else OTHER_ITEMS
            judged |= {"verdict": "biased", "p_holm": p_item, "note": note}
        elif judged["verdict"] != "biased" and comparison.spread and p_raters < alpha and comparison.spread.matters:
            finding = comparison.spread.describe(comparison.groups[comparison.spread.divided])
            judged |= {"verdict": "biased", "p_holm": p_raters, "note": f"{DIVIDED}: {finding}"}
        elif comparison.pairs and judged["verdict"] == "biased" and judged["ci_low"] <= 0 <= judged["ci_high"]:
            judged["note"] = NO_PAIR
        judged["verdict"] = on_spread(judged["verdict"], shown=False, small=comparison.small)
        table.append(judged)
        p_of_pairs = holm([pair.p_decides for pair, _ in comparison.pairs])
        pair_rows = []
        for (pair, columns), p in zip(comparison.pairs, p_of_pairs, strict=True):
            p_holm = float(max(p, p_mean))
            mean_verdict = verdict(equivalent=pair.p_equivalence <= alpha, p_holm=p_holm, alpha=alpha)
            pair_verdict = on_spread(mean_verdict, shown=False, small=comparison.small)
            pair_rows.append({**asdict(pair), **columns, **item_columns, "p_holm": p_holm, "verdict": pair_verdict})
        if (outlier := _unlike_all(pair_rows)) and not judged["note"]:
            judged["note"] = f"{outlier} {UNLIKE_ALL}"
        table += pair_rows
    return pa.Table.from_pylist(table, schema=GROUP_POSITIVE_RATES)


def _unlike_all(pairs: list[dict[str, Any]]) -> str | None:
    """The only group that differs from each of the others in the same direction."""
    names = dict.fromkeys(name for pair in pairs for name in (pair["group"], pair["against"]))
    outliers = []
    for name in names:
        group_pairs = [pair for pair in pairs if name in (pair["group"], pair["against"])]
        signs = {(pair["difference"] > 0) == (pair["group"] == name) for pair in group_pairs}
        if len(signs) == 1 and all(pair["verdict"] == "biased" for pair in group_pairs):
            outliers.append(name)
    return outliers[0] if len(outliers) == 1 else None


def _compare_category(
    part: Labelled, label: str, category: str, settings: AnnotatorGroupsSettings
) -> _CategoryComparison | None:
    """A category's comparison; None if no item was labelled by two of its groups."""
    levels = part.levels[category]
    pairs = []
    for first, second in combinations(range(len(levels.names)), 2):
        rates = rates_of(part, category, first, second)
        if rates is not None:
            groups = (levels.names[first], levels.names[second])
            pairs.append((_row(category, groups, rates, settings), _columns_of_pair(label, groups, rates), rates))
    if not pairs:
        return None
    items, spread = items_by_group(part.labels, levels.code), rater_spread(part.labels, levels.code)
    if len(levels.names) == 2:
        row, pair_columns, _ = pairs[0]
        return _CategoryComparison(
            replace(row, measure=category), pair_columns | {"contrast": TWO}, [], items, spread, levels.names
        )
    _, pair_columns, rates = max(pairs, key=lambda pair: abs(pair[0].difference))
    p = _scores_exchanged(part.labels, levels.code)
    estimate = rates.estimate.corrected(len(pairs)).in_accord_with(p, settings.alpha)[0]
    largest = _row(
        category,
        (str(pair_columns["group"]), str(pair_columns["against"])),
        rates._replace(estimate=estimate),
        settings,
    )
    all_meet = len(pairs) == math.comb(len(levels.names), 2)
    row = replace(
        largest,
        measure=category,
        paired_test="annotators' scores exchanged (Welch's statistic)",
        paired_statistic=None,
        p_paired=p,
        p_equivalence=max(pair.p_equivalence for pair, _, _ in pairs) if all_meet else 1.0,
    )
    of_pairs = [(pair, columns) for pair, columns, _ in pairs]
    return _CategoryComparison(row, pair_columns | {"contrast": LARGEST}, of_pairs, items, spread, levels.names)


def _row(category: str, groups: tuple[str, str], rates: Rates, settings: AnnotatorGroupsSettings) -> Comparison:
    return compare_groups(
        f"{category}: {groups[0]} − {groups[1]}",
        len(rates.a),
        (float(rates.a.mean()), float(rates.b.mean())),
        rates.estimate,
        settings.margin,
        settings.alpha,
        "annotators and items",
        paired_t(rates.a, rates.b)._replace(name="paired t over items"),
    )


def _columns_of_pair(label: str, groups: tuple[str, str], rates: Rates) -> dict[str, object]:
    return {
        "label": label, "contrast": PAIR, "group": groups[0], "against": groups[1],
        "labels_a": rates.labels[0], "labels_b": rates.labels[1],
        "annotators_a": rates.annotators[0], "annotators_b": rates.annotators[1],
        "pooled_a": 100 * rates.pooled[0], "pooled_b": 100 * rates.pooled[1],
    }  # fmt: skip


def _scores_exchanged(labels: Labels, code: np.ndarray) -> float:
    """The p of equal mean rates of three groups or more. An annotator's score is the mean over their labels of the
    label minus the mean of the item's other labels; scores are permuted among annotators of like labour."""
    labels_per_item, sums = labels.votes.sum(axis=1), labels.of_items(labels.label.astype(float))
    item_labels = labels_per_item[labels.item]
    others = (sums[labels.item] - labels.label) / np.maximum(item_labels - 1, 1)
    shared = item_labels > 1
    count = labels.of_annotators(shared.astype(float))
    score = labels.of_annotators(np.where(shared, labels.label - others, 0.0)) / np.maximum(count, 1)
    group = np.where(count > 0, code, -1)
    return permuted_welch(score, group, 0, of_like_labour(count, group))


SAME_RATE, OTHER_ITEMS = "the same rate, of other items", "single items are labelled otherwise"
"""The reasons for a biased row: its mean rates are shown to differ little, or they are not shown to differ."""
DIVIDED = "a group is divided"
"""The beginning of the note of a biased row whose mean rates are not shown to differ."""


def _columns_of_items(items: ItemsByGroup, p_holm: float) -> dict[str, float | int | None]:
    return {
        "p_items": items.p,
        "p_items_holm": p_holm,
        "items_excess": items.excess,
        "items_typical": 100 * items.typical,
        "items_upper": 100 * items.upper if math.isfinite(items.upper) else None,
        "items_compared": items.items,
    }


def _columns_of_raters(comparison: _CategoryComparison, p_holm: float) -> dict[str, float | str | None]:
    if comparison.spread is None:
        return {}
    return {
        "p_raters": comparison.spread.p,
        "p_raters_holm": p_holm,
        "divided": comparison.groups[comparison.spread.divided],
        "raters_typical": 100 * max(comparison.spread.typical),
        "raters_least": 100 * min(comparison.spread.typical),
        "raters_upper": 100 * comparison.spread.upper,
    }


def by_group(item: np.ndarray, group: np.ndarray, items: int, groups: int) -> np.ndarray:
    """(items, groups): the number of labels of each group, or of each class.

    Args:
        item: (labels,) from 0.
        group: (labels,) from 0; labels of -1 are left out.
        items: The number of items.
        groups: The number of groups.
    """
    known = group >= 0
    cell = item[known] * groups + group[known]
    return np.bincount(cell, minlength=items * groups).reshape(items, groups)
