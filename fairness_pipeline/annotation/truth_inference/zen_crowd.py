"""ZenCrowd: one reliability per annotator, by expectation maximisation (Demartini, Difallah and Cudré-Mauroux 2012).

P(z_ri = y_i) = q_r: the expected share of the annotator's labels that are right. Without a prior this is the code
behind Zheng et al. 2017, table 6 (products 92.80). `prior` adds (right, wrong) labels: (2, 1) keeps an annotator with
few labels from counting as faultless, and one without shared items from counting as random.
"""

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import (
    EPSILON,
    Labels,
    TruthInference,
    class_posterior,
    one_coin,
)


class ZenCrowd(TruthInference):
    """One reliability per annotator, of two or more classes, which have the same prior probability.

    A wrong label is as likely to be any of the other classes.

    Args:
        n_iter: The maximum number of iterations.
        tol: The iterations end when no item's probability changes by more.
        prior: Right and wrong labels that are added to each annotator's.

    Attributes:
        skills_: P(z = y) of each worker.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> ZenCrowd().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    several = True

    def __init__(self, n_iter: int = 100, tol: float = 1e-6, *, prior: tuple[float, float] = (0.0, 0.0)) -> None:
        self.n_iter = n_iter
        self.tol = tol
        self.prior = prior

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        probas, (right_before, wrong_before) = labels.shares(), self.prior
        count = labels.of_annotators(np.ones(len(labels.label)))
        for _ in range(self.n_iter):
            right = labels.of_annotators(probas[labels.item, labels.label])
            skill = np.clip((right + right_before) / (count + right_before + wrong_before), EPSILON, 1 - EPSILON)
            before = probas
            log_confusion = np.log(one_coin(skill, labels.classes))
            probas, likelihood = class_posterior(
                labels, log_confusion, np.full(labels.classes, -np.log(labels.classes))
            )
            penalty = float((right_before * np.log(skill) + wrong_before * np.log1p(-skill)).sum())
            self.loss_history_.append(-(float(likelihood.sum()) + penalty) / len(probas))
            if np.abs(probas - before).max() < self.tol:
                break
        self.skills_ = pd.Series(skill, index=labels.annotators)
        return probas
