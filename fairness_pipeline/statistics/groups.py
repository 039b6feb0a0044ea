"""Effects of any number of groups on an outcome, with the items absorbed and the clusters of items as the sample.

A *cell* is the mean outcome of an item and a group. Cells may be missing. y_ig = item_i + b_g + error, sum of b_g = 0:
the item's mean is subtracted from y and from the k dummies X of the groups, and b = (X'X)^+ X'y. Cluster c contributes
the scores s_c = (X'X)^+ X_c'y_c, k numbers, which add up to b (`relabelling.py` exchanges them).
"""

import math
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.statistics.intervals import Estimate, quantile

_EXACT = 400
"""Up to this many clusters the errors are CR2 with Satterthwaite's degrees of freedom."""
_MOST_FREEDOMS = 300
"""Up to this many contrasts, each has its own degrees of freedom; more all get the smallest of any group's."""
_ROUNDING = 1e-12
"""The largest rounding error, relative to the largest value."""


class Cells(NamedTuple):
    """Outcomes by item and group, draws averaged.

    Attributes:
        value: (n,) the outcome of each cell.
        item: (n,) its item, numbered from 0.
        group: (n,) its group, numbered from 0.
        cluster: (items,) the cluster of each item, numbered from 0.
        groups: The names of the groups.
        name: (n,) the name (a first name, say) that represents the group, numbered from 0, and nested in a group; None
            without names.
    """

    value: np.ndarray
    item: np.ndarray
    group: np.ndarray
    cluster: np.ndarray
    groups: tuple[str, ...]
    name: np.ndarray | None = None

    def without_names(self) -> "Cells":
        """The cells, averaged over the names of an item and a group."""
        key = self.item * len(self.groups) + self.group
        _, first, cell = np.unique(key, return_index=True, return_inverse=True)
        value = np.bincount(cell, self.value) / np.bincount(cell)
        return Cells(value, self.item[first], self.group[first], self.cluster, self.groups)


class NoMeeting(FairnessError):
    """Groups never meet in an item, so they cannot be compared."""


class Errors(NamedTuple):
    """The estimates of several contrasts and their standard errors.

    Attributes:
        centre: (m,) the estimates.
        error: (m,) the error of each contrast alone.
        widest: (m,) the larger of `error` and the error pooled over all pairs of groups. Intervals and equivalence rest
            on it: a group that varies less than the others by chance must not be called certain.
        freedom: (m,) the degrees of freedom.
    """

    centre: np.ndarray
    error: np.ndarray
    widest: np.ndarray
    freedom: np.ndarray

    def estimates(self) -> list[Estimate]:
        """The estimates with their `widest` errors."""
        return [Estimate(*map(float, row)) for row in zip(self.centre, self.widest, self.freedom, strict=True)]

    @property
    def p(self) -> np.ndarray:
        """(m,) the two-sided p of Student's t test of each contrast, by its `error` alone."""
        rows = zip(self.centre, self.error, self.freedom, strict=True)
        return np.array([Estimate(*map(float, row)).p_zero() if row[1] > 0 else float(row[0] == 0) for row in rows])


class Fit:
    """The groups' effects in some cells.

    Args:
        cells: The cells; any two groups meet in some item, directly or through a chain of groups.

    Attributes:
        effects: (k,) the effect of each group; their sum is 0.
        values: (k,) the mean outcome of each group in the same items.
        scores: (clusters, k) what each cluster contributes to the effects.
        effective: The number of clusters of equal size that would weigh as much.

    Raises:
        NoMeeting: the groups do not meet.

    Examples:
        >>> value = np.array([1.0, 2.0, 2.0, 4.0, 3.0, 6.0])
        >>> item, group = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1] * 3)
        >>> fit = Fit(Cells(value, item, group, np.arange(3), ("a", "b")))
        >>> fit.errors(pairs(2)).estimates()[0].interval(0.95)
        (-4.484..., 0.484...)
    """

    def __init__(self, cells: Cells) -> None:
        self.groups, count = cells.groups, len(cells.groups)
        items = len(cells.cluster)
        sizes = np.bincount(cells.item, minlength=items)
        counts = np.bincount(cells.item * count + cells.group, minlength=items * count).reshape(items, count)
        self._shares = counts / np.maximum(sizes, 1)[:, None]  # of each item's cells
        self._counts, self._cells = counts, cells
        gram = np.diag(counts.sum(axis=0)) - counts.T @ self._shares
        values, vectors = np.linalg.eigh(gram)
        kept = values > 1e-9 * max(1.0, float(values[-1]))
        if kept.sum() < count - 1:
            raise NoMeeting(_never_meet(vectors[:, ~kept], cells.groups))
        self._root = vectors[:, kept] / np.sqrt(values[kept])
        self._inverse = self._root @ self._root.T
        _, self._cluster = np.unique(cells.cluster, return_inverse=True)
        self.clusters = int(self._cluster.max()) + 1
        weight = np.bincount(self._cluster, sizes, self.clusters)
        self.effective = float(weight.sum() ** 2 / np.square(weight).sum())
        products = self._products(cells.value)
        self.scores = products @ self._inverse
        self.effects = self.scores.sum(axis=0)
        self._residual = self._products(cells.value - self.effects[cells.group])
        self.values = float((cells.value - self.effects[cells.group]).mean()) + self.effects
        self.covariance = self._covariance()

    def _products(self, value: np.ndarray) -> np.ndarray:
        """X_c'y_c of each cluster, (clusters, k)."""
        cells, (items, count) = self._cells, self._counts.shape
        sums = np.bincount(cells.item * count + cells.group, value, items * count).reshape(items, count)
        centred = sums - self._shares * sums.sum(axis=1, keepdims=True)
        return sum_by(self._cluster, centred, self.clusters)

    def _covariance(self) -> np.ndarray:
        """The covariance of the effects, (k, k): CR2, or CR1 of many clusters."""
        if self.clusters < 2:
            return np.full((len(self.groups),) * 2, np.inf)
        scores = self._residual @ self._root
        if self.clusters <= _EXACT:
            scores = (self._adjustments @ scores[..., None])[..., 0]
        return self._root @ (scores.T @ scores) @ self._root.T

    def _variances(self, contrasts: np.ndarray) -> np.ndarray:
        variance = quadratic(contrasts, self.covariance)
        if self.clusters <= _EXACT:
            return variance
        return variance / np.maximum(1 - self._concentration(contrasts), 1e-9)

    def _concentration(self, contrasts: np.ndarray) -> np.ndarray:
        """The sum of squares of the clusters' shares in the information on each contrast: 1 / G if all contribute
        equally, and more for a group that only few clusters contain."""
        sums = []
        for weights in np.array_split(contrasts @ self._inverse, max(1, len(contrasts) // 64)):
            by_item = self._counts @ np.square(weights).T - (self._counts @ weights.T) * (self._shares @ weights.T)
            information = sum_by(self._cluster, by_item, self.clusters)
            sums.append(np.square(information / information.sum(axis=0)).sum(axis=0))
        return np.concatenate(sums)

    @cached_property
    def _blocks(self) -> np.ndarray:
        """B_c = Q'X_c'X_cQ of each cluster, with QQ' = (X'X)^+; they add up to the identity."""
        count = len(self.groups)
        blocks = np.zeros((self.clusters, count, count))
        order = np.argsort(self._cluster, kind="stable")
        bounds = np.searchsorted(self._cluster[order], np.arange(self.clusters + 1))
        for number in range(self.clusters):
            items = order[bounds[number] : bounds[number + 1]]
            counts = self._counts[items]
            blocks[number] = np.diag(counts.sum(axis=0)) - counts.T @ self._shares[items]
        return self._root.T @ blocks @ self._root

    @cached_property
    def _adjustments(self) -> np.ndarray:
        """(I - B_c)^(-1/2), with a generalised inverse where a cluster alone decides a contrast."""
        values, vectors = np.linalg.eigh(np.eye(self._root.shape[1]) - self._blocks)
        roots = np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0.0)
        return (vectors * roots[:, None]) @ np.swapaxes(vectors, 1, 2)

    def errors(self, contrasts: np.ndarray) -> Errors:
        """The contrasts with their cluster-robust errors (CR2 with Satterthwaite's degrees of freedom, Bell and
        McCaffrey 2002; for two groups and a cluster an item the paired t test).

        Args:
            contrasts: (m, k) weights of the groups, each with sum 0.
        """
        variance = self._variances(contrasts)
        pooled = self._pooled * quadratic(contrasts, self._inverse)
        return Errors(
            contrasts @ self.effects,
            np.sqrt(variance),
            np.sqrt(np.maximum(variance, pooled)),
            self._freedoms(contrasts),
        )

    def covariance_over_cells(self) -> np.ndarray:
        """The covariance of the effects if every cell were independent (HC1), (k, k)."""
        cells, (items, count) = self._cells, self._counts.shape
        residual = cells.value - self.effects[cells.group]
        residual = residual - (np.bincount(cells.item, residual, items) / np.bincount(cells.item))[cells.item]
        cell = cells.item * count + cells.group
        squares = np.bincount(cell, np.square(residual), items * count).reshape(items, count)
        crossed = squares.T @ self._shares
        meat = np.diag(squares.sum(axis=0)) - crossed - crossed.T
        meat += (self._shares * squares.sum(axis=1, keepdims=True)).T @ self._shares
        factor = len(cells.value) / max(1, len(cells.value) - items - count + 1)
        return factor * self._inverse @ meat @ self._inverse

    @cached_property
    def _pooled(self) -> float:
        """The variance of a cell that the errors of all pairs of groups imply on average."""
        contrasts = pairs(len(self.groups))
        return float((self._variances(contrasts) / quadratic(contrasts, self._inverse)).mean())

    def typical_error(self) -> float:
        """The error of a typical pair of groups, pooled."""
        return math.sqrt(self._pooled * float(quadratic(pairs(len(self.groups)), self._inverse).mean()))

    def _freedoms(self, contrasts: np.ndarray) -> np.ndarray:
        """Satterthwaite's degrees of freedom if errors are independent: the clusters' contributions to a contrast
        then have covariance diag(u) - V V'."""
        if self.clusters < 2:
            return np.ones(len(contrasts))
        if self.clusters > _EXACT:
            return np.maximum(1.0, 1 / self._concentration(contrasts) - 1)
        if len(contrasts) > _MOST_FREEDOMS:
            return np.full(len(contrasts), self._freedoms(each_against_others(len(self.groups))).min())
        weights = (contrasts @ self._root) @ self._adjustments
        projected = weights @ self._blocks
        u = (projected * weights).sum(axis=2).T
        norms = np.square(projected).sum(axis=2).T
        by_contrast = np.swapaxes(projected, 0, 1)
        products = np.swapaxes(by_contrast, 1, 2) @ by_contrast
        squared = np.square(u).sum(axis=1) - 2 * (u * norms).sum(axis=1) + np.square(products).sum(axis=(1, 2))
        trace = u.sum(axis=1) - norms.sum(axis=1)
        return np.maximum(1.0, np.where(squared > 0, trace**2 / np.where(squared > 0, squared, 1.0), 1.0))

    @cached_property
    def meetings(self) -> "Meetings":
        """Where each pair of groups meets, and where it differs."""
        cells, (items, count) = self._cells, self._counts.shape
        sums = np.bincount(cells.item * count + cells.group, cells.value, items * count).reshape(items, count)
        means = np.divide(sums, self._counts, out=np.zeros(sums.shape), where=self._counts > 0)
        tolerance = _ROUNDING * max(1e-300, float(np.abs(cells.value).max()))
        meetings = []
        for first, second in zip(*np.triu_indices(count, 1), strict=True):
            both = (self._counts[:, first] > 0) & (self._counts[:, second] > 0)
            differs = np.abs(means[both, first] - means[both, second]) > tolerance
            weight = np.bincount(self._cluster[both], minlength=self.clusters)
            differing = np.bincount(self._cluster[both], differs, self.clusters) > 0
            share = weight / max(1, weight.sum())
            effective = min((share > 0).sum(), 1 / share.max()) if share.any() else 0.0
            even = 1 / np.square(share).sum() if share.any() else 0.0
            meetings.append(((share > 0).sum(), differing.sum(), effective, share[differing].sum(), even))
        return Meetings(*(np.array(column, dtype=float) for column in zip(*meetings, strict=True)))


class Meetings(NamedTuple):
    """Where pairs of groups meet and differ, in the order of `pairs`.

    Attributes:
        clusters: (pairs,) clusters with an item that both groups have.
        differing: (pairs,) the clusters in which such an item differs between the groups.
        effective: (pairs,) the number of clusters if each weighed as much as the heaviest: an exact bound on the share
            that differs may not assume more.
        share: (pairs,) by weight, the share of clusters that differ.
        even: (pairs,) the number of clusters of equal size that would weigh as much together (Kish 1965).
    """

    clusters: np.ndarray
    differing: np.ndarray
    effective: np.ndarray
    share: np.ndarray
    even: np.ndarray


def pairs(count: int) -> np.ndarray:
    """The contrasts of all pairs of `count` groups, the first of a pair minus the second: (pairs, count)."""
    first, second = np.triu_indices(count, 1)
    return of_two(first, second, count)


def index_of_pair(first: np.ndarray, second: np.ndarray, count: int) -> np.ndarray:
    """The indices of pairs of groups, in either order, in the order of `pairs`: (m,)."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return low * count - low * (low + 1) // 2 + high - low - 1


def of_two(first: np.ndarray, second: np.ndarray, count: int) -> np.ndarray:
    """The contrasts of two groups each, the first minus the second: (m, count)."""
    identity = np.eye(count)
    return identity[first] - identity[second]


def each_against_others(count: int) -> np.ndarray:
    """The contrasts of each of `count` groups with the mean of the others."""
    return (count * np.eye(count) - 1) / (count - 1)


def clusters_needed(typical_error: float, groups: int, clusters: float, margin: float) -> int | None:
    """The number of clusters like these that would show that no two groups differ by the margin, with 80% power, if
    none differs: 2 (s x_k / m)^2, where s is the standard deviation of a cluster's value for one group and x_k = 1.645
    + q80(range of k normal numbers) / sqrt 2.

    Args:
        typical_error: The error of a typical pair of groups.
        groups: The number of groups.
        clusters: The effective number of clusters that it comes from.
        margin: The largest difference that does not matter.

    Examples:
        >>> clusters_needed(1.0, 2, 16, 2.0)
        35
    """
    if margin <= 0 or not math.isfinite(typical_error):
        return None
    reach = quantile(0.95) + _q80_of_range(groups) / math.sqrt(2)
    return math.ceil(clusters * (typical_error * reach / margin) ** 2)


def clusters_if_no_more_differ(differing: int, margin: float, alpha: float = 0.05) -> int:
    """The number of clusters that shows that the rates of two groups differ by less than the margin, if no more
    clusters differ: log alpha / log (1 - m) if none does.

    Examples:
        >>> [clusters_if_no_more_differ(count, 0.02) for count in (0, 1)], clusters_if_no_more_differ(0, 0.05)
        ([149, 236], 59)
    """
    if not 0 < margin < 1:
        return 1
    most = math.ceil((differing + 1 + 3 * math.sqrt(differing + 1) + 2) / margin)
    sizes = np.arange(differing + 1, most + 1)
    return int(sizes[np.argmax(p_most_that_differ(np.full(len(sizes), differing), sizes, margin) <= alpha)])


def p_most_that_differ(differing: np.ndarray, clusters: np.ndarray, margin: float) -> np.ndarray:
    """The p that a larger share of clusters differs than the margin, by the same bound.

    Examples:
        >>> p_most_that_differ(np.array([0, 5]), np.array([149, 5]), 0.02).round(4).tolist()
        [0.0493, 1.0]
    """
    from scipy.special import betaincc

    alike = np.maximum(clusters - differing, 1e-9)
    return np.where(differing >= clusters, 1.0, betaincc(differing + 1, alike, min(margin, 1.0)))


def sum_by(number: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """The sums of the rows with the same number, (count, columns)."""
    return np.stack([np.bincount(number, column, count) for column in rows.T], axis=1)


@lru_cache
def _q80_of_range(count: int) -> float:
    """The 80% quantile of the range of `count` independent standard normal numbers."""
    from scipy.stats import studentized_range  # here, as loading it takes long

    return float(studentized_range.ppf(0.8, count, np.inf))


def quadratic(contrasts: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """l'Ml of each contrast l, at least 0: (m,)."""
    if not np.isfinite(matrix).all():
        return np.full(len(contrasts), np.inf)
    return np.maximum(0.0, ((contrasts @ matrix) * contrasts).sum(axis=1))


def _never_meet(directions: np.ndarray, groups: tuple[str, ...]) -> str:
    """The message about groups that never meet. Groups that are alike in every undetermined direction do meet."""
    connected: dict[tuple[float, ...], list[str]] = {}
    for group, position in zip(groups, np.round(directions, 6), strict=True):
        connected.setdefault(tuple(position), []).append(group)
    first, second = list(connected.values())[:2] if len(connected) > 1 else ([groups[0]], [groups[-1]])
    return (
        f"groups {', '.join(map(repr, first[:3]))} and {', '.join(map(repr, second[:3]))} never meet in an item, so "
        "that nothing compares them; name the column whose values stay the same when only the group changes"
    )
