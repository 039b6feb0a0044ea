"""GroupAnno: annotators' biases as sums of group effects and an individual effect (Liu 2022, section 5.3).

alpha_r = u + sum over categories p of pi_{p, g_r} + pi_r (equation 5.1, a plain sum), clipped to (0, 1). The
specificity beta_r has the same form. The levels of a category are not identified, so its effects sum to zero.
pi_r ~ N(0, sd^2).
Contrasts are of the sum before it is clipped: where a group's sum is near 1 or beyond, they are no differences of
probabilities (`GroupBeta` has those).

Of several classes c each has such a probability of being recognised, P(z = c | y = c). Which wrong label an annotator
gives instead is the same for all: P(z = k | y = c, z != c) = e_ck. The thesis has two classes, the sensitivity and the
specificity.

The E-step is the thesis' (equation 5.5), with one change: it uses the posterior mean of log alpha_r over pi_r instead
of the logarithm of one estimate. If a sum exceeds 1, the labels only show that it does; an effect fitted to the clipped
value would be too small. The M-step is Newton's on the likelihood with pi_r integrated out, with backtracking. The
penalised bound on the log-likelihood (equation 5.4) never falls.
"""

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.base import (
    EPSILON,
    Classifier,
    Labels,
    TruthInference,
    class_posterior,
    converged,
)
from fairness_pipeline.annotation.truth_inference.clipped_normal import Posterior, posterior
from fairness_pipeline.annotation.truth_inference.group_design import (
    RESPONSES,
    GroupContrast,
    GroupDesign,
    GroupMean,
    kish,
)
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.statistics.intervals import Estimate, satterthwaite

if TYPE_CHECKING:
    import pandas as pd

_START = 0.7
_STEPS = 30
_AS_ONE_MORE = 0.1
"""The individual sd is estimated as if one more annotator were this far from their group."""
_WIDEST = 0.5
"""The largest sd that a probability can have."""
_NUDGE = 0.01
"""How far an effect is moved to see how its slope changes."""
_NEVER = 1e-300
"""The prior of a class that no label names."""


class _Bias(NamedTuple):
    """For sensitivities, or for specificities: u and the effects of each category's groups but the last (those of a
    category sum to zero), and the sd of individual effects."""

    shared: np.ndarray
    sd: float


class GroupAnno(TruthInference):
    """Truth inference with group effects. Without a classifier all items share one prevalence as their prior.

    Args:
        annotators: One row per worker (the index), one column per category with two groups or more. A worker whose
            group is missing gets the mean effect. Groups of fewer than five workers, in a category of three groups or
            more, count as missing.
        individual_sd: The sd of the individual effects. If it is None, it is estimated.
        effect_sd: The sd of the prior N(0, sd^2) of the effects. It keeps an effect finite if the labels do not
            determine it (a group whose sum is far beyond 1).
        classifier: A classifier of the items. `loss_history_` may then rise, because the classifier's own loss is not
            part of it.
        n_iter: The maximum number of iterations.
        tol: The iterations end when the mean bound of an item grows by less.

    Attributes:
        design_: The groups as columns.
        effects_: One row per category and group: the `sensitivity` and `specificity` that the group adds to the mean.
            Of several classes these and the following are named 0, 1, ...: P(z = c | y = c) of each class c.
        level_: The mean `sensitivity` and `specificity` (u).
        recognised_: P(z = c | y = c) of each worker (rows), of two classes `sensitivity` and `specificity`.
        sensitivity_: P(z = 1 | y = 1) of each worker.
        specificity_: P(z = 0 | y = 0) of each worker.
        wrong_: (classes, classes) P(z = k | y = c, z != c), e_ck.
        individual_sd_: The sd of the individual effects on `sensitivity` and `specificity`.
        prior_: P(y = 1) of each task; of several classes (tasks, classes).
        converged_: Whether an iteration lowered the loss by less than `tol`.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> people = pd.DataFrame({"age": ["young", "young", "old", "old"]}, index=list("abcd"))
        >>> method = GroupAnno(people).fit(data)
        >>> method.labels_.tolist()
        [0, 0, 0, 1, 1, 1]
        >>> bool(method.effects_.loc[("age", "young"), "sensitivity"] > 0.2)
        True
    """

    several = True
    prior_: "pd.Series | pd.DataFrame"

    def __init__(
        self,
        annotators: "pd.DataFrame",
        *,
        individual_sd: float | None = None,
        effect_sd: float = 0.2,
        classifier: Classifier | None = None,
        n_iter: int = 500,
        tol: float = 1e-8,
    ) -> None:
        self.annotators = annotators
        self.individual_sd = individual_sd
        self.effect_sd = effect_sd
        self.classifier = classifier
        self.n_iter = n_iter
        self.tol = tol

    def level_means(self) -> list[GroupMean]:
        """The mean rate of each group: the mean of its annotators' expected probabilities.

        Raises:
            FairnessError: nothing is fitted yet.
        """
        self._check()
        return [
            GroupMean(category, group, name, float(self.recognised_[name].to_numpy()[levels.code == level].mean()))
            for category, levels in self.design_.levels.items()
            for level, group in enumerate(levels.names)
            for name in self._names
        ]

    def contrasts(self) -> list[GroupContrast]:
        """Each group minus each later one, in the thesis' sum, with its error.

        The error comes from the observed information: how the slope of the bound changes when one effect is moved and
        everything else is fitted again, except the sds and the classifier. The model has a single spread of individual
        effects. If the residuals, each scaled by its leverage, show a larger spread for an effect, its variance grows
        accordingly. It never shrinks, because residuals of sums clipped at 1 say little. The degrees of freedom are
        Satterthwaite's for the two groups, as in Welch's test.

        Raises:
            FairnessError: nothing is fitted yet.
        """
        self._check()
        size = len(self._biases[0].shared)
        slopes = [
            (self._slope(number, column, _NUDGE) - self._slope(number, column, -_NUDGE)) / (2 * _NUDGE)
            for number in range(len(self._biases))
            for column in range(size)
        ]
        information = -np.array(slopes)
        covariance = np.linalg.pinv((information + information.T) / 2)
        contrasts = []
        for number, name in enumerate(self._names):
            block = covariance[number * size : (number + 1) * size, number * size : (number + 1) * size]
            for category, levels in self.design_.levels.items():
                for first, second in combinations(range(len(levels.names)), 2):
                    contrast = self.design_.effect(category, first) - self.design_.effect(category, second)
                    scale, freedom = self._heterogeneity(number, category, contrast)
                    variance = scale * float(contrast @ block @ contrast)
                    error = float(np.sqrt(variance)) if variance > 0 else np.inf
                    estimate = Estimate(float(contrast @ self._biases[number].shared), error, freedom)
                    contrasts.append(GroupContrast(category, levels.names[first], levels.names[second], name, estimate))
        return contrasts

    def _check(self) -> None:
        if not hasattr(self, "_biases"):
            raise FairnessError("the model is not fitted: call fit first")

    def _heterogeneity(self, number: int, category: str, contrast: np.ndarray) -> tuple[float, float]:
        """The ratio of a contrast's variance to its variance under a single spread, at least 1; and its degrees of
        freedom."""
        design, bias, rates = self.design_.matrix, self._biases[number], self._posteriors[number]
        curve = np.maximum(1 - rates.variance / bias.sd**2, 1e-3)
        inverse = np.linalg.pinv(design.T @ (curve[:, None] * design))
        weight = design @ inverse @ contrast
        leverage = np.minimum(curve * np.einsum("rk,kl,rl->r", design, inverse, design), 0.99)
        residual = rates.mean - design @ bias.shared
        expected = np.square(weight) * curve  # times the spread's square
        observed = np.square(residual) / (1 - leverage)
        overall = observed.sum() / curve.sum()
        scale = np.square(weight) @ observed / expected.sum() / overall if overall > 0 else 1.0
        levels = self.design_.levels[category]
        parts = [expected[levels.code == level] for level in range(len(levels.names))]
        freedom = satterthwaite([(float(part.sum()), kish(part) - 1) for part in parts])
        return max(1.0, float(scale)), max(1.0, min(freedom, len(design) - design.shape[1]))

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        if labels.classes > 2 and self.classifier is not None:
            raise FairnessError("a classifier of the items learns two classes")
        self._labels = labels
        self.design_ = GroupDesign.of(self.annotators, labels.annotators)
        self._design, self._ridge = self.design_.matrix, self.design_.precision(self.effect_sd)
        # A class that no label names has no parameters and no items.
        self._named = np.bincount(labels.label, minlength=labels.classes) > 0
        if labels.classes == 2:
            self._named[:] = True
        self._classes = (1, 0) if labels.classes == 2 else tuple(map(int, np.flatnonzero(self._named)))
        self._names = RESPONSES if labels.classes == 2 else tuple(map(str, self._classes))
        probas = labels.shares()
        start = np.zeros(self._design.shape[1])
        start[0] = _START
        sd = self.individual_sd if self.individual_sd is not None else _AS_ONE_MORE
        biases = [_Bias(start, sd) for _ in self._classes]
        for _ in range(self.n_iter):
            confusion = labels.confusion(probas)
            counts, wrong = self._counts(confusion), _wrong(confusion, self._named)
            biases = [self._m_step(bias, *pair) for bias, pair in zip(biases, counts, strict=True)]
            prior = self._prior(probas)
            posteriors = [self._posterior(bias, *pair) for bias, pair in zip(biases, counts, strict=True)]
            bound = self._bound(probas, prior, posteriors, confusion, wrong) + sum(map(self._log_prior, biases))
            self.loss_history_.append(-bound / len(probas))
            probas = self._e_step(posteriors, prior, wrong)
            self.converged_ = converged(self.loss_history_, self.tol)
            if self.converged_:
                break
        self._biases, self._probas, self._posteriors = biases, probas, posteriors
        self._sds = self._corrected_sds(biases, posteriors, probas)
        probabilities = {name: rates.probability for name, rates in zip(self._names, posteriors, strict=True)}
        self.recognised_ = pd.DataFrame(probabilities, index=labels.annotators)
        self.wrong_ = wrong
        index = labels.items.rename("task")
        if labels.classes == 2:
            self.sensitivity_, self.specificity_ = (self.recognised_[name] for name in RESPONSES)
            self.prior_ = pd.Series(prior[:, 1], index=index)
        else:
            self.prior_ = pd.DataFrame(prior, index=index)
        self.individual_sd_ = dict(zip(self._names, self._sds, strict=True))
        self.level_ = {name: float(bias.shared[0]) for name, bias in zip(self._names, biases, strict=True)}
        rows = {
            (category, group): [float(self.design_.effect(category, level) @ bias.shared) for bias in biases]
            for category, levels in self.design_.levels.items()
            for level, group in enumerate(levels.names)
        }
        index = pd.MultiIndex.from_tuples(list(rows), names=["category", "group"])
        self.effects_ = pd.DataFrame(list(rows.values()), columns=list(self._names), index=index if rows else None)
        return probas

    def _counts(self, confusion: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Each annotator's expected numbers of right and wrong labels, for the items of each class."""
        return [(confusion[:, c, c], confusion[:, c].sum(axis=1) - confusion[:, c, c]) for c in self._classes]

    def _prior(self, probas: np.ndarray) -> np.ndarray:
        """P(y = c) of each item (items, classes)."""
        if self.classifier is not None:
            positive = np.clip(self.classifier(probas[:, 1]), EPSILON, 1 - EPSILON)
            return np.stack([1 - positive, positive], axis=1)
        shares: np.ndarray = np.where(self._named, (1 + probas.sum(axis=0)) / (self._named.sum() + len(probas)), _NEVER)
        return np.broadcast_to(shares, probas.shape)

    def _posterior(self, bias: _Bias, right: np.ndarray, wrong: np.ndarray) -> Posterior:
        return posterior(self._design @ bias.shared, bias.sd, right, wrong)

    def _e_step(self, posteriors: list[Posterior], prior: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        """mu (equation 5.5), (items, classes)."""
        size = self._labels.classes
        log_confusion = np.full((len(self._labels.annotators), size, size), np.log(_NEVER))
        for c, rates in zip(self._classes, posteriors, strict=True):
            log_confusion[:, c] = rates.log_wrong[:, None] + np.log(np.where(wrong[c] > 0, wrong[c], 1.0))
            log_confusion[:, c, c] = rates.log_right
        return class_posterior(self._labels, log_confusion, np.log(prior))[0]

    def _bound(
        self,
        probas: np.ndarray,
        prior: np.ndarray,
        posteriors: list[Posterior],
        confusion: np.ndarray,
        wrong: np.ndarray,
    ) -> float:
        """The bound on the log-likelihood. It includes the priors of e (flat, of one label more each) and, without a
        classifier, of the classes' shares (Dirichlet(2, ..., 2))."""
        of_items = float((probas * np.log(prior) + scipy.special.entr(probas)).sum())
        shared = 0.0 if self.classifier is not None else float(np.log(prior[0, list(self._classes)]).sum())
        of_wrong = (confusion.sum(axis=0) + 1) * np.log(np.where(wrong > 0, wrong, 1.0))
        return of_items + sum(float(rates.evidence.sum()) for rates in posteriors) + shared + float(of_wrong.sum())

    def _log_prior(self, bias: _Bias) -> float:
        """The log prior of the effects and of the sd. The sd's part is one more annotator at `_AS_ONE_MORE` and the
        degrees of freedom that the effects use."""
        of_effects = -0.5 * float(bias.shared @ self._ridge @ bias.shared)
        if self.individual_sd is not None:
            return of_effects
        return of_effects + (len(bias.shared) - 1) * float(np.log(bias.sd)) - 0.5 * (_AS_ONE_MORE / bias.sd) ** 2

    def _m_step(self, bias: _Bias, right: np.ndarray, wrong: np.ndarray) -> _Bias:
        """Climbs the marginal likelihood of the counts: by Newton's steps in u and the effects, by EM's in the sd."""
        design = self._design

        def objective(at: _Bias) -> tuple[float, Posterior]:
            rates = self._posterior(at, right, wrong)
            return float(rates.evidence.sum()) + self._log_prior(at), rates

        value, rates = objective(bias)
        for _ in range(_STEPS):
            previous = value
            residual = rates.mean - design @ bias.shared
            curve = np.maximum(1 - rates.variance / bias.sd**2, 1e-3)
            pull = self._ridge * bias.sd**2
            slope = design.T @ residual - pull @ bias.shared
            step = np.linalg.lstsq(design.T @ (curve[:, None] * design) + pull, slope, rcond=None)[0]
            length = 1.0
            while length > 1e-6:
                candidate = bias._replace(shared=bias.shared + length * step)
                new_value, new_rates = objective(candidate)
                if new_value >= value:
                    bias, value, rates = candidate, new_value, new_rates
                    break
                length /= 2
            if self.individual_sd is None:
                candidate = bias._replace(sd=self._sd_of(rates.variance, rates.mean, bias))
                new_value, new_rates = objective(candidate)
                if new_value >= value:
                    bias, value, rates = candidate, new_value, new_rates
            if value - previous < 1e-7 * (1 + abs(value)):
                break
        return bias

    def _corrected_sds(self, biases: list[_Bias], posteriors: list[Posterior], probas: np.ndarray) -> list[float]:
        """The sds, corrected for the uncertainty about y: the bound treats the items' mu as known."""
        if self.individual_sd is not None:
            return [bias.sd for bias in biases]
        sds = []
        counts_by_class = self._counts(self._labels.confusion(probas))
        for c, bias, rates, counts in zip(self._classes, biases, posteriors, counts_by_class, strict=True):
            uncertainty, right = (probas[:, c] * (1 - probas[:, c]))[self._labels.item], self._labels.label == c
            p = rates.probability[self._labels.annotator]
            lost_information = self._labels.of_annotators(uncertainty / np.square(np.where(right, p, 1 - p)))
            sd = bias.sd
            for _ in range(_STEPS):
                refitted = posterior(self._design @ bias.shared, sd, *counts)
                variance = 1 / np.maximum(1 / np.maximum(refitted.variance, EPSILON) - lost_information, 1 / sd**2)
                sd, before = self._sd_of(variance, refitted.mean, bias), sd
                if abs(sd - before) < 1e-4:
                    break
            sds.append(sd)
        return sds

    def _sd_of(self, variance: np.ndarray, mean: np.ndarray, bias: _Bias) -> float:
        """The sd of individual effects, from the variances and means of their posteriors."""
        squares = variance + np.square(mean - self._design @ bias.shared)
        freedom = max(1, len(self._design) + 1 - self._design.shape[1])
        return min(_WIDEST, float(np.sqrt((squares.sum() + _AS_ONE_MORE**2) / freedom)))

    def _known_prior(self) -> np.ndarray:
        """The classifier's last P(y) of each item."""
        positive = self.prior_.to_numpy()
        return np.stack([1 - positive, positive], axis=1)

    def _slope(self, number: int, column: int, shift: float) -> np.ndarray:
        """The slope of the bound in all shared effects, with one of them moved and the items' mu fitted again."""
        biases = [b._replace(sd=sd) for b, sd in zip(self._biases, self._sds, strict=True)]
        biases[number] = biases[number]._replace(
            shared=biases[number].shared + shift * np.eye(len(biases[number].shared))[column]
        )
        probas, before = self._probas, -np.inf
        for _ in range(self.n_iter):
            prior = self._prior(probas) if self.classifier is None else self._known_prior()
            confusion = self._labels.confusion(probas)
            wrong = _wrong(confusion, self._named)
            posteriors = [self._posterior(b, *pair) for b, pair in zip(biases, self._counts(confusion), strict=True)]
            bound = self._bound(probas, prior, posteriors, confusion, wrong)
            if bound - before < self.tol * len(probas) * 0.01:
                break
            probas, before = self._e_step(posteriors, prior, wrong), bound
        slopes = [
            self._design.T @ (rates.mean - self._design @ bias.shared) / bias.sd**2 - self._ridge @ bias.shared
            for rates, bias in zip(posteriors, biases, strict=True)
        ]
        return np.concatenate(slopes)


def _wrong(confusion: np.ndarray, named: np.ndarray) -> np.ndarray:
    """e (classes, classes) with a zero diagonal: the share of each wrong label of a class, over all annotators."""
    counts = (confusion.sum(axis=0) + 1) * (1 - np.eye(confusion.shape[1])) * named
    shares: np.ndarray = counts / counts.sum(axis=1, keepdims=True)
    return shares
