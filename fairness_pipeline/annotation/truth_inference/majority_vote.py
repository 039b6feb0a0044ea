"""MV: the label that most annotators give. A tie is 1 (of several classes the last one)."""

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference


class MajorityVote(TruthInference):
    """Majority vote: `probas_` is the share of an item's labels that are 1, or that of each of several classes.

    Examples:
        >>> import pandas as pd
        >>> data = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [1, 0, 0]})
        >>> MajorityVote().fit_predict(data).to_dict()
        {1: 1, 2: 0}
    """

    several = True

    def _infer(self, labels: Labels) -> np.ndarray:
        return labels.shares()
