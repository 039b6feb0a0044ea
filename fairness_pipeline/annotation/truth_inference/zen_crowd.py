"""ZenCrowd: one reliability per annotator, by expectation maximisation (Demartini, Difallah and Cudré-Mauroux 2012).

P(z_ri = y_i) = q_r ~ Beta(3, 2): the expected share of the annotator's labels that are right, with two right labels and
one wrong label added. If as many of each were added, an annotator who shares no item with anybody would count as
random.
"""

import numpy as np
import pandas as pd

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference, two_coin_posterior


class ZenCrowd(TruthInference):
    """One reliability per annotator. Both classes have the same prior probability.

    Args:
        n_iter: The maximum number of iterations.
        tol: The iterations end when no item's probability changes by more.

    Attributes:
        skills_: P(z = y) of each worker.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> ZenCrowd().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, n_iter: int = 100, tol: float = 1e-6) -> None:
        self.n_iter = n_iter
        self.tol = tol

    def _infer(self, labels: Labels) -> np.ndarray:
        sure = labels.shares()
        count = labels.of_annotators(np.ones(len(labels.label)))
        for _ in range(self.n_iter):
            own = sure[labels.item]
            right = labels.of_annotators(np.where(labels.label == 1, own, 1 - own))
            skill = (right + 2) / (count + 3)
            before = sure
            sure, likelihood = two_coin_posterior(labels, skill, skill, 0.5)
            penalty = float((2 * np.log(skill) + np.log1p(-skill)).sum())
            self.loss_history_.append(-(float(likelihood.sum()) + penalty) / len(sure))
            if np.abs(sure - before).max() < self.tol:
                break
        self.skills_ = pd.Series(skill, index=labels.annotators)
        return sure
