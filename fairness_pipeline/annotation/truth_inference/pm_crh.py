"""PM-CRH: truths and weights that minimise the weighted errors (Li et al. 2014, CRH; Aydin et al. 2014, PM).

min over truths and weights of sum over r of w_r d_r, with sum of exp(-w_r) = 1. This gives w_r = -log(d_r / sum of d),
where d_r is the share of the annotator's labels that are wrong. An item's truth is the weighted vote.
"""

import numpy as np

from fairness_pipeline.annotation.truth_inference.weighted_vote import WeightedVote


class PMCRH(WeightedVote):
    """Conflict resolution by block coordinate descent.

    Args:
        n_iter: The maximum number of iterations.

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
        errors = (wrong + 0.5) / (count + 1)  # smoothed: no error rate is 0
        return -np.log(errors / errors.sum()) if len(errors) > 1 else np.ones(1)
