"""Group bias on the scale of probabilities: annotators' rates are beta distributed around those of their groups.

GroupAnno's sum of effects (Liu 2022, equation 5.1) leaves 0 to 1 where annotators are accurate; once it is clipped,
labels say little about it. Here the logit of a group's mean sensitivity, and the log of the spread of its annotators,
are sums of effects (`beta_rates`); specificities likewise. The estimates are means over annotators with everybody in
one group, so they are always probabilities; contrasts are their differences.

The fit is the thesis' extended EM (algorithm 3) with the rates integrated out. Errors have three parts: the inverse
information given the truths, the further variance that the annotators' own slopes show, and the uncertainty about the
truths (multiple imputation, Rubin 1987). Without the last, intervals for three labels per item cover in 84 to 91% of
draws.
"""

from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference, converged
from fairness_pipeline.annotation.truth_inference.beta_rates import BetaRates
from fairness_pipeline.annotation.truth_inference.group_design import (
    RESPONSES,
    GroupContrast,
    GroupDesign,
    GroupMean,
    kish,
)
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.statistics.intervals import Estimate, quantile, satterthwaite
from fairness_pipeline.statistics.welch import permuted_welch

if TYPE_CHECKING:
    import pandas as pd

_MOST_SWEEPS, _FEWEST_SWEEPS, _MOST_WORK = 400, 100, 40_000_000
"""The limits of the number of imputations, and of their work (sweeps times labels)."""
_NEVER = -700.0
"""Stands for the logarithm of a probability that is drawn as 0."""
_PRIOR = 2.0
"""P(y = 1) ~ Beta(2, 2)."""


class _Imputed(NamedTuple):
    """The results of the sweeps, for each response: the parameters, (sweeps, 2 columns), and the mean of their
    covariances."""

    parameters: list[np.ndarray]
    covariance: list[np.ndarray]


class GroupBeta(TruthInference):
    """Truth inference with groups of annotators whose rates are beta distributed. Two classes.

    Args:
        annotators: One row per worker (the index), one column per category with two groups or more. A worker whose
            group is missing gets the mean. Groups of fewer than five workers, in a category of three groups or more,
            count as missing.
        n_iter: The maximum number of iterations.
        tol: The iterations end when the mean bound of an item grows by less.
        seed: The seed of imputations and permutations.

    Attributes:
        design_: The groups as columns.
        recognised_: The `sensitivity` and `specificity` of each worker.
        sensitivity_: P(z = 1 | y = 1) of each worker.
        specificity_: P(z = 0 | y = 0) of each worker.
        prevalence_: P(y = 1).
        converged_: Whether an iteration lowered the loss by less than `tol`.

    Examples:
        >>> import pandas as pd
        >>> random = np.random.default_rng(0)
        >>> truth, rater = np.repeat(random.integers(0, 2, 300), 8), np.tile(np.arange(16), 150)
        >>> right = random.random(2400) < np.where(rater % 2 == 0, 0.95, 0.8)
        >>> label = np.where(right, truth, 1 - truth)
        >>> data = pd.DataFrame({"task": np.repeat(np.arange(300), 8), "worker": rater, "label": label})
        >>> model = GroupBeta(pd.DataFrame({"age": ["young", "old"] * 8})).fit(data)
        >>> [(mean.group, round(mean.value, 2)) for mean in model.level_means() if mean.response == "sensitivity"]
        [('old', 0.8), ('young', 0.95)]
    """

    def __init__(self, annotators: "pd.DataFrame", *, n_iter: int = 500, tol: float = 1e-8, seed: int = 0) -> None:
        self.annotators = annotators
        self.n_iter = n_iter
        self.tol = tol
        self.seed = seed

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        self._labels, self.design_ = labels, GroupDesign.of(self.annotators, labels.annotators)
        for name in ("_imputed", "_omnibus"):
            self.__dict__.pop(name, None)
        self._rates, probas, self.prevalence_ = self._fitted(self.design_, self.loss_history_)
        self.converged_ = converged(self.loss_history_, self.tol)
        self._counts = _right_and_wrong(labels, probas)
        means = {}
        for response, rates, (right, wrong) in zip(RESPONSES, self._rates, self._counts, strict=True):
            a, b = rates.shapes()
            means[response] = (a + right) / (a + b + right + wrong)
        self.recognised_ = pd.DataFrame(means, index=labels.annotators)
        self.sensitivity_, self.specificity_ = (self.recognised_[name] for name in RESPONSES)
        return probas

    def _fitted(self, design: GroupDesign, losses: list[float]) -> tuple[list[BetaRates], np.ndarray, float]:
        """The rates, P(y = 1) of each item, and the prevalence, by extended EM. Each M-step is one of Newton's."""
        labels, rates = self._labels, [BetaRates(design) for _ in RESPONSES]
        probas = labels.positive_shares()
        for _ in range(self.n_iter):
            counts = _right_and_wrong(labels, probas)
            rates = [response_rates.step(*pair) for response_rates, pair in zip(rates, counts, strict=True)]
            prevalence = float((_PRIOR - 1 + probas.sum()) / (2 * _PRIOR - 2 + len(probas)))
            evidence = sum(float(r.log_evidence(*c).sum()) + r.log_prior() for r, c in zip(rates, counts, strict=True))
            of_items = scipy.special.entr(probas) + scipy.special.entr(1 - probas)
            of_items += probas * np.log(prevalence) + (1 - probas) * np.log1p(-prevalence)
            shared = (_PRIOR - 1) * (np.log(prevalence) + np.log1p(-prevalence))
            losses.append(-(evidence + float(of_items.sum()) + shared) / len(probas))
            probas = _posterior(
                labels,
                [response_rates.logs(*pair) for response_rates, pair in zip(rates, counts, strict=True)],
                prevalence,
            )
            if converged(losses, self.tol):
                break
        return rates, probas, prevalence

    def level_means(self) -> list[GroupMean]:
        """The mean rate of each group: over all annotators, as if each were in it. The 95% interval is of its logit.

        Raises:
            FairnessError: nothing is fitted yet.
        """
        self._check()
        means = []
        for category, levels in self.design_.levels.items():
            for level, group in enumerate(levels.names):
                for number, response in enumerate(RESPONSES):
                    value, gradient = self._mean(number, category, level)
                    estimate = self._estimate(number, category, value, gradient)
                    half_width = quantile(0.975, estimate.freedom) * estimate.error / max(value * (1 - value), 1e-9)
                    low, high = scipy.special.expit(scipy.special.logit(value) + np.array([-half_width, half_width]))
                    means.append(GroupMean(category, group, response, value, float(low), float(high)))
        return means

    def contrasts(self) -> list[GroupContrast]:
        """Each group minus each later one: differences of probabilities, with their errors (delta method).

        For two groups, an interval excludes 0 only if the omnibus test rejects, too: with few annotators the error
        alone is too small.

        Raises:
            FairnessError: nothing is fitted yet.
        """
        self._check()
        contrasts = []
        for category, levels in self.design_.levels.items():
            for first, second in combinations(range(len(levels.names)), 2):
                for number, response in enumerate(RESPONSES):
                    (mean_first, slope_first), (mean_second, slope_second) = (
                        self._mean(number, category, level) for level in (first, second)
                    )
                    estimate = self._estimate(number, category, mean_first - mean_second, slope_first - slope_second)
                    if len(levels.names) == 2:
                        estimate = estimate.in_accord_with(self._omnibus[category, response])[0]
                    contrasts.append(
                        GroupContrast(category, levels.names[first], levels.names[second], response, estimate)
                    )
        return contrasts

    def omnibus(self) -> dict[tuple[str, str], float]:
        """The p of no difference between the groups of a category, by category and response. Annotators' slopes
        (d evidence / d logit), in a fit without this category, are permuted (Welch's statistic).

        Raises:
            FairnessError: nothing is fitted yet.
        """
        self._check()
        return self._omnibus

    @cached_property
    def _omnibus(self) -> dict[tuple[str, str], float]:
        p_values = {}
        for category, levels in self.design_.levels.items():
            kept = [str(name) != category for name in self.annotators.columns]
            design = GroupDesign.of(self.annotators.loc[:, kept], self._labels.annotators)
            rates, probas, _ = self._fitted(design, [])
            for response, response_rates, pair in zip(
                RESPONSES, rates, _right_and_wrong(self._labels, probas), strict=True
            ):
                p_values[category, response] = permuted_welch(
                    response_rates.curve(*pair).slope[:, 0], levels.code, self.seed
                )
        return p_values

    def _check(self) -> None:
        if not hasattr(self, "_rates"):
            raise FairnessError("the model is not fitted: call fit first")

    def _mean(self, number: int, category: str, level: int) -> tuple[float, np.ndarray]:
        """The mean rate with everybody in one group, and its gradient in all parameters."""
        design = self.design_.with_level(category, level)
        m = self._rates[number].means(design)
        slope = ((m * (1 - m)) @ design) / len(m)
        return float(m.mean()), np.concatenate([slope, np.zeros_like(slope)])

    def _estimate(self, number: int, category: str, value: float, gradient: np.ndarray) -> Estimate:
        """The estimate with variance W + (1 + 1/M) B. Its degrees of freedom are Satterthwaite's, with Kish's number of
        annotators for each group."""
        rates, imputed = self._rates[number], self._imputed
        within = float(gradient @ imputed.covariance[number] @ gradient)
        draws = imputed.parameters[number] @ gradient
        between = (1 + 1 / len(draws)) * float(draws.var(ddof=1))
        curve = rates.curve(*self._counts[number])
        weight = (np.linalg.inv(rates.information(curve)) @ gradient).reshape(2, -1)
        weights = self.design_.matrix @ weight.T  # (annotators, 2): the weight of each slope
        contributions = np.maximum(np.einsum("ri,rij,rj->r", weights, -curve.curvature, weights), 0.0)
        code = self.design_.levels[category].code
        parts = [contributions[code == level] for level in range(len(self.design_.levels[category].names))]
        total = sum(float(group.sum()) for group in parts) or 1.0
        components = [(within * float(group.sum()) / total, kish(group) - 1) for group in parts]
        components.append((between, len(draws) - 1.0))
        largest = max(1.0, float(len(code) - self.design_.matrix.shape[1]))
        return Estimate(value, float(np.sqrt(within + between)), min(satterthwaite(components), largest))

    @cached_property
    def _imputed(self) -> _Imputed:
        """Sweeps from the fit: y given the rates; the prevalence; a Newton step of the estimates; the rates."""
        labels, random = self._labels, np.random.default_rng(self.seed)
        sweeps = int(np.clip(_MOST_WORK // len(labels.label), _FEWEST_SWEEPS, _MOST_SWEEPS))
        rates, prevalence = list(self._rates), self.prevalence_
        drawn = [response_rates.drawn(*pair, random) for response_rates, pair in zip(rates, self._counts, strict=True)]
        parameters: list[list[np.ndarray]] = [[], []]
        covariance = [np.zeros((2 * self.design_.matrix.shape[1],) * 2) for _ in rates]
        for _ in range(sweeps):
            with np.errstate(divide="ignore"):
                logs = [(np.log(p), np.log1p(-p)) for p in drawn]
            y = (random.random(len(labels.items)) < _posterior(labels, logs, prevalence)).astype(float)
            prevalence = random.beta(_PRIOR + y.sum(), _PRIOR + len(y) - y.sum())
            counts = _right_and_wrong(labels, y)
            rates = [response_rates.step(*pair) for response_rates, pair in zip(rates, counts, strict=True)]
            drawn = [response_rates.drawn(*pair, random) for response_rates, pair in zip(rates, counts, strict=True)]
            for number, (response_rates, pair) in enumerate(zip(rates, counts, strict=True)):
                parameters[number].append(response_rates.parameters.ravel())
                covariance[number] += response_rates.covariance(*pair) / sweeps
        return _Imputed([np.array(draws) for draws in parameters], covariance)


def _right_and_wrong(labels: Labels, probas: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each annotator's expected right and wrong labels of positive items, and of negative ones."""
    hits, misses, alarms, rejections = labels.counts(probas)
    return [(hits, misses), (rejections, alarms)]


def _posterior(labels: Labels, logs: list[tuple[np.ndarray, np.ndarray]], prevalence: float) -> np.ndarray:
    """(items,) P(y = 1), given ln p and ln(1 - p) of sensitivities and specificities."""
    (hit, miss), (rejection, alarm) = ([np.maximum(log_p, _NEVER) for log_p in pair] for pair in logs)
    log_odds = labels.positive @ (hit - alarm) + labels.negative @ (miss - rejection)
    return np.asarray(scipy.special.expit(log_odds + np.log(prevalence) - np.log1p(-prevalence)))
