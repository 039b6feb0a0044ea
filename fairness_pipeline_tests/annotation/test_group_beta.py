"""GroupBeta: SciPy's beta-binomial, numeric derivatives, planted differences of accurate annotators, categories of any
number of groups, designs that cannot be told apart."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import betabinom, f_oneway

from fairness_pipeline.annotation.truth_inference import DawidSkene, GroupAnno, GroupBeta
from fairness_pipeline.annotation.truth_inference.beta_rates import BetaRates
from fairness_pipeline.annotation.truth_inference.group_design import GroupDesign, levels_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.statistics.welch import permuted_welch, welch
from fairness_pipeline_tests.annotation.beta_raters import NAMES, drawn


def test_evidence_is_scipys_and_slopes_are_numeric_derivatives() -> None:
    groups = pd.DataFrame({"age": ["a"] * 5 + ["b"] * 6 + ["c"] * 7, "sex": ["m", "w"] * 9})
    design = GroupDesign.of(groups, groups.index)
    random = np.random.default_rng(1)
    right, totals = random.integers(0, 9, 18), np.full(18, 9)
    rates = BetaRates(design, random.normal(0, 0.4, (2, 4)) + [[1], [2]] * np.eye(1, 4))
    a, b = rates.shapes()
    from scipy.special import comb

    expected = betabinom.logpmf(right, totals, a, b) - np.log(comb(totals, right))
    assert rates.log_evidence(right, totals - right) == pytest.approx(expected)

    def objective(point: np.ndarray) -> float:
        moved = BetaRates(design, point.reshape(2, -1))
        return float(moved.log_evidence(right, totals - right).sum()) + moved.log_prior()

    def slope(point: np.ndarray) -> np.ndarray:
        return approx_fprime(point, objective, 1e-6)

    point = rates.parameters.ravel()
    curve = rates.curve(right, totals - right)
    ours = rates.scores(curve).sum(axis=0) - rates._precision @ (rates.parameters - rates._centre).ravel()
    assert ours == pytest.approx(slope(point), abs=1e-4)
    hessian = np.array([(slope(point + 1e-4 * e) - slope(point - 1e-4 * e)) / 2e-4 for e in np.eye(len(point))])
    assert rates.information(curve) == pytest.approx(-hessian, abs=0.02)
    fitted = rates
    for _ in range(50):
        fitted = fitted.step(right, totals - right)
    assert np.abs(slope(fitted.parameters.ravel())).max() < 1e-3


@pytest.mark.verify
def test_accurate_annotators_are_distinguished_on_the_scale_of_probabilities() -> None:
    """0.97 against 0.94, for which GroupAnno's capped sum gives 0.040; `make verify` has a hundred draws of many cells."""
    differences = []
    for seed in range(3):
        data, groups, truth = drawn(seed, items=2000, raters=200, per=5, specificity=(0.97, 0.94))
        model = GroupBeta(groups).fit(data)
        assert (np.diff(model.loss_history_) <= 1e-9).all() and model.converged_
        (estimate,) = (c.estimate for c in model.contrasts() if c.response == "specificity")
        assert estimate.interval(0.95)[0] < 0.03 < estimate.interval(0.95)[1] and estimate.p_zero() < 0.01
        differences.append(estimate.centre)
        for mean in model.level_means():
            assert 0 < mean.low < mean.value < mean.high < 1  # type: ignore[operator]
        right = (model.labels_ == truth[model.labels_.index]).mean()
        assert right >= (DawidSkene().fit_predict(data) == truth[model.labels_.index]).mean() - 0.01
    assert np.mean(differences) == pytest.approx(0.03, abs=0.008)


def test_the_last_iteration_may_be_the_one_that_converges() -> None:
    data, groups, _ = drawn(1, items=60, raters=12, per=4)
    for method in (GroupBeta, GroupAnno):
        needed = len(method(groups, tol=1e-4).fit(data).loss_history_)
        assert method(groups, tol=1e-4, n_iter=needed).fit(data).converged_
        assert not method(groups, tol=1e-4, n_iter=needed - 1).fit(data).converged_


def test_three_groups_of_which_one_errs() -> None:
    data, groups, _ = drawn(
        3, items=1500, raters=90, per=6, sensitivity=(0.85, 0.85, 0.65), specificity=(0.95, 0.95, 0.95)
    )
    model = GroupBeta(groups).fit(data)
    contrasts = {(c.first, c.second): c.estimate for c in model.contrasts() if c.response == "sensitivity"}
    assert contrasts.keys() == {("a", "b"), ("a", "c"), ("b", "c")}
    assert contrasts["a", "c"].p_zero() < 0.001 and contrasts["b", "c"].p_zero() < 0.001
    assert contrasts["a", "b"].centre == pytest.approx(0, abs=0.07)
    assert contrasts["a", "c"].centre == pytest.approx(
        contrasts["a", "b"].centre + contrasts["b", "c"].centre, abs=1e-9
    )
    omnibus = model.omnibus()
    assert omnibus["g", "sensitivity"] < 0.01 < omnibus["g", "specificity"]
    anno = {(c.first, c.second): c.estimate.centre for c in GroupAnno(groups).fit(data).contrasts()}
    assert anno.keys() == contrasts.keys()


def test_a_category_of_two_is_the_same_whatever_its_order() -> None:
    data, groups, _ = drawn(5, items=400, raters=30, per=5, sensitivity=(0.85, 0.7))
    reversed_groups = groups.assign(g=pd.Categorical(groups["g"], categories=list(NAMES[1::-1])))
    contrasts, reversed_contrasts = (GroupBeta(table).fit(data).contrasts() for table in (groups, reversed_groups))
    for first, second in zip(contrasts, reversed_contrasts, strict=True):
        assert first.estimate.centre == pytest.approx(-second.estimate.centre, abs=1e-6)


def test_small_groups_count_as_unknown_and_designs_that_cannot_be_told_apart_are_refused() -> None:
    levels = levels_of(pd.Series(["a"] * 6 + ["b"] * 5 + ["c"] * 4))
    assert levels.names == ("a", "b") and levels.code[-4:].tolist() == [-1] * 4 and levels.too_few == {"c": 4}
    assert levels_of(pd.Series(["a", "b", "b"])).names == ("a", "b")  # two groups are never merged
    races = pd.Series(list("wbao") * 6)
    one_against_all = pd.DataFrame({name: np.where(races == name, name, "others") for name in "wbao"})
    with pytest.raises(FairnessError, match="categories 'w', 'b', 'a', 'o' are collinear"):
        GroupDesign.of(one_against_all, one_against_all.index)
    GroupDesign.of(pd.DataFrame({"race": races}), one_against_all.index)


def test_welchs_statistic_is_statsmodels_and_permutations_hold_the_level() -> None:
    random = np.random.default_rng(2)
    score, group = random.normal(size=40), np.repeat([0, 1, 2, 0], 10)
    import statsmodels.stats.oneway as oneway

    theirs = oneway.anova_oneway([score[group == g] for g in range(3)], use_var="unequal", welch_correction=True)
    assert welch(score[None], group, 3)[0] == pytest.approx(theirs.statistic)
    p = [permuted_welch(random.normal(size=40), group, seed) for seed in range(200)]
    assert 0.01 < np.mean(np.array(p) < 0.05) < 0.1
    assert f_oneway(*[score[group == g] for g in range(3)]).pvalue == pytest.approx(
        permuted_welch(score, group, 0), abs=0.15
    )
    assert permuted_welch(score, np.full(40, -1), 0) == 1.0
    assert permuted_welch(np.ones(40), group, 0) == 1.0  # equal scores show no difference
    assert permuted_welch(score, np.repeat([0, 2], 20), 0) == permuted_welch(score, np.repeat([0, 1], 20), 0)


@pytest.mark.verify
def test_three_annotators_against_forty_are_no_certainty() -> None:
    """By the standard error alone, 15% of such equal groups would be significant (100 draws)."""
    alarms = 0
    for seed in range(25):
        data, groups, _ = drawn(seed, items=200, raters=43, per=5, spread=5.0, shares=(3 / 43, 40 / 43))
        model = GroupBeta(groups).fit(data)
        p = model.omnibus()
        for contrast in model.contrasts():
            assert contrast.estimate.p_zero() >= 0.049 or p[contrast.category, contrast.response] < 0.05
            alarms += contrast.estimate.p_zero() < 0.05
    assert alarms <= 7  # 5% of 50, and three standard errors
