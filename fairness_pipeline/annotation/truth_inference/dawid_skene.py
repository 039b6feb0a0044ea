"""Dawid-Skene: each annotator's confusion matrix and the truth, by expectation maximisation (Dawid and Skene 1979).

P(z_ri = k | y_i = c) is the annotator's share of k among the items of class c, P(y_i = c) the share of c; all by
maximum likelihood.
"""

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import (
    EPSILON,
    Labels,
    TruthInference,
    class_posterior,
    converged,
)


class DawidSkene(TruthInference):
    """Dawid-Skene, of two or more classes.

    Args:
        n_iter: The maximum number of iterations.
        tol: The iterations end when the mean log-likelihood of an item grows by less.

    Attributes:
        confusion_: P(z | y): a row per worker and true class, a column per class. NaN if the worker saw no such item.
        sensitivity_: P(z = 1 | y = 1) of each worker.
        specificity_: P(z = 0 | y = 0) of each worker.
        prior_: P(y = c) of each class c.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, t // 2 if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> DawidSkene().fit_predict(data, classes=3).tolist()
        [0, 0, 1, 1, 2, 2]
    """

    several = True

    def __init__(self, n_iter: int = 100, tol: float = 1e-5) -> None:
        self.n_iter = n_iter
        self.tol = tol

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        probas = labels.shares()
        for _ in range(self.n_iter):
            confusion, prior = self._m_step(labels, probas)
            logs = (np.log(np.clip(values, EPSILON, 1 - EPSILON)) for values in (confusion, prior))
            probas, likelihood = class_posterior(labels, *logs)
            self.loss_history_.append(-float(likelihood.mean()))
            if converged(self.loss_history_, self.tol):
                break
        seen = labels.confusion(probas).sum(axis=2, keepdims=True) > EPSILON
        confusion = np.where(seen, confusion, np.nan)
        index = pd.MultiIndex.from_product([labels.annotators, range(labels.classes)], names=["worker", "true"])
        self.confusion_ = pd.DataFrame(confusion.reshape(len(index), -1), index=index)
        self.specificity_, self.sensitivity_ = (
            pd.Series(confusion[:, label, label], index=labels.annotators) for label in (0, 1)
        )
        self.prior_ = prior
        return probas

    def _m_step(self, labels: Labels, probas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        counts = labels.confusion(probas)
        prior: np.ndarray = probas.mean(axis=0)
        return counts / np.maximum(counts.sum(axis=2, keepdims=True), EPSILON), prior
