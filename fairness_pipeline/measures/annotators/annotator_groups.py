"""Do two groups of annotators label the same items differently? (Liu 2022, section 5.2)

Positive rates over the items that both groups labelled (table 5.2), and the analysis of variance of annotators'
sensitivities and specificities against the majority vote (table 5.3).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import scipy

from fairness_pipeline.annotation.bias_estimates import BIAS_ESTIMATES
from fairness_pipeline.annotation.inference import people, task_table
from fairness_pipeline.annotation.truth_inference.base import EPSILON, Labels
from fairness_pipeline.corpora.annotators.annotated_corpus import of_class
from fairness_pipeline.corpora.annotators.annotations import ANNOTATORS
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.foundation.yaml_files import Share, Specification
from fairness_pipeline.measures.annotators.item_by_group import ItemsByGroup, items_by_group
from fairness_pipeline.statistics.comparison import COMPARISON, Published, adjusted, beside, compare_groups
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.intervals import Estimate, combined
from fairness_pipeline.statistics.paired import paired_t
from fairness_pipeline.statistics.verdicts import FAIR_ON_AVERAGE, verdict

if TYPE_CHECKING:
    import pandas as pd

RESPONSES = ("sensitivity", "specificity")
GROUP_POSITIVE_RATES = schema(
    COMPARISON,
    measure="the category whose two groups are compared; of several classes with the class",
    n="items that both groups labelled",
    value_a="mean over these items of the share of the first group's labels that are positive",
    value_b="the same of the second group",
    ci_low="lower end of the 95% interval: of a difference, of a contrast, of a score",
    ci_high="upper end of that interval",
    test="paired t over items alone, which takes labels of one annotator for independent",
    p_holm="p adjusted by Holm: over a corpus's categories, or over a draw's contrasts",
    paired_test="over annotators and items: the verdict's",
    paper_verdict="fair or biased by items alone",
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
)
"""One row per category, which is its `measure`. A value is the mean over items of a group's share of positive labels.
`pooled_*` is the share of positive labels among all of a group's labels of these items.

`p_items` is the p of the interaction of item and group. `p_items_holm` is adjusted over the means and interactions of
all categories, like `p_holm`. `items_excess` is how many times more the items' differences vary than by chance.
`items_typical` is the root mean square difference of single items in points, with its upper 95% bound `items_upper`,
over `items_compared` items with two labels from each group. A category is `fair` only if both the mean and single items
are shown to differ little. If the mean does not differ but single items do, it is `biased`: the rates are similar, but
the groups call other items positive.
"""
ANNOTATOR_ANOVA = schema(
    **fields(ANNOTATORS, "category"),
    **fields(BIAS_ESTIMATES, "response"),
    annotators=(pa.int64(), "annotators whose groups are known and who labelled items of the class"),
    sum_of_squares=(pa.float64(), "between the groups, after all other categories (type II)"),
    stars=(pa.string(), "* below 0.05, ** below 0.005"),
    mean_a=optional(pa.float64(), "mean response of the first group's annotators, against the majority vote"),
    mean_b=optional(pa.float64(), "mean response of the second group's annotators"),
    f=optional(pa.float64(), "its F"),
    **fields(COMPARISON, "p"),
    published_sum_of_squares=optional(pa.float64(), "what the thesis prints"),
    published_stars=optional(pa.string(), "what the thesis prints"),
)
"""One row per category and response. The means are over the annotators of each group. F and p are null if they
cannot be computed: too few annotators, or a category that the other categories determine."""
STARS = ((0.005, "**"), (0.05, "*"))


class AnnotatorGroupsSettings(Specification):
    """How groups of annotators are judged."""

    margin: Margin = Margin(cohens_h=0.1)
    """The largest difference of positive rates that does not matter."""
    alpha: Share = 0.05
    """Level of the tests."""


class Labelled(NamedTuple):
    """Labels as integers, and each annotator's side in every category: 0 (a), 1 (b), -1 (unknown)."""

    labels: Labels
    sides: dict[str, np.ndarray]

    @classmethod
    def of(cls, annotations: pa.Table, annotators: pa.Table, classes: int = 2) -> "Labelled":
        """Reads tables of `ANNOTATIONS` and `ANNOTATORS`, of one draw."""
        labels = Labels.of(task_table(annotations), classes)
        return cls(labels, {str(name): _sides(own, labels) for name, own in people(annotators).items()})

    def against_rest(self, names: Sequence[str]) -> list["Labelled"]:
        """Labels of two classes: these, or of several classes each against the rest, its name behind the category's.

        Args:
            names: The names of the classes.
        """
        if self.labels.classes == 2:
            return [self]
        return [
            Labelled(
                self.labels.one_against_rest(number),
                {of_class(category, name): own for category, own in self.sides.items()},
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


def rates_of(labelled: Labelled, category: str) -> Rates | None:
    """Both groups' rates and their difference. None if no item was labelled by both groups.

    The same people label many items, so items are not independent. The variance has two parts: that of leaving out one
    annotator (the jackknife, within each group), and what items add to it. The second part is the variance over items
    minus that of single labels, as for two crossed clusterings (Cameron, Gelbach and Miller 2011). The degrees of
    freedom come from the effective number of annotators (Kish 1965). One item that differs each way is added, so that
    agreement on a few items does not claim certainty.

    Args:
        labelled: Labels of one draw.
        category: The category whose groups are compared.
    """
    labels, side = labelled.labels, labelled.sides[category][labelled.labels.annotator]
    size = len(labels.items)
    counts, sums = _by_group(labels, side, size)
    both = np.asarray((counts > 0).all(axis=1))
    if not both.any():
        return None
    n = int(both.sum())
    rates = sums[both] / counts[both]
    difference = rates[:, 0] - rates[:, 1]
    centre = float(difference.mean())
    place = np.full(size, -1)
    place[both] = np.arange(n)
    kept = (side >= 0) & both[labels.item]
    item, group, who, z = place[labels.item[kept]], side[kept], labels.annotator[kept], labels.label[kept]
    own, total = counts[both][item, group], sums[both][item, group]
    alone = own == 1
    # Without one label a group's rate is (total - z) / (own - 1). Without its only label the item is dropped.
    fallen = (total - own * z) / np.maximum(own * (own - 1), 1)
    moved = np.where(alone, -difference[item], np.where(group == 0, fallen, -fallen))
    # A label's own variance counts own / (own - 1) times, as the labels it is compared with vary too. What the labels
    # of an annotator have in common does not.
    compared = np.where(alone, counts[both][item, 1 - group], own - 1)
    once = compared / (compared + 1)
    squares = np.square((n * centre + moved) / np.maximum(n - alone, 1) - centre)
    of_labels = float((once * squares).sum())
    parts, annotators = [], []
    people = len(labels.annotators)
    for g in (0, 1):
        shift = np.bincount(who[group == g], moved[group == g], people)
        fewer = np.bincount(who[group == g], alone[group == g], people)
        given = np.bincount(who[group == g], minlength=people)
        present = given > 0
        annotators.append(int(present.sum()))
        if annotators[g] < 2 or (n - fewer[present]).min() <= 0:
            parts.append((np.inf, 1.0))
            continue
        without = (n * centre + shift[present]) / (n - fewer[present])
        variance = (annotators[g] - 1) / annotators[g] * float(np.square(without - without.mean()).sum())
        variance = max(0.0, variance - float(((1 - once) * squares)[group == g].sum()))
        parts.append((variance, float(given.sum() ** 2 / np.square(given).sum()) - 1))
    of_items = float(np.square(difference - centre).sum()) / n**2
    parts.append((max(0.0, of_items - of_labels) + 2 / (n + 2) ** 2, max(1.0, n - 1)))
    pooled = sums[both].sum(axis=0) / counts[both].sum(axis=0)
    given = counts[both].sum(axis=0).astype(int)
    return Rates(
        rates[:, 0], rates[:, 1], combined(centre, parts), (int(given[0]), int(given[1])),
        (annotators[0], annotators[1]), (float(pooled[0]), float(pooled[1])), np.flatnonzero(both),
        counts[both].astype(int),
    )  # fmt: skip


def compare_positive_rates(
    labelled: Labelled,
    settings: AnnotatorGroupsSettings,
    published: Mapping[str, Published],
    classes: Sequence[str] = (),
) -> pa.Table:
    """A table of `GROUP_POSITIVE_RATES`. `test` and `p` are over items only; the verdict is over annotators and items.

    Of several classes each is compared against the rest, and p is adjusted over all of them.

    Args:
        labelled: Labels of one draw.
        settings: Margin and level.
        published: The values that the thesis prints, by category.
        classes: The names of several classes.

    Raises:
        FairnessError: no item was labelled by both groups of any category.

    Examples:
        >>> from itertools import product
        >>> pairs = product(range(30), range(20))
        >>> rows = [(f"i{i}", f"r{r}", int(i % 2 == 0 or (r < 10 and i < 24))) for i, r in pairs]
        >>> item, who, label = zip(*rows)
        >>> annotations = pa.table({"item_id": item, "annotator_id": who, "label": label})
        >>> sides = {"annotator_id": who[:20], "category": ["age"] * 20, "side": ["a"] * 10 + ["b"] * 10}
        >>> labelled = Labelled.of(annotations, pa.table(sides))
        >>> found = compare_positive_rates(labelled, AnnotatorGroupsSettings(), {})
        >>> found.select(["measure", "value_a", "value_b", "verdict"]).to_pylist()
        [{'measure': 'age', 'value_a': 90.0, 'value_b': 50.0, 'verdict': 'biased'}]
    """
    rows, own = [], {}
    items: dict[str, ItemsByGroup] = {}
    compared = [(part, category) for part in labelled.against_rest(classes) for category in part.sides]
    for part, category in compared:
        found = rates_of(part, category)
        if found is None:
            continue
        rows.append(
            compare_groups(
                category,
                len(found.a),
                (float(found.a.mean()), float(found.b.mean())),
                found.estimate,
                settings.margin,
                settings.alpha,
                "annotators and items",
                paired_t(found.a, found.b)._replace(name="paired t over items"),
            )
        )
        own[category] = {
            f"{name}_{side}": getattr(found, name)[place]
            for name in ("labels", "annotators", "pooled")
            for place, side in enumerate("ab")
        }
        for side in "ab":
            own[category][f"pooled_{side}"] *= 100
        items[category] = items_by_group(part.labels, part.sides[category])
    if not rows:
        raise FairnessError(
            f"no item was labelled by both groups of any category ({', '.join(labelled.sides)}); they cannot be "
            "compared"
        )
    adjusted_p = holm([*(row.p_decides for row in rows), *(found.p for found in items.values())])
    means, singles = adjusted_p[: len(rows)], adjusted_p[len(rows) :]
    table = [
        {
            **asdict(row),
            **own[row.measure],
            "p_holm": float(p_mean),
            "verdict": verdict(equivalent=row.p_equivalence <= settings.alpha, p_holm=p_mean, alpha=settings.alpha),
            **_of_items(items[row.measure], float(p_item)),
        }
        for row, p_mean, p_item in zip(beside(adjusted(rows), published), means, singles, strict=True)
    ]
    for row in table:
        single = items[row["measure"]]
        if row["verdict"] != "biased" and row["p_items_holm"] < settings.alpha and not single.small:
            note = SAME_RATE if row["verdict"] == "fair" else OTHER_ITEMS
            row |= {"verdict": "biased", "p_holm": row["p_items_holm"], "note": note}
        elif row["verdict"] == "fair" and not single.small:
            row["verdict"] = FAIR_ON_AVERAGE
    return pa.Table.from_pylist(table, schema=GROUP_POSITIVE_RATES)


SAME_RATE, OTHER_ITEMS = "the same rate, of other items", "single items are labelled otherwise"
"""The reasons for a biased row: its mean rates are shown to differ little, or they are not shown to differ."""


def _of_items(found: ItemsByGroup, p_holm: float) -> dict[str, float | int | None]:
    return {
        "p_items": found.p,
        "p_items_holm": p_holm,
        "items_excess": found.excess,
        "items_typical": 100 * found.typical,
        "items_upper": 100 * found.upper if math.isfinite(found.upper) else None,
        "items_compared": found.items,
    }


def against_majority(labels: Labels) -> dict[str, np.ndarray]:
    """Each annotator's sensitivity and specificity against the majority vote (a tie is positive). NaN without any item.

    An annotator's own label is part of the vote, as in the thesis.

    Args:
        labels: The labels of all annotators.
    """
    truth = np.asarray(labels.positive_shares() >= 0.5 - EPSILON)[labels.item]
    right = labels.label == truth
    found = {}
    for response, about in zip(RESPONSES, (truth, ~truth), strict=True):
        count = labels.of_annotators(about.astype(float))
        agreed = labels.of_annotators((about & right).astype(float))
        found[response] = np.where(count > 0, agreed / np.maximum(count, 1), np.nan)
    return found


def analyse_variance(labelled: Labelled, published: Mapping[tuple[str, str], tuple[float, str]]) -> pa.Table:
    """A table of `ANNOTATOR_ANOVA`: additive, type II (each category after all others).

    Two kinds of annotators are left out: those with an unknown group in some category, and those who labelled no item
    of a class.

    Args:
        labelled: Labels of one draw.
        published: The sum of squares and the stars that the thesis prints, by category and response.
    """
    known = np.all([own >= 0 for own in labelled.sides.values()], axis=0)
    rows = []
    for response, values in against_majority(labelled.labels).items():
        kept = known & np.isfinite(values)
        y = values[kept]
        columns = [np.where(own[kept] == 0, 1.0, -1.0) for own in labelled.sides.values()]
        rank = _rank(columns, len(y))
        freedom = len(y) - rank
        whole = _residual(columns, y)
        for place, (category, own) in enumerate(labelled.sides.items()):
            others = columns[:place] + columns[place + 1 :]
            squares = max(0.0, _residual(others, y) - whole)
            told = freedom > 0 and _rank(others, len(y)) < rank and max(whole, squares) > EPSILON
            f = squares / (whole / freedom) if told and whole > EPSILON else math.inf if told else None
            p = None if f is None else float(scipy.special.fdtrc(1, freedom, f)) if math.isfinite(f) else 0.0
            printed = published.get((category, response), (None, None))
            means = [y[own[kept] == side] for side in (0, 1)]
            rows.append(
                {
                    "category": category, "response": response, "annotators": len(y),
                    "mean_a": _mean(means[0]), "mean_b": _mean(means[1]), "sum_of_squares": squares,
                    "f": None if f is None else float(f), "p": p, "stars": "" if p is None else stars(p),
                    "published_sum_of_squares": printed[0], "published_stars": printed[1],
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows, schema=ANNOTATOR_ANOVA)


def stars(p: float) -> str:
    """The significance marks of the thesis: * below 0.05, ** below 0.005.

    Examples:
        >>> stars(0.001), stars(0.01), stars(0.5)
        ('**', '*', '')
    """
    return next((mark for level, mark in STARS if p < level), "")


def _by_group(labels: Labels, side: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(items, 2): the number of labels of each group, and the number of positive ones."""
    counts = [np.bincount(labels.item[side == g], minlength=size) for g in (0, 1)]
    sums = [np.bincount(labels.item[side == g], labels.label[side == g], size) for g in (0, 1)]
    return np.stack(counts, axis=1), np.stack(sums, axis=1)


def _sides(column: "pd.Series", labels: Labels) -> np.ndarray:
    own = column.reindex(labels.annotators)
    return np.select([(own == "a").to_numpy(), (own == "b").to_numpy()], [0, 1], -1)


def _residual(columns: list[np.ndarray], y: np.ndarray) -> float:
    """The residual sum of squares of y, regressed on a constant and the columns."""
    if not len(y):
        return 0.0
    design = np.column_stack([np.ones(len(y)), *columns])
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(np.square(y - fitted).sum())


def _rank(columns: list[np.ndarray], count: int) -> int:
    return int(np.linalg.matrix_rank(np.column_stack([np.ones(count), *columns]))) if count else 0


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
