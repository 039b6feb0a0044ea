"""MACE: tells annotators who answer from those who spam (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013).

With probability theta_r an annotator names the true class, and otherwise a class drawn from xi_r, whatever the item is.
All classes have the same prior probability. theta_r ~ Beta(0.5, 0.5) and xi_r ~ Dirichlet(10, ..., 10) are fitted by
variational Bayes (section 2.3): a weight in place of a probability is exp(digamma(count)) over exp(digamma(sum)). The
best of several random starts is kept, as the likelihood has more than one peak.
"""

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.base import EPSILON, Labels, TruthInference, class_posterior


class MACE(TruthInference):
    """Multi-annotator competence estimation, of two or more classes.

    Args:
        n_iter: The number of iterations of each start.
        n_restarts: The number of random starts. That with the highest likelihood is kept.
        competence: Beta(a, b) of the probability of naming the true class.
        spamming: The Dirichlet parameter of an annotator's spam.
        random_state: The seed of the starts.

    Attributes:
        skills_: The probability that a worker names the true class knowingly (theta).
        spamming_: The distribution of a worker's spam (xi): a row per worker, a column per class.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, t // 2 if w < "d" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> model = MACE().fit(data, classes=3)
        >>> model.labels_.tolist(), bool(model.skills_["d"] < 0.5 < model.skills_["a"])
        ([0, 0, 1, 1, 2, 2], True)
    """

    several = True

    def __init__(
        self,
        n_iter: int = 50,
        n_restarts: int = 10,
        *,
        competence: tuple[float, float] = (0.5, 0.5),
        spamming: float = 10.0,
        random_state: int = 0,
    ) -> None:
        self.n_iter = n_iter
        self.n_restarts = n_restarts
        self.competence = competence
        self.spamming = spamming
        self.random_state = random_state

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        random = np.random.default_rng(self.random_state)
        size = len(labels.annotators)
        best = -np.inf
        for _ in range(self.n_restarts):
            theta = 0.5 + 0.5 * random.random(size)
            xi = random.dirichlet(np.full(labels.classes, self.spamming), size)
            history = []
            for _ in range(self.n_iter):
                probas, likelihood = self._e_step(labels, theta, xi)
                history.append(-float(likelihood.mean()))
                theta, xi = self._m_step(labels, probas, theta, xi)
            probas, likelihood = self._e_step(labels, theta, xi)
            if likelihood.sum() > best:
                best, fitted = likelihood.sum(), (probas, theta, xi, history)
        probas, theta, xi, self.loss_history_ = fitted
        self.skills_ = pd.Series(theta, index=labels.annotators)
        self.spamming_ = pd.DataFrame(xi, index=labels.annotators)
        return probas

    @staticmethod
    def _e_step(labels: Labels, theta: np.ndarray, xi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spam = (1 - theta)[:, None, None] * xi[:, None, :]
        confusion = np.eye(labels.classes)[None] * theta[:, None, None] + spam
        prior = np.full(labels.classes, -np.log(labels.classes))
        return class_posterior(labels, np.log(np.maximum(confusion, EPSILON)), prior)

    def _m_step(
        self, labels: Labels, probas: np.ndarray, theta: np.ndarray, xi: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """theta and xi, from the probability that each label was known, or spam."""
        label_theta, label_xi = theta[labels.annotator], xi[labels.annotator, labels.label]
        known = (
            probas[labels.item, labels.label]
            * label_theta
            / np.maximum(label_theta + (1 - label_theta) * label_xi, EPSILON)
        )
        a, b = self.competence
        right, wrong = labels.of_annotators(known) + a, labels.of_annotators(1 - known) + b
        cells = labels.annotator * labels.classes + labels.label
        spam = np.bincount(cells, 1 - known, len(theta) * labels.classes).reshape(-1, labels.classes) + self.spamming
        yes, no = (np.exp(scipy.special.digamma(count)) for count in (right, wrong))
        weights = np.exp(scipy.special.digamma(spam))
        return yes / (yes + no), weights / weights.sum(axis=1, keepdims=True)
