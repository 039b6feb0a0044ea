"""PM-CRH: truths and weights that minimise the weighted errors (Li et al. 2014, CRH; Aydin et al. 2014, PM).

w_r = -log(d_r / max of d), where d_r is the number of the annotator's wrong labels; the highest number has weight 0. An
item's truth is the weighted vote. This is the rule in the code behind Zheng et al. 2017, table 6 (products 89.81). Li
et al. derive -log(d_r / sum of d): its weights are nearly alike, so the result is the majority's.
"""

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import EPSILON
from fairness_pipeline.annotation.truth_inference.weighted_vote import WeightedVote


class PMCRH(WeightedVote):
    """Conflict resolution by block coordinate descent, of two or more classes.

    Attributes:
        skills_: The weight of each worker.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> PMCRH().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def _weights(self, wrong: np.ndarray, count: np.ndarray) -> np.ndarray:
        errors = np.maximum(wrong, EPSILON)
        return EPSILON - np.log(errors / errors.max())
