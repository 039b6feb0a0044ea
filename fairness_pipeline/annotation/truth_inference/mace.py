"""MACE: who answers, and who only spams (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013).

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
        spamming: The Dirichlet parameter of what an annotator says otherwise.
        random_state: The seed of the starts.

    Attributes:
        skills_: The probability that a worker names the true class knowingly (theta).
        spamming_: What a worker says otherwise (xi): a row per worker, a column per class.

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
            knows = 0.5 + 0.5 * random.random(size)
            says = random.dirichlet(np.full(labels.classes, self.spamming), size)
            history = []
            for _ in range(self.n_iter):
                sure, likelihood = self._e_step(labels, knows, says)
                history.append(-float(likelihood.mean()))
                knows, says = self._m_step(labels, sure, knows, says)
            sure, likelihood = self._e_step(labels, knows, says)
            if likelihood.sum() > best:
                best, found = likelihood.sum(), (sure, knows, says, history)
        sure, knows, says, self.loss_history_ = found
        self.skills_ = pd.Series(knows, index=labels.annotators)
        self.spamming_ = pd.DataFrame(says, index=labels.annotators)
        return sure

    @staticmethod
    def _e_step(labels: Labels, knows: np.ndarray, says: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spam = (1 - knows)[:, None, None] * says[:, None, :]
        said = np.eye(labels.classes)[None] * knows[:, None, None] + spam
        prior = np.full(labels.classes, -np.log(labels.classes))
        return class_posterior(labels, np.log(np.maximum(said, EPSILON)), prior)

    def _m_step(
        self, labels: Labels, sure: np.ndarray, knows: np.ndarray, says: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """theta and xi from how often each label was expected to be known, or spam."""
        know, of = knows[labels.annotator], says[labels.annotator, labels.label]
        known = sure[labels.item, labels.label] * know / np.maximum(know + (1 - know) * of, EPSILON)
        a, b = self.competence
        right, wrong = labels.of_annotators(known) + a, labels.of_annotators(1 - known) + b
        places = labels.annotator * labels.classes + labels.label
        spam = np.bincount(places, 1 - known, len(knows) * labels.classes).reshape(-1, labels.classes) + self.spamming
        yes, no = (np.exp(scipy.special.digamma(own)) for own in (right, wrong))
        weights = np.exp(scipy.special.digamma(spam))
        return yes / (yes + no), weights / weights.sum(axis=1, keepdims=True)
