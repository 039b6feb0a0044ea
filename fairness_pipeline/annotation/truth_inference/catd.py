"""CATD: weights that know how little a few labels say (Li et al. 2014).

w_r = chi-squared quantile(alpha / 2, n_r) / sum of the annotator's squared errors; an item's truth is the weighted mean
of its labels, rounded.
"""

import numpy as np
import pandas as pd
from scipy.stats import chi2

from fairness_pipeline.annotation.truth_inference.base import EPSILON, Labels, TruthInference


class CATD(TruthInference):
    """Confidence-aware truth discovery.

    Args:
        n_iter: Iterations, at most.
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
        self.n_iter = n_iter
        self.alpha = alpha

    def _infer(self, labels: Labels) -> np.ndarray:
        count = labels.of_annotators(np.ones(len(labels.label)))
        quantile = chi2.ppf(self.alpha / 2, count)
        sure = labels.shares()
        for _ in range(self.n_iter):
            truth = (sure >= 0.5 - EPSILON).astype(float)
            wrong = labels.of_annotators((labels.label != truth[labels.item]).astype(float))
            weight = quantile / np.maximum(wrong, 0.5)  # who was never wrong was wrong half a time
            own = weight[labels.annotator]
            sure = labels.of_items(own * labels.label) / labels.of_items(own)
            if np.array_equal(sure >= 0.5 - EPSILON, truth == 1):
                break
        self.skills_ = pd.Series(weight, index=labels.annotators)
        return sure
