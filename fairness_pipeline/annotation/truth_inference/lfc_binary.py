"""LFC-binary: the truth, sensitivities and specificities, and a prevalence, with priors (Raykar et al. 2010).

As Dawid-Skene for two classes, with Beta priors on sensitivities, specificities and prevalence, so that an annotator of
few labels is not taken at their word: alpha_r = (a - 1 + sum mu z) / (a + b - 2 + sum mu).
"""

import numpy as np
import pandas as pd

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference, two_coin_posterior


class LFCBinary(TruthInference):
    """Without features of the items: the classifier is their common prevalence.

    Args:
        n_iter: Iterations, at most.
        tol: It ends when the mean log-posterior of an item grows by less.
        prior: Of sensitivity and specificity: Beta(a, b).
        prevalence: Beta(a, b) of P(y = 1).

    Attributes:
        sensitivity_: P(z = 1 | y = 1) of each worker.
        specificity_: P(z = 0 | y = 0) of each worker.
        prior_: P(y = 1).
    """

    def __init__(
        self,
        n_iter: int = 100,
        tol: float = 1e-6,
        *,
        prior: tuple[float, float] = (2.0, 1.5),
        prevalence: tuple[float, float] = (2.0, 2.0),
    ) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.prior = prior
        self.prevalence = prevalence

    def _infer(self, labels: Labels) -> np.ndarray:
        sure = labels.shares()
        a, b = self.prior
        p, q = self.prevalence
        for _ in range(self.n_iter):
            own = sure[labels.item]
            alpha = (a - 1 + labels.of_annotators(own * labels.label)) / (a + b - 2 + labels.of_annotators(own))
            beta = (a - 1 + labels.of_annotators((1 - own) * (1 - labels.label))) / (
                a + b - 2 + labels.of_annotators(1 - own)
            )
            prevalence = (p - 1 + float(sure.sum())) / (p + q - 2 + len(sure))
            sure, likelihood = two_coin_posterior(labels, alpha, beta, prevalence)
            penalty = sum(((a - 1) * np.log(v) + (b - 1) * np.log1p(-v)).sum() for v in (alpha, beta))
            penalty += (p - 1) * np.log(prevalence) + (q - 1) * np.log1p(-prevalence)
            self.loss_history_.append(-float(likelihood.sum() + penalty) / len(sure))
            if len(self.loss_history_) > 1 and self.loss_history_[-2] - self.loss_history_[-1] < self.tol:
                break
        self.sensitivity_, self.specificity_ = (pd.Series(own, index=labels.annotators) for own in (alpha, beta))
        self.prior_ = prevalence
        return sure
