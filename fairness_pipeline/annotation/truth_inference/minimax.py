"""Minimax entropy: the confusion of each annotator and the pull of each item (Zhou, Basu, Mao and Platt 2012).

P(z_ri = k | y_i = c) is proportional to exp(sigma_r(c, k) + tau_i(k)): the distribution of maximum entropy whose
counts, by annotator and by item, equal those of the labels. The constraints are soft. In the dual this is a square
penalty on sigma and on tau. The penalty on sigma is gamma times the squared number of classes. The penalty on tau is
larger by the ratio of an annotator's labels to an item's labels. This is the authors' scale; their released code uses
gamma 1/4. With gamma 1, simulated labels (5 per item by 30 annotators) are read no worse than by majority vote. With
two classes only the differences s_r(c) = sigma_r(c, 1) - sigma_r(c, 0) and t_i matter.
"""

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference

_CLASSES = 2


class Minimax(TruthInference):
    """Minimax entropy for two classes with the same prior probability.

    Args:
        gamma: The scale of the penalties.
        n_iter: The maximum number of iterations.
        tol: The iterations end when the mean penalised log-likelihood of an item grows by less.

    Attributes:
        sensitivity_: P(z = 1 | y = 1) of each worker, for an item that pulls to neither side.
        specificity_: P(z = 0 | y = 0) of each worker, for such an item.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> Minimax().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, gamma: float = 1.0, n_iter: int = 100, tol: float = 1e-6) -> None:
        self.gamma = gamma
        self.n_iter = n_iter
        self.tol = tol

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        workers, items = len(labels.annotators), len(labels.items)
        of_sigma = self.gamma * _CLASSES**2
        # Two parameters +d/2 and -d/2 have the difference d; their squares sum to d^2 / 2.
        penalty = np.repeat([of_sigma / 4, of_sigma * items / workers / 4], [2 * workers, items])
        point = np.zeros(2 * workers + items)
        sign = np.where(labels.label == 1, 1.0, -1.0)
        sure = labels.positive_shares()
        for _ in range(self.n_iter):
            point = self._m_step(labels, point, sure, penalty, sign)
            negative, positive = self._logits(labels, point)
            a = labels.of_items(scipy.special.log_expit(sign * positive)) + np.log(0.5)
            b = labels.of_items(scipy.special.log_expit(sign * negative)) + np.log(0.5)
            sure = scipy.special.expit(a - b)
            self.loss_history_.append(float(penalty @ point**2 - np.logaddexp(a, b).sum()) / items)
            if len(self.loss_history_) > 1 and self.loss_history_[-2] - self.loss_history_[-1] < self.tol:
                break
        index = labels.annotators
        self.sensitivity_ = pd.Series(scipy.special.expit(point[workers : 2 * workers]), index=index)
        self.specificity_ = pd.Series(scipy.special.expit(-point[:workers]), index=index)
        return sure

    @staticmethod
    def _logits(labels: Labels, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each label: the log-odds of 1 if y = 0, and if y = 1."""
        workers = len(labels.annotators)
        pull = point[2 * workers :][labels.item]
        return point[labels.annotator] + pull, point[workers + labels.annotator] + pull

    def _m_step(
        self, labels: Labels, point: np.ndarray, sure: np.ndarray, penalty: np.ndarray, sign: np.ndarray
    ) -> np.ndarray:
        own = sure[labels.item]

        def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
            negative, positive = self._logits(labels, at)
            expected = (1 - own) * scipy.special.log_expit(sign * negative) + own * scipy.special.log_expit(
                sign * positive
            )
            slopes = (
                (1 - own) * (labels.label - scipy.special.expit(negative)),
                own * (labels.label - scipy.special.expit(positive)),
            )
            gradient = [*map(labels.of_annotators, slopes), labels.of_items(slopes[0] + slopes[1])]
            return float(penalty @ at**2 - expected.sum()), 2 * penalty * at - np.concatenate(gradient)

        from scipy.optimize import minimize  # here, as loading it takes long

        found: np.ndarray = minimize(loss, point, jac=True, method="L-BFGS-B").x
        return found
