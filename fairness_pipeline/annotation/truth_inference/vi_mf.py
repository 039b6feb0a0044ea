"""VI-MF: mean-field variational inference with a Beta prior on reliabilities (Liu, Peng and Ihler 2012).

q_r ~ Beta(a, b). mu_i(y) is proportional to prod over r of exp(E[log q_r]) if z_ri = y, and exp(E[log(1 - q_r)])
otherwise. q_r ~ Beta(a + sum mu_i(z_ri), b + sum (1 - mu_i(z_ri))); E[log q] = digamma(A) - digamma(A + B).
"""

import numpy as np
import pandas as pd
from scipy.special import digamma, expit

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference


class VIMF(TruthInference):
    """One reliability per annotator, with its uncertainty.

    Args:
        n_iter: The maximum number of iterations.
        tol: The iterations end when no item's probability changes by more.
        prior: Beta(a, b) of a reliability.

    Attributes:
        skills_: The mean reliability of each worker.

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
        sure, (a, b) = labels.shares(), self.prior
        signs = np.where(labels.label == 1, 1.0, -1.0)
        for _ in range(self.n_iter):
            own = sure[labels.item]
            agreed = np.where(labels.label == 1, own, 1 - own)
            right, wrong = a + labels.of_annotators(agreed), b + labels.of_annotators(1 - agreed)
            weight = digamma(right) - digamma(wrong)  # E[log q] - E[log(1 - q)]
            before, sure = sure, expit(labels.of_items(signs * weight[labels.annotator]))
            if np.abs(sure - before).max() < self.tol:
                break
        self.skills_ = pd.Series(right / (right + wrong), index=labels.annotators)
        return sure
