"""KOS: messages between items and annotators (Karger, Oh and Shah 2011).

With z = +1 or -1: x_{i->r} = sum over r' != r of z_{r'i} y_{r'->i}; y_{r->i} = sum over i' != i of z_{ri'} x_{i'->r}. y
starts with draws of N(1, 1), one per row. If the labels say little, the order of the rows therefore matters. The label
is the sign of sum over r of z_ri y_{r->i}. Of several classes each is inferred against the rest.
"""

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.base import EPSILON, Labels, TruthInference

_FAINT = 1e-6
"""If an item's sum of messages is a smaller share of the largest sum, it does not decide the label."""


class KOS(TruthInference):
    """Belief propagation. The label is the sign of the final messages.

    Args:
        n_iter: The number of rounds of messages.
        random_state: The seed of the first messages.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "e" else t % 2) for t in range(6) for w in "abcde"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> KOS().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    several = True

    def __init__(self, n_iter: int = 100, random_state: int = 0) -> None:
        self.n_iter = n_iter
        self.random_state = random_state

    def _infer(self, labels: Labels) -> np.ndarray:
        if labels.classes == 2:
            return self._infer_sign(labels)
        scores = [self._infer_sign(labels.one_against_rest(label)) for label in range(labels.classes)]
        return np.stack(scores, axis=1) / np.maximum(np.sum(scores, axis=0), EPSILON)[:, None]

    def _infer_sign(self, labels: Labels) -> np.ndarray:
        """The score of the positive class."""
        signs = np.where(labels.label == 1, 1.0, -1.0)
        first = np.random.default_rng(self.random_state).normal(1, 1, len(signs))
        total = self._messages(labels, signs, first)
        faint = np.abs(total) <= _FAINT * np.abs(total).max()
        if faint.any():  # in separate components messages grow at different rates: normalise each
            separate = self._messages(labels, signs, first, _components(labels))
            total = np.where(faint, separate, total / max(np.abs(total).max(), 1e-300))
        largest = np.abs(total).max()
        scores = (total / largest + 1) / 2 if largest > 0 else labels.positive_shares()
        return np.where(total == 0, labels.positive_shares(), scores)

    def _messages(
        self, labels: Labels, signs: np.ndarray, first: np.ndarray, component: np.ndarray | None = None
    ) -> np.ndarray:
        """The sum of the last messages to each item. Their length is normalised: over all labels, or within each
        component of the labels."""
        from_annotator = first
        total = labels.of_items(signs * from_annotator)
        for _ in range(self.n_iter):
            from_item = total[labels.item] - signs * from_annotator
            from_annotator = labels.of_annotators(signs * from_item)[labels.annotator] - signs * from_item
            if component is None:
                from_annotator /= np.sqrt(np.mean(np.square(from_annotator))) or 1.0
            else:
                length = np.sqrt(np.bincount(component, np.square(from_annotator)) / np.bincount(component))
                from_annotator /= np.where(length > 0, length, 1.0)[component]
            total = labels.of_items(signs * from_annotator)
        return total


def _components(labels: Labels) -> np.ndarray:
    """For each label: the connected component of the graph of items and annotators that it belongs to."""
    size = len(labels.items)
    edges = labels.item, size + labels.annotator
    from scipy.sparse.csgraph import connected_components  # here, as loading it takes long

    graph = scipy.sparse.csr_array((np.ones(len(labels.item)), edges), shape=(size + len(labels.annotators),) * 2)
    component: np.ndarray = connected_components(graph, directed=False)[1][labels.item]
    return np.unique(component, return_inverse=True)[1]
