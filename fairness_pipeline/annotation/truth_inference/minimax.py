"""Minimax entropy: the confusion of each annotator and of each item (Zhou, Basu, Mao and Platt 2012).

P(z_ri = k | y_i = c) is proportional to exp(sigma_r(c, k) + tau_i(c, k)): the distribution of maximum entropy whose
counts of each label by class, by annotator and by item, equal those of the labels. The constraints are soft. In the
dual this is a square penalty on sigma and on tau. The penalty on sigma is gamma times the squared number of classes.
The penalty on tau is larger by the ratio of an annotator's labels to an item's labels. This is the authors' scale;
their released code, which Zheng et al. (2017) run, uses gamma 1/4.
"""

from dataclasses import replace

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference, converged


class Minimax(TruthInference):
    """Minimax entropy for classes with the same prior probability.

    Args:
        gamma: The scale of the penalties.
        n_iter: The maximum number of iterations.
        tol: The iterations end when the mean penalised log-likelihood of an item grows by less.

    Attributes:
        confusion_: (workers, classes, classes) P(z = second | y = first) of each worker, for an item whose tau is 0.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> Minimax().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    several = True

    def __init__(self, gamma: float = 0.25, n_iter: int = 50, tol: float = 1e-5) -> None:
        self.gamma = gamma
        self.n_iter = n_iter
        self.tol = tol

    def _infer(self, labels: Labels) -> np.ndarray:
        if not (named := np.bincount(labels.label, minlength=labels.classes) > 0).all():
            # The penalty grows with the number of classes: a class that no label names does not count.
            fewer = replace(labels, label=(np.cumsum(named) - 1)[labels.label], classes=int(named.sum()))
            probas = np.zeros((len(labels.items), labels.classes))
            probas[:, named] = self._infer(fewer)
            return probas
        workers, items, size = len(labels.annotators), len(labels.items), labels.classes
        of_sigma = self.gamma * size**2
        penalty = np.repeat([of_sigma, of_sigma * items / workers], [workers, items]) / 2
        parameters, probas = np.zeros((workers + items, size, size)), labels.shares()
        by_item, by_worker = _sums(labels.item, items), _sums(labels.annotator, workers)
        of_label = np.arange(len(labels.label))
        one_hot = np.eye(size)[labels.label]

        def loss(flat: np.ndarray, label_probas: np.ndarray) -> tuple[float, np.ndarray]:
            at = flat.reshape(parameters.shape)
            log_p = _log_p(labels, at)
            expected = float((label_probas * log_p[of_label, :, labels.label]).sum())
            slope = (label_probas[:, :, None] * (one_hot[:, None, :] - np.exp(log_p))).reshape(len(label_probas), -1)
            gradient = np.concatenate([by_worker @ slope, by_item @ slope]).reshape(parameters.shape)
            square = float(penalty @ np.square(at).sum(axis=(1, 2)))
            return square - expected, (2 * penalty[:, None, None] * at - gradient).ravel()

        from scipy.optimize import minimize  # here, as loading it takes long

        for _ in range(self.n_iter):
            fitted = minimize(loss, parameters.ravel(), (probas[labels.item],), jac=True, method="L-BFGS-B").x
            parameters = np.asarray(fitted).reshape(parameters.shape)
            log_joint = by_item @ _log_p(labels, parameters)[of_label, :, labels.label]
            total = scipy.special.logsumexp(log_joint, axis=1, keepdims=True)
            probas = np.exp(log_joint - total)
            objective = float(penalty @ np.square(parameters).sum(axis=(1, 2))) - float(total.sum())
            self.loss_history_.append(objective / items)
            if converged(self.loss_history_, self.tol):
                break
        self.confusion_ = scipy.special.softmax(parameters[:workers], axis=2)
        return probas


def _sums(index: np.ndarray, count: int) -> scipy.sparse.csr_array:
    """(count, labels): sums values of labels by the index of each."""
    return scipy.sparse.csr_array((np.ones(len(index)), (index, np.arange(len(index)))), (count, len(index)))


def _log_p(labels: Labels, parameters: np.ndarray) -> np.ndarray:
    """(labels, classes, classes): log P(z = third | y = second) of each label's annotator and item."""
    workers = len(labels.annotators)
    logits = parameters[labels.annotator] + parameters[workers + labels.item]
    highest = logits.max(axis=2, keepdims=True)
    return np.asarray(logits - highest - np.log(np.exp(logits - highest).sum(axis=2, keepdims=True)))
