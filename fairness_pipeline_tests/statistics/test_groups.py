"""Compares effects of groups with direct matrix computations, other libraries, and hand-computed cases."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from statsmodels.stats.proportion import confint_proportions_2indep

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.outcomes.group_effects import GroupEffects
from fairness_pipeline.statistics.group_names import NamedFit
from fairness_pipeline.statistics.groups import (
    Cells,
    Fit,
    clusters_if_no_more_differ,
    clusters_needed,
    each_against_others,
    pairs,
)
from fairness_pipeline.statistics.intervals import most_that_differ
from fairness_pipeline.statistics.rate_ratios import Selected, koopman, log_ratio_variance, rate_ratio, word_of
from fairness_pipeline.statistics.relabelling import flipped, intersections, relabel
from fairness_pipeline.statistics.signed import mean_over_clusters, signed_means
from fairness_pipeline_tests.measures.outcomes.planted import exchanged, simulated


@pytest.fixture
def cells() -> Cells:
    """Twelve clusters of unequal size, a fifth of the cells missing."""
    return simulated(np.random.default_rng(3), clusters=12, groups=4, rate=None, missing=0.2, unequal=True)


def _dense(cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """The dummies and the outcomes, with each item's mean subtracted."""
    x, y = np.eye(len(cells.groups))[cells.group], cells.value.copy()
    for item in np.unique(cells.item):
        mask = cells.item == item
        x[mask] -= x[mask].mean(axis=0)
        y[mask] -= y[mask].mean()
    return x, y


def test_effects_and_errors_are_those_of_the_dense_matrices(cells: Cells) -> None:
    x, y = _dense(cells)
    fit, inverse = Fit(cells), np.linalg.pinv(x.T @ x)
    effects = inverse @ x.T @ y
    assert_allclose(fit.effects, effects, atol=1e-10)
    assert_allclose(fit.scores.sum(axis=0), effects, atol=1e-10)
    contrasts = np.concatenate([pairs(4), each_against_others(4)])
    cluster_of = cells.cluster[cells.item]
    residual, hat = y - x @ effects, x @ inverse @ x.T
    parts, weights = [], []
    for cluster in np.unique(cluster_of):
        mask = cluster_of == cluster
        values, vectors = np.linalg.eigh(np.eye(mask.sum()) - hat[np.ix_(mask, mask)])
        adjustment = vectors @ np.diag(np.where(values > 1e-9, 1 / np.sqrt(np.maximum(values, 1e-9)), 0)) @ vectors.T
        parts.append(contrasts @ inverse @ x[mask].T @ adjustment @ residual[mask])
        whole = np.zeros((len(contrasts), len(y)))
        whole[:, mask] = contrasts @ inverse @ x[mask].T @ adjustment
        weights.append(whole @ (np.eye(len(y)) - hat))
    errors = fit.errors(contrasts)
    assert_allclose(errors.error, np.sqrt(np.square(parts).sum(axis=0)), rtol=1e-8)
    # The working model of independent errors: the clusters' covariance, contrast by contrast. Items are absorbed.
    absorbed = np.eye(len(y))
    for item in np.unique(cells.item):
        mask = cells.item == item
        absorbed[np.ix_(mask, mask)] -= 1 / mask.sum()
    for index in range(len(contrasts)):
        g = np.stack([whole[index] for whole in weights]) @ absorbed
        covariance = g @ g.T
        freedom = np.trace(covariance) ** 2 / np.square(covariance).sum()
        assert errors.freedom[index] == pytest.approx(freedom, rel=1e-6)
    assert (errors.widest >= errors.error).all()


def test_two_groups_are_the_paired_t_test() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 30))
    item = np.repeat(np.arange(30), 2)
    fit = Fit(Cells(np.stack([a, b], axis=1).ravel(), item, np.tile([0, 1], 30), np.arange(30), ("a", "b")))
    (estimate,) = fit.errors(pairs(2)).estimates()
    expected = scipy.stats.ttest_rel(a, b)
    assert estimate.freedom == pytest.approx(29)
    assert estimate.p_zero() == pytest.approx(expected.pvalue)
    assert_allclose(estimate.interval(0.95), expected.confidence_interval())
    assert_allclose(fit.values, [a.mean(), b.mean()])


def test_many_clusters_take_the_plain_factor() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(size=(2, 500))
    cells = Cells(
        np.stack([a, b], axis=1).ravel(), np.repeat(np.arange(500), 2), np.tile([0, 1], 500), np.arange(500), ("a", "b")
    )
    (estimate,) = Fit(cells).errors(pairs(2)).estimates()
    assert estimate.error == pytest.approx(scipy.stats.sem(a - b))


def test_groups_that_never_meet_are_refused() -> None:
    cells = Cells(
        np.arange(8.0), np.repeat(np.arange(4), 2), np.array([0, 1, 0, 1, 2, 3, 2, 3]), np.arange(4), tuple("abcd")
    )
    with pytest.raises(FairnessError, match=r"groups 'a', 'b' and 'c', 'd' never meet in an item"):
        Fit(cells)


def test_formulas() -> None:
    # Note: x_k = 2.93, 3.36, 4.14, 4.81 for k = 2, 3, 8, 24; 149 clusters for 2 points, 59 for 5.
    for groups, quantile in ((2, 2.93), (3, 3.36), (8, 4.14), (24, 4.81)):
        assert clusters_needed(0.02, groups, 100, 0.001) == pytest.approx(100 * (20 * quantile) ** 2, rel=0.005)
    assert clusters_needed(1.0, 2, 10, 0.0) is None
    assert [clusters_if_no_more_differ(0, margin) for margin in (0.02, 0.05)] == [149, 59]
    assert most_that_differ(0, 65) == pytest.approx(0.045, abs=5e-4)
    assert most_that_differ(3, 3) == 1.0


def test_relabelling_finds_what_is_planted_and_nothing_else() -> None:
    random = np.random.default_rng(4)
    planted = simulated(random, groups=8, clusters=24, rate=None, planted=2.0)
    relabelled = relabel(Fit(planted), *np.triu_indices(8, 1), seed=1)
    assert relabelled.omnibus < 0.01 and relabelled.others[0] < 0.01
    assert (relabelled.others[1:] > 0.05).sum() >= 6
    gap = GroupEffects(planted, *np.triu_indices(8, 1), seed=1).gap
    assert gap.most == 0 and 0 < gap.low < 2.0 < gap.high
    assert relabelled.by_chance < gap.low
    none = [relabel(Fit(exchanged(planted, random)), *np.triu_indices(8, 1), seed=n).omnibus for n in range(40)]
    assert sum(p < 0.05 for p in none) <= 6  # of 40 at 5%: more in 0.3%
    # The same with more clusters than change labels one by one.
    many = simulated(random, groups=3, clusters=1500, items=1, rate=0.3, draws=1, planted=0.04)
    assert relabel(Fit(many), *np.triu_indices(3, 1), seed=1).omnibus < 0.05


def test_two_groups_by_relabelling_are_a_sign_flip() -> None:
    """With two groups, exchanging labels flips the sign of a cluster's difference: p by complete enumeration."""
    random = np.random.default_rng(8)
    difference = random.normal(0.8, 1, 10)
    value = np.stack([difference, np.zeros(10)], axis=1).ravel()
    fit = Fit(Cells(value, np.repeat(np.arange(10), 2), np.tile([0, 1], 10), np.arange(10), ("a", "b")))
    signs = np.array(np.meshgrid(*[[1, -1]] * 10)).reshape(10, -1)
    exact = (np.abs(difference @ signs) >= abs(difference.sum()) - 1e-12).mean()
    p = relabel(fit, np.array([0]), np.array([1]), seed=1, draws=9999).omnibus
    assert p == pytest.approx(max(exact, scipy.stats.ttest_1samp(difference, 0).pvalue), abs=0.01)
    assert flipped(difference[:, None], 0)[0] == pytest.approx(exact)


def test_crossed_groups_beyond_both() -> None:
    random = np.random.default_rng(5)
    cells = simulated(random, groups=6, clusters=20, rate=None, by_cluster=0.3)
    margins = np.array([0.0, 1.0, 3.0])[cells.group // 2] + 2.0 * (cells.group % 2)
    fit = Fit(cells._replace(value=cells.value + margins))
    assert intersections(fit, (3, 2), seed=1).omnibus > 0.05
    crossed = intersections(Fit(cells._replace(value=cells.value + margins + 2.0 * (cells.group == 5))), (3, 2), seed=1)
    assert crossed.omnibus < 0.01
    # One crossed group of six 2 higher: (1 - 1/3)(1 - 1/2) of it is beyond the margins, the rest is in them.
    assert crossed.effects[5] == pytest.approx(2.0 / 3, abs=0.25)
    assert crossed.effects.sum() == pytest.approx(0, abs=1e-12)


def test_names_are_a_second_sample() -> None:
    random = np.random.default_rng(6)
    matter = simulated(random, groups=2, clusters=40, items=1, names=6, by_name=0.8, rate=None, by_cluster=0.2)
    named = NamedFit(matter)
    assert named.errors(pairs(2)).error > 2 * named.fit.errors(pairs(2)).error
    # Welch's t over the names' means, where every name meets every item.
    means = [named.of_name[named.group_of == group] for group in (0, 1)]
    welch = scipy.stats.ttest_ind(*means, equal_var=False)
    few = NamedFit(matter._replace(cluster=np.arange(40) // 8))  # five clusters: items are fixed
    assert few.fixed
    assert few.errors(pairs(2)).p[0] == pytest.approx(welch.pvalue, rel=1e-6)
    assert few.errors(pairs(2)).freedom[0] == pytest.approx(welch.df, rel=1e-6)
    shift = 3.0 * (matter.group == 0)
    assert NamedFit(matter._replace(value=matter.value + shift)).others(1).min() < 0.05


def test_names_that_always_meet_the_same_others_are_pairs() -> None:
    """Two groups whose names meet in pairs, where nothing else varies, give the paired t test over the pairs."""
    random = np.random.default_rng(7)
    names, items = 8, 48
    of_name, of_item = random.normal(0, 0.5, (2, names)), random.normal(0, 3, items)
    item, group = np.repeat(np.arange(items), 2), np.tile(np.arange(2), items)
    pair = item % names
    value = of_item[item] + of_name[group, pair]
    errors = NamedFit(Cells(value, item, group, np.arange(items), ("a", "b"), group * names + pair)).errors(pairs(2))
    expected = scipy.stats.ttest_rel(*of_name)
    assert errors.error[0] == pytest.approx(abs(np.diff(of_name.mean(axis=1))[0] / expected.statistic), rel=1e-6)
    assert errors.p[0] == pytest.approx(expected.pvalue, abs=0.002)


def test_a_mean_over_clusters() -> None:
    sums, sizes = np.array([3.0, -1.0, 4.0, 2.0]), np.full(4, 5.0)
    estimate = mean_over_clusters(sums, sizes, 20)
    expected = scipy.stats.ttest_1samp(sums / 5, 0)
    assert estimate.p_zero() == pytest.approx(expected.pvalue)
    assert estimate.freedom == pytest.approx(3)
    values = np.array([1.0, -1, 1, 1, 0, 0])
    means = signed_means(lambda chosen: values[chosen], np.arange(6), np.zeros(6, dtype=int), ("a",), 0)
    assert means.names == [""] and means.differing == [4]


def test_ratios_of_rates() -> None:
    for both, sizes in (((3, 9), (100, 100)), ((7, 30), (50, 200)), ((0, 9), (100, 100))):
        expected = confint_proportions_2indep(
            both[0], sizes[0], both[1], sizes[1], method="score", compare="ratio", correction=False
        )
        assert_allclose(koopman(both, sizes), np.maximum(0, expected), atol=1e-4)
    selected = np.repeat([1.0, 0, 1, 0], [30, 70, 50, 50])
    group = np.repeat([0, 1], 100)
    variance, freedom = log_ratio_variance(selected, group, 0, 1, None)
    assert variance == pytest.approx(1 / 30 - 1 / 100 + 1 / 50 - 1 / 100)  # Katz et al. 1978
    assert freedom == np.inf
    # Every row twice, as a cluster of two: the error stays that of the single rows, with G / (G - 1).
    twice = np.repeat(selected, 2), np.repeat(group, 2), np.repeat(np.arange(200), 2)
    assert log_ratio_variance(twice[0], twice[1], 0, 1, twice[2])[0] == pytest.approx(variance * 200 / 199)
    # No ratio is known of 0 of 10, and no bound of a single cluster; ten of ten against ten of ten say little.
    assert rate_ratio(_of(0, 10), _of(0, 10), np.nan, np.inf).value is None
    assert rate_ratio(_of(10, 10), _of(10, 10), 0.0, np.inf).low < 0.8
    single_cluster = Selected.of(np.zeros(200), np.zeros(200)), Selected.of(np.repeat([1.0, 0.0], 100), np.zeros(200))
    assert rate_ratio(*single_cluster, np.nan, np.inf)[1:] == (0.0, np.inf)
    # 0 of 200 in 40 clusters against 100 of 200: at most what 0 of 40 against 20 of 40 independent rows say.
    many = Selected.of(np.zeros(200), np.arange(200) // 5), Selected.of(np.repeat([1.0, 0.0], 100), np.arange(200) // 5)
    assert rate_ratio(*many, np.nan, np.inf).high == pytest.approx(koopman((0, 20), (40, 40))[1])
    variance = log_ratio_variance(np.repeat([1.0, 0, 1, 0], [251, 749, 585, 415]), np.repeat([0, 1], 1000), 0, 1, None)
    assert word_of(*rate_ratio(_of(251, 1000), _of(585, 1000), *variance)[1:]) == "below 4/5 shown"


def _of(selected: int, rows: int) -> Selected:
    return Selected.of(np.repeat([1.0, 0.0], [selected, rows - selected]), None)


@pytest.mark.verify
def test_koopmans_interval_is_what_a_search_finds() -> None:
    for (x, m), (y, n) in (((2, 5), (6, 6)), ((5, 5), (6, 6)), ((1, 5), (6, 6)), ((4, 30), (11, 25)), ((0, 8), (3, 9))):
        ratios = np.exp(np.linspace(np.log(1e-3), np.log(50), 4001))
        rates = np.linspace(1e-6, 1 - 1e-6, 4001)
        inside = []
        for ratio in ratios:
            second = rates[rates * ratio <= 1]
            first = second * ratio
            with np.errstate(divide="ignore", invalid="ignore"):
                likelihood = (
                    x * np.log(first) + (m - x) * np.log1p(-first) + y * np.log(second) + (n - y) * np.log1p(-second)
                )
            best = int(np.nanargmax(likelihood))
            score = sum(
                (count - size * rate) ** 2 / (size * rate * (1 - rate))
                for count, size, rate in ((x, m, first[best]), (y, n, second[best]))
            )
            inside.append(score <= 1.959964**2)
        accepted = ratios[np.array(inside)]
        low, high = koopman((x, y), (m, n))
        assert low == pytest.approx(accepted.min() if x else 0.0, rel=0.02, abs=2e-3)
        assert high == pytest.approx(accepted.max(), rel=0.02)
