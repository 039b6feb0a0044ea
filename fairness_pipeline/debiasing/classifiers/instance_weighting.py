"""Ins Weigh: each text counts P(Y) / P(Y | Z) (Liu 2022, section 4.5.2; Zhang et al. 2020).

Y is its label, Z its author's group. A random forest predicts P(Y | Z) from the group; P(Y) is the share of the label.
At a balance rate of 4:1 a text of the commoner label of its group counts 0.5 / 0.8, one of the rarer 0.5 / 0.2.
"""

import numpy as np

from fairness_pipeline.debiasing.classifiers.registry import Task, Texts


def weights(labels: np.ndarray, groups: np.ndarray, seed: int) -> np.ndarray:
    """Returns the weight of each text, from labels and groups of 0 or 1."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(random_state=seed % 2**32).fit(groups[:, None], labels)
    probabilities = forest.predict_proba(np.array([[0], [1]]))  # (groups, labels)
    shares = np.bincount(labels, minlength=2) / len(labels)
    text_weights: np.ndarray = shares[labels] / probabilities[groups, labels]
    return text_weights


def prepared(task: Task) -> Texts:
    """The training set with its weights."""
    train = task.train
    return train._replace(weights=weights(train.labels, train.groups, task.seed))
