"""KOS: messages between items and annotators (Karger, Oh and Shah 2011).

With z = +1 or -1: x_{i->r} = sum over r' != r of z_{r'i} y_{r'->i}; y_{r->i} = sum over i' != i of z_{ri'} x_{i'->r};
y begins with draws of N(1, 1). The label is the sign of sum over r of z_ri y_{r->i}.
"""

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference


class KOS(TruthInference):
    """Belief propagation with a sign at its end.

    Args:
        n_iter: Rounds of messages.
        random_state: Of the first messages.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "e" else t % 2) for t in range(6) for w in "abcde"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> KOS().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def __init__(self, n_iter: int = 100, random_state: int = 0) -> None:
        self.n_iter = n_iter
        self.random_state = random_state

    def _infer(self, labels: Labels) -> np.ndarray:
        signs = np.where(labels.label == 1, 1.0, -1.0)
        from_annotator = np.random.default_rng(self.random_state).normal(1, 1, len(signs))
        total = labels.of_items(signs * from_annotator)
        for _ in range(self.n_iter):
            from_item = total[labels.item] - signs * from_annotator
            from_annotator = labels.of_annotators(signs * from_item)[labels.annotator] - signs * from_item
            length = np.sqrt(np.mean(np.square(from_annotator)))
            if length == 0:  # nobody shares an item with anybody: all that is left is the vote
                return labels.shares()
            from_annotator /= length
            total = labels.of_items(signs * from_annotator)
        largest = np.abs(total).max()
        return (total / largest + 1) / 2 if largest > 0 else labels.shares()
