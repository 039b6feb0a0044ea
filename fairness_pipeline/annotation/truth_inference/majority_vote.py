"""MV: the label that most annotators give. A tie is 1 (of several classes the last one), or drawn."""

from typing import Literal

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference

_HAIR = 1e-5


class MajorityVote(TruthInference):
    """Majority vote: `probas_` is the share of an item's labels that are 1, or that of each of several classes.

    Args:
        ties: `last` (of two classes positive), or `drawn` at random, as the survey's code does; the share of the drawn
            class is then a hair above the others'.
        seed: The seed of the draws.

    Examples:
        >>> import pandas as pd
        >>> data = pd.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [1, 0, 0]})
        >>> MajorityVote().fit_predict(data).to_dict()
        {1: 1, 2: 0}
    """

    several = True

    def __init__(self, ties: Literal["last", "drawn"] = "last", seed: int = 0) -> None:
        self.ties = ties
        self.seed = seed

    def _infer(self, labels: Labels) -> np.ndarray:
        shares = labels.shares()
        if self.ties == "last":
            return shares
        highest = shares == shares.max(axis=1, keepdims=True)
        chosen = np.where(highest, np.random.default_rng(self.seed).random(shares.shape), -1.0).argmax(axis=1)
        shares[np.arange(len(shares)), chosen] += _HAIR
        return shares / shares.sum(axis=1, keepdims=True)
