"""GroupAnno: annotators' biases as sums of group effects and an individual one (Liu 2022, section 5.3).

alpha_r = u + sum over categories p of pi_{p, g_r} + pi_r (equation 5.1, a plain sum), and so for the specificity
beta_r; the levels of a category are not identified, so its effects sum to zero; pi_r ~ N(0, sd^2). mu_i = P(y_i = 1 |
labels) by equation 5.5. Given mu the expected log-likelihood is a sum over annotators of n_1r log alpha_r + n_0r
log(1 - alpha_r), and concave in the parameters: the M-step is Newton's, with backtracking, so that the penalised
likelihood never falls.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from fairness_pipeline.annotation.truth_inference.base import EPSILON, Labels, TruthInference, two_coin_posterior
from fairness_pipeline.errors import FairnessError

_EDGE = 1e-4
"""How near to 0 and 1 a sensitivity may come."""
_STEPS = 50


class _Bias(NamedTuple):
    """Of sensitivities, or of specificities: u, an effect a category, and one an annotator.

    A category's effect is that of its first level; the second's is its negative.
    """

    level: float
    effects: np.ndarray
    individual: np.ndarray

    def of_annotators(self, design: np.ndarray) -> np.ndarray:
        """The sensitivity of each annotator."""
        total: np.ndarray = self.level + design @ self.effects + self.individual
        return total


class GroupAnno(TruthInference):
    """Without features of the items: their prior is a common prevalence.

    Args:
        annotators: A row a worker (the index), a column a category; two levels each, or none (missing): such a worker
            has the mean effect.
        individual_sd: Of the individual effects.
        n_iter: Iterations, at most.
        tol: It ends when the mean penalised log-likelihood of an item grows by less.

    Attributes:
        effects_: A row a category and level: `sensitivity` and `specificity`, as they add to the mean.
        sensitivity_: P(z = 1 | y = 1) of each worker.
        specificity_: P(z = 0 | y = 0) of each worker.
        prior_: P(y = 1).
    """

    def __init__(
        self, annotators: pd.DataFrame, *, individual_sd: float = 0.1, n_iter: int = 200, tol: float = 1e-7
    ) -> None:
        self.annotators = annotators
        self.individual_sd = individual_sd
        self.n_iter = n_iter
        self.tol = tol
        self.levels = {}
        for category in annotators.columns:
            levels = sorted(annotators[category].dropna().unique())
            if len(levels) != 2:
                raise FairnessError(
                    f"category '{category}': expected two groups of annotators, found {len(levels)}: "
                    f"{', '.join(map(str, levels)) or 'none'}"
                )
            self.levels[category] = levels

    def _infer(self, labels: Labels) -> np.ndarray:
        design = self._design(labels)
        sure = labels.shares()
        start = _Bias(0.7, np.zeros(design.shape[1]), np.zeros(len(labels.annotators)))
        sensitivity = specificity = start
        for _ in range(self.n_iter):
            own = sure[labels.item]
            right = labels.of_annotators(own * labels.label), labels.of_annotators((1 - own) * (1 - labels.label))
            wrong = labels.of_annotators(own * (1 - labels.label)), labels.of_annotators((1 - own) * labels.label)
            sensitivity = self._m_step(sensitivity, design, right[0], wrong[0])
            specificity = self._m_step(specificity, design, right[1], wrong[1])
            prior = (1 + float(sure.sum())) / (2 + len(sure))
            alpha, beta = sensitivity.of_annotators(design), specificity.of_annotators(design)
            sure, likelihood = two_coin_posterior(labels, alpha, beta, prior)
            penalty = np.log(prior) + np.log1p(-prior) - self._penalty(sensitivity) - self._penalty(specificity)
            self.loss_history_.append(-float(likelihood.sum() + penalty) / len(sure))
            if len(self.loss_history_) > 1 and self.loss_history_[-2] - self.loss_history_[-1] < self.tol:
                break
        self.sensitivity_, self.specificity_ = (pd.Series(own, index=labels.annotators) for own in (alpha, beta))
        self.prior_ = prior
        rows = {
            (category, level): [sign * sensitivity.effects[place], sign * specificity.effects[place]]
            for place, (category, levels) in enumerate(self.levels.items())
            for sign, level in zip((1, -1), levels, strict=True)
        }
        self.effects_ = pd.DataFrame.from_dict(rows, orient="index", columns=["sensitivity", "specificity"])
        self.effects_.index = pd.MultiIndex.from_tuples(list(rows), names=["category", "group"])
        return sure

    def _design(self, labels: Labels) -> np.ndarray:
        """(annotators, categories): 1 for the first level, -1 for the second, 0 where it is not known."""
        missing = labels.annotators.difference(self.annotators.index)
        if len(missing):
            raise FairnessError(f"{len(missing):,} annotators are not in the annotators' table, such as '{missing[0]}'")
        own = self.annotators.loc[labels.annotators]
        columns = [
            np.select([own[category] == first, own[category] == second], [1.0, -1.0], 0.0)
            for category, (first, second) in self.levels.items()
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(own), 0))

    def _penalty(self, bias: _Bias) -> float:
        return float(np.square(bias.individual).sum()) / (2 * self.individual_sd**2)

    def _m_step(self, bias: _Bias, design: np.ndarray, right: np.ndarray, wrong: np.ndarray) -> _Bias:
        """Newton's steps on sum(right log a + wrong log(1 - a)) - penalty, a kept inside (0, 1); never downhill."""
        shared = np.column_stack([np.ones(len(design)), design])
        precision = 1 / self.individual_sd**2

        def worth(own: _Bias) -> float:
            a = own.of_annotators(design)
            if a.min() < _EDGE or a.max() > 1 - _EDGE:
                return -np.inf
            return float((right * np.log(a) + wrong * np.log1p(-a)).sum()) - self._penalty(own)

        now = worth(bias)
        for _ in range(_STEPS):
            a = bias.of_annotators(design)
            slope = right / a - wrong / (1 - a)
            curve = right / a**2 + wrong / (1 - a) ** 2 + EPSILON
            # The individual effects' block is diagonal: what is shared is solved for first (Schur complement).
            inner = curve + precision
            of_individual = slope - precision * bias.individual
            kept = curve * precision / inner
            reduced = shared.T @ (slope - curve * of_individual / inner)
            step = np.linalg.lstsq(shared.T @ (kept[:, None] * shared), reduced, rcond=None)[0]
            individual = (of_individual - curve * (shared @ step)) / inner
            length = 1.0
            while length > 1e-8:
                tried = _Bias(
                    bias.level + length * float(step[0]),
                    bias.effects + length * step[1:],
                    bias.individual + length * individual,
                )
                after = worth(tried)
                if after >= now:
                    break
                length /= 2
            else:
                return bias
            gained, bias, now = after - now, tried, after
            if gained < 1e-9 * (1 + abs(now)):
                break
        return bias
