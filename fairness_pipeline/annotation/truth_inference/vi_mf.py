"""VI-MF: mean-field variational inference with Beta priors on reliabilities (Liu, Peng and Ihler 2012), two coins.

alpha_r ~ Beta(a, b) is P(z = 1 | y = 1) of an annotator, beta_r ~ Beta(a, b) is P(z = 0 | y = 0). mu_i is the softmax
of the sums of E[log alpha_r] or E[log(1 - alpha_r)] for y = 1, and of E[log(1 - beta_r)] or E[log beta_r] for y = 0.
alpha_r ~ Beta(a + its expected true positives, b + its false negatives), likewise beta_r; E[log q] = digamma(A) -
digamma(A + B).

This is the model in the code behind Zheng et al. 2017, table 6 (prior (2, 1; 1, 2)): products 83.91, F1 55.31. One coin
for both classes is another model.
"""

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference


class VIMF(TruthInference):
    """Sensitivity and specificity of each annotator, with their uncertainty. Both classes have the same prior.

    Args:
        n_iter: The maximum number of iterations.
        tol: The iterations end when no item's probability changes by more.
        prior: Beta(a, b) of a sensitivity and of a specificity.

    Attributes:
        skills_: The mean of each worker's expected sensitivity and specificity.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> VIMF().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, n_iter: int = 100, tol: float = 1e-6, *, prior: tuple[float, float] = (2.0, 1.0)) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.prior = prior

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        probas, (a, b) = labels.positive_shares(), self.prior
        for _ in range(self.n_iter):
            hits, misses, alarms, rejections = labels.counts(probas)
            of_positive, of_negative = (a + hits, b + misses), (a + rejections, b + alarms)
            (hit, miss), (rejection, alarm) = _logs(*of_positive), _logs(*of_negative)
            before, probas = (
                probas,
                scipy.special.expit(labels.positive @ (hit - alarm) + labels.negative @ (miss - rejection)),
            )
            if np.abs(probas - before).max() < self.tol:
                break
        means = [right / (right + wrong) for right, wrong in (of_positive, of_negative)]
        self.skills_ = pd.Series(sum(means) / 2, index=labels.annotators)
        return probas


def _logs(right: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E[log q] and E[log(1 - q)] of q ~ Beta(right, wrong)."""
    total = scipy.special.digamma(right + wrong)
    return scipy.special.digamma(right) - total, scipy.special.digamma(wrong) - total
