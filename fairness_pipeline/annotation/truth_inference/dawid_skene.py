"""Dawid-Skene: each annotator's confusion matrix and the truth, by expectation maximisation (Dawid and Skene 1979).

P(z_ri = 1 | y_i = 1) = alpha_r, P(z_ri = 0 | y_i = 0) = beta_r, P(y_i = 1) = p; all by maximum likelihood.
"""

import numpy as np
import pandas as pd

from fairness_pipeline.annotation.truth_inference.base import EPSILON, Labels, TruthInference, two_coin_posterior


class DawidSkene(TruthInference):
    """Binary Dawid-Skene.

    Args:
        n_iter: The maximum number of iterations.
        tol: The iterations end when the mean log-likelihood of an item grows by less.

    Attributes:
        sensitivity_: P(z = 1 | y = 1) of each worker. NaN for a worker who saw no such item.
        specificity_: P(z = 0 | y = 0) of each worker.
        prior_: P(y = 1).

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> DawidSkene().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, n_iter: int = 100, tol: float = 1e-5) -> None:
        self.n_iter = n_iter
        self.tol = tol

    def _infer(self, labels: Labels) -> np.ndarray:
        sure = labels.shares()
        for _ in range(self.n_iter):
            alpha, beta, prior = self._m_step(labels, sure)
            sure, likelihood = two_coin_posterior(labels, alpha, beta, prior)
            self.loss_history_.append(-float(likelihood.mean()))
            if len(self.loss_history_) > 1 and self.loss_history_[-2] - self.loss_history_[-1] < self.tol:
                break
        hits, misses, false_alarms, rejections = labels.counts(sure)
        alpha = np.where(hits + misses > EPSILON, alpha, np.nan)
        beta = np.where(false_alarms + rejections > EPSILON, beta, np.nan)
        self.sensitivity_, self.specificity_ = (pd.Series(own, index=labels.annotators) for own in (alpha, beta))
        self.prior_ = prior
        return sure

    def _m_step(self, labels: Labels, sure: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        hits, misses, false_alarms, rejections = labels.counts(sure)
        alpha = hits / np.maximum(hits + misses, EPSILON)
        beta = rejections / np.maximum(false_alarms + rejections, EPSILON)
        return alpha, beta, float(sure.mean())
