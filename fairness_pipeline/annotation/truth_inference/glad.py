"""GLAD: each annotator's ability and each item's ease, by expectation maximisation (Whitehill et al. 2009).

P(z_ri = y_i) = sigmoid(a_r exp(b_i)). a_r and b_i have the prior N(1, 1), as in the paper's experiments. All classes
have the same prior probability, and all wrong labels of an item are as likely as each other.
"""

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference, converged


class GLAD(TruthInference):
    """Models the ability of each annotator and the ease of each item, of two or more classes.

    Args:
        n_iter: The maximum number of iterations.
        tol: The iterations end when the mean penalised log-likelihood of an item grows by less.

    Attributes:
        abilities_: a of each worker. 0 means random labels, below 0 means labels opposite to the truth.
        eases_: b of each task.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> GLAD().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    several = True

    def __init__(self, n_iter: int = 100, tol: float = 1e-5) -> None:
        self.n_iter = n_iter
        self.tol = tol

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        workers = len(labels.annotators)
        parameters = np.ones(workers + len(labels.items))
        probas, _ = self._e_step(labels, parameters)
        for _ in range(self.n_iter):
            parameters = self._m_step(labels, parameters, probas)
            probas, likelihood = self._e_step(labels, parameters)
            penalty = np.square(parameters - 1).sum() / 2
            self.loss_history_.append(-float(likelihood.sum() - penalty) / len(probas))
            if converged(self.loss_history_, self.tol):
                break
        self.abilities_ = pd.Series(parameters[:workers], index=labels.annotators)
        self.eases_ = pd.Series(parameters[workers:], index=labels.items)
        return probas

    @staticmethod
    def _logits(labels: Labels, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each label: a exp(b), and exp(b)."""
        ease = np.exp(parameters[len(labels.annotators) :])[labels.item]
        return parameters[labels.annotator] * ease, ease

    def _e_step(self, labels: Labels, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P(y | labels) of each item (items, classes), and the log-likelihood of its labels."""
        logits, _ = self._logits(labels, parameters)
        wrong = scipy.special.log_expit(-logits) - np.log(labels.classes - 1)
        gain = scipy.special.log_expit(logits) - wrong  # for the class that the label names
        cells = labels.item * labels.classes + labels.label
        log_joint = np.bincount(cells, gain, len(labels.items) * labels.classes).reshape(-1, labels.classes)
        log_joint += labels.of_items(wrong)[:, None] - np.log(labels.classes)
        return scipy.special.softmax(log_joint, axis=1), scipy.special.logsumexp(log_joint, axis=1)

    def _m_step(self, labels: Labels, start: np.ndarray, probas: np.ndarray) -> np.ndarray:
        right = probas[labels.item, labels.label]

        def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            logits, ease = self._logits(labels, parameters)
            expected = right * scipy.special.log_expit(logits) + (1 - right) * scipy.special.log_expit(-logits)
            slope = (right - scipy.special.expit(logits)) * ease
            of_items = labels.of_items(slope * parameters[labels.annotator])
            gradient = np.concatenate([labels.of_annotators(slope), of_items])
            return -float(expected.sum()) + float(np.square(parameters - 1).sum()) / 2, parameters - 1 - gradient

        from scipy.optimize import minimize  # here, as loading it takes long

        fitted: np.ndarray = minimize(loss, start, jac=True, method="L-BFGS-B").x
        return fitted
