"""PM-CRH: truths and weights that make the weighted errors small (Li et al. 2014, CRH; Aydin et al. 2014, PM).

min over truths and weights of sum over r of w_r d_r, with sum of exp(-w_r) = 1: w_r = -log(d_r / sum of d), d_r the
share of the annotator's labels that are wrong; an item's truth is the weighted vote.
"""

import numpy as np
import pandas as pd

from fairness_pipeline.annotation.truth_inference.base import EPSILON, Labels, TruthInference


class PMCRH(TruthInference):
    """Conflict resolution by block coordinate descent.

    Args:
        n_iter: Iterations, at most.

    Attributes:
        skills_: The weight of each worker.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> PMCRH().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, n_iter: int = 100) -> None:
        self.n_iter = n_iter

    def _infer(self, labels: Labels) -> np.ndarray:
        count = labels.of_annotators(np.ones(len(labels.label)))
        sure = labels.shares()
        for _ in range(self.n_iter):
            truth = (sure >= 0.5 - EPSILON).astype(float)
            wrong = labels.of_annotators((labels.label != truth[labels.item]).astype(float))
            errors = (wrong + 0.5) / (count + 1)  # nobody is never wrong
            weight = -np.log(errors / errors.sum()) if len(errors) > 1 else np.ones(1)
            own = weight[labels.annotator]
            sure = labels.of_items(own * labels.label) / labels.of_items(own)
            if np.array_equal(sure >= 0.5 - EPSILON, truth == 1):
                break
        self.skills_ = pd.Series(weight, index=labels.annotators)
        return sure
