"""CATD: weights that account for the uncertainty of few labels (Li et al. 2014).

w_r = chi-squared quantile(alpha / 2, n_r) / sum of the annotator's squared errors. An item's truth is the weighted mean
of its labels, rounded.
"""

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.weighted_vote import WeightedVote


class CATD(WeightedVote):
    """Confidence-aware truth discovery, of two or more classes.

    Args:
        n_iter: The maximum number of iterations.
        alpha: 1 minus the level of the confidence interval of an annotator's error variance.

    Attributes:
        skills_: The weight of each worker.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> CATD().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, n_iter: int = 100, alpha: float = 0.05) -> None:
        super().__init__(n_iter)
        self.alpha = alpha

    def _weights(self, wrong: np.ndarray, count: np.ndarray) -> np.ndarray:
        quantile = 2 * scipy.special.gammaincinv(count / 2, self.alpha / 2)  # of chi-square
        weight: np.ndarray = quantile / np.maximum(wrong, 0.5)  # 0 errors count as half an error
        return weight
