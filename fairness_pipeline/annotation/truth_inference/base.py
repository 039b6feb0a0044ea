"""What all methods of truth inference share: labels as integers, and the face of a method."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import expit

from fairness_pipeline.errors import FairnessError

_COLUMNS = ("task", "worker", "label")
EPSILON = 1e-10
"""Keeps logarithms finite."""
Classifier = Callable[[np.ndarray], np.ndarray]
"""P_w(y | x): given mu_i of each item, in the order in which the labels name them first, it learns from them and gives
P(y_i = 1 | x_i)."""


class Labels(NamedTuple):
    """Binary labels as integers: of each its item, its annotator, and whether it is 1; and who and what they are."""

    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    items: pd.Index
    annotators: pd.Index

    @classmethod
    def of(cls, data: pd.DataFrame) -> Self:
        """A table with `task`, `worker` and `label`, in any order.

        Raises:
            FairnessError: a column is missing, a label is neither 0 nor 1, or an annotator labelled an item twice.
        """
        missing = [name for name in _COLUMNS if name not in data.columns]
        if missing:
            raise FairnessError(f"expected columns {', '.join(_COLUMNS)}, found {', '.join(map(str, data.columns))}")
        if data.empty:
            raise FairnessError("expected labels, found none")
        wrong = data[~data["label"].isin([0, 1])]
        if len(wrong):
            first = wrong.iloc[0]
            raise FairnessError(
                f"{len(wrong):,} labels are neither 0 nor 1, such as {first['label']} of '{first['worker']}' for "
                f"'{first['task']}'"
            )
        item, items = pd.factorize(data["task"])
        annotator, annotators = pd.factorize(data["worker"])
        pairs = item.astype(np.int64) * len(annotators) + annotator
        if len(np.unique(pairs)) < len(pairs):
            first = data[data.duplicated(["task", "worker"])].iloc[0]
            raise FairnessError(f"'{first['worker']}' labelled '{first['task']}' more than once")
        return cls(item, annotator, data["label"].to_numpy().astype(np.int64), pd.Index(items), pd.Index(annotators))

    def of_items(self, values: np.ndarray) -> np.ndarray:
        """The sum over each item's labels of `values`, one a label."""
        return np.bincount(self.item, values, len(self.items))

    def of_annotators(self, values: np.ndarray) -> np.ndarray:
        """The sum over each annotator's labels of `values`, one a label."""
        return np.bincount(self.annotator, values, len(self.annotators))

    def shares(self) -> np.ndarray:
        """Of each item the share of its labels that are 1."""
        return self.of_items(self.label.astype(float)) / np.bincount(self.item, minlength=len(self.items))


class TruthInference(ABC):
    """A method.

    Attributes:
        labels_: The inferred label of each task, 0 or 1; a tie is 1.
        probas_: How sure it is that a task's label is 1; a share or a score in 0..1 of methods without probabilities.
        loss_history_: What it makes small, after each iteration; empty where it makes nothing small.
    """

    labels_: pd.Series
    probas_: pd.Series
    loss_history_: list[float]

    def fit(self, data: pd.DataFrame) -> Self:
        """Infers the label of each task.

        Args:
            data: With `task`, `worker` and `label` (0 or 1), a row a label.

        Raises:
            FairnessError: as `Labels.of`.
        """
        labels = Labels.of(data)
        self.loss_history_ = []
        sure = self._infer(labels)
        index = labels.items.rename("task")
        self.probas_ = pd.Series(sure, index=index, name="proba")
        self.labels_ = pd.Series((sure >= 0.5 - EPSILON).astype(np.int64), index=index, name="label")
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """The inferred label of each task; see `fit`."""
        return self.fit(data).labels_

    @abstractmethod
    def _infer(self, labels: Labels) -> np.ndarray:
        """How sure each item's label is 1."""


def two_coin_posterior(
    labels: Labels, sensitivity: np.ndarray, specificity: np.ndarray, prior: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """P(y = 1 | labels) of each item, and the log-likelihood of its labels (both in log space).

    Args:
        labels: Of the items.
        sensitivity: P(z = 1 | y = 1) of each annotator.
        specificity: P(z = 0 | y = 0) of each annotator.
        prior: P(y = 1), of each item or of all.
    """
    own = labels.label == 1
    alpha, beta, p = (np.clip(values, EPSILON, 1 - EPSILON) for values in (sensitivity, specificity, prior))
    positive = np.where(own, np.log(alpha)[labels.annotator], np.log1p(-alpha)[labels.annotator])
    negative = np.where(own, np.log1p(-beta)[labels.annotator], np.log(beta)[labels.annotator])
    a = labels.of_items(positive) + np.log(p)
    b = labels.of_items(negative) + np.log1p(-p)
    return expit(a - b), np.logaddexp(a, b)
