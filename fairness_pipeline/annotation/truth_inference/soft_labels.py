"""Soft labels: the share of annotators who would give each class, not a single truth (Uma et al. 2021, section 3).

P(k) = (labels of class k + a) / (labels + a times the classes). With a = 0.5 (Jeffreys' prior) three labels of three do
not mean certainty.
"""

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference


class SoftLabels(TruthInference):
    """The smoothed share of each class, of two or more classes, to train a model where people rightly differ.

    Args:
        smoothing: Labels that are added to each class.

    Examples:
        >>> import pandas as pd
        >>> data = pd.DataFrame({"task": [1, 1, 1, 2], "worker": list("abca"), "label": [1, 1, 0, 0]})
        >>> SoftLabels().fit(data).probas_.to_dict()
        {1: 0.625, 2: 0.25}
    """

    several = True

    def __init__(self, smoothing: float = 0.5) -> None:
        self.smoothing = smoothing

    def _infer(self, labels: Labels) -> np.ndarray:
        votes = labels.votes + self.smoothing
        return votes / votes.sum(axis=1, keepdims=True)
