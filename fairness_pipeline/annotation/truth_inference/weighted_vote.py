"""The weighted vote of CATD and PM-CRH: alternates a vote by annotators' weights with weights from how often each is
outvoted."""

from abc import abstractmethod

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import Labels, TruthInference, last_of_the_highest


class WeightedVote(TruthInference):
    """A weighted vote. A subclass defines how an annotator's errors determine the weight.

    Args:
        n_iter: The maximum number of iterations. They end when no label changes.

    Attributes:
        skills_: The weight of each worker.
    """

    several = True

    def __init__(self, n_iter: int = 100) -> None:
        self.n_iter = n_iter

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        count = labels.of_annotators(np.ones(len(labels.label)))
        probas = labels.shares()
        for _ in range(self.n_iter):
            truth = last_of_the_highest(probas)
            wrong = labels.of_annotators((labels.label != truth[labels.item]).astype(float))
            weight = self._weights(wrong, count)
            votes = np.stack([given @ weight for given in labels.indicators], axis=1)
            probas = votes / votes.sum(axis=1, keepdims=True)
            if np.array_equal(last_of_the_highest(probas), truth):
                break
        self.skills_ = pd.Series(weight, index=labels.annotators)
        return probas

    @abstractmethod
    def _weights(self, wrong: np.ndarray, count: np.ndarray) -> np.ndarray:
        """The weight of each annotator, from the number of labels (`count`) and how many of them the vote calls
        wrong."""
