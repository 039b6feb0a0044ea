"""What all truth inference methods share: labels as integers, and the interface of a method."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import expit

from fairness_pipeline.foundation.errors import FairnessError

_UNDECIDED = 1e-6
"""A probability this close to one half does not decide the label."""
_COLUMNS = ("task", "worker", "label")
EPSILON = 1e-10
"""Keeps logarithms finite."""
Classifier = Callable[[np.ndarray], np.ndarray]
"""P_w(y | x): takes mu_i of each item, in the order in which the items first occur in the labels, learns from it,
and returns P(y_i = 1 | x_i)."""


@dataclass(frozen=True)
class Labels:
    """Binary labels as integers: the item, the annotator and the value of each label, and the ids of items and
    annotators."""

    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    items: pd.Index
    annotators: pd.Index

    @classmethod
    def of(cls, data: pd.DataFrame) -> Self:
        """Reads a table with `task`, `worker` and `label`, in any order.

        Raises:
            FairnessError: a column is missing, a label is neither 0 nor 1, or an annotator labelled an item twice.
        """
        missing = [name for name in _COLUMNS if name not in data.columns]
        if missing:
            raise FairnessError(f"expected columns {', '.join(_COLUMNS)}, found {', '.join(map(str, data.columns))}")
        if data.empty:
            raise FairnessError("expected labels, found none")
        for name in _COLUMNS[:2]:
            if data[name].isna().any():
                raise FairnessError(f"{int(data[name].isna().sum()):,} rows have no {name}; leave them out")
        wrong = data[~data["label"].isin([0, 1])]
        if len(wrong):
            first = wrong.iloc[0]
            raise FairnessError(
                f"{len(wrong):,} labels are neither 0 nor 1, such as {first['label']} of '{first['worker']}' for "
                f"'{first['task']}'"
            )
        item, items = pd.factorize(data["task"])
        annotator, annotators = pd.factorize(data["worker"])
        pairs = np.sort(item.astype(np.int64) * len(annotators) + annotator)
        if (pairs[1:] == pairs[:-1]).any():
            first = data[data.duplicated(["task", "worker"])].iloc[0]
            raise FairnessError(f"'{first['worker']}' labelled '{first['task']}' more than once; keep one label")
        return cls(item, annotator, data["label"].to_numpy().astype(np.int64), pd.Index(items), pd.Index(annotators))

    @cached_property
    def positive(self) -> csr_array:
        """(items, annotators): 1 if the annotator called the item positive."""
        return self._where(1)

    @cached_property
    def negative(self) -> csr_array:
        """(items, annotators): 1 if the annotator called the item negative."""
        return self._where(0)

    @cached_property
    def _by_annotator(self) -> tuple[csr_array, csr_array]:
        return self.positive.T.tocsr(), self.negative.T.tocsr()

    def counts(self, sure: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Each annotator's expected positive and negative labels of positive items, then of negative items.

        Args:
            sure: P(y = 1) of each item.
        """
        both = np.stack([sure, 1 - sure], axis=1)
        positive, negative = (labels @ both for labels in self._by_annotator)
        return positive[:, 0], negative[:, 0], positive[:, 1], negative[:, 1]

    def _where(self, value: int) -> csr_array:
        own = self.label == value
        places = self.item[own], self.annotator[own]
        return csr_array((np.ones(int(own.sum())), places), shape=(len(self.items), len(self.annotators)))

    def of_items(self, values: np.ndarray) -> np.ndarray:
        """The sum of `values` (one per label) over the labels of each item."""
        return np.bincount(self.item, values, len(self.items))

    def of_annotators(self, values: np.ndarray) -> np.ndarray:
        """The sum of `values` (one per label) over the labels of each annotator."""
        return np.bincount(self.annotator, values, len(self.annotators))

    def shares(self) -> np.ndarray:
        """The share of each item's labels that are 1."""
        return self.of_items(self.label.astype(float)) / np.bincount(self.item, minlength=len(self.items))


class TruthInference(ABC):
    """The interface of a truth inference method.

    Attributes:
        labels_: The inferred label of each task, 0 or 1. If the method is undecided, it is the majority's label; if
            that is a tie, it is 1.
        probas_: The probability that a task's label is 1. Methods without probabilities give a share or a score in
            0..1.
        loss_history_: The loss after each iteration. Empty for methods that minimise no loss.
    """

    labels_: pd.Series
    probas_: pd.Series
    loss_history_: list[float]

    def fit(self, data: pd.DataFrame) -> Self:
        """Infers the label of each task.

        Args:
            data: A table with `task`, `worker` and `label` (0 or 1), one row per label.

        Raises:
            FairnessError: as `Labels.of`.
        """
        labels = Labels.of(data)
        self.loss_history_ = []
        sure = self._infer(labels)
        index = labels.items.rename("task")
        self.probas_ = pd.Series(sure, index=index, name="proba")
        decided = np.where(np.abs(sure - 0.5) < _UNDECIDED, labels.shares() >= 0.5 - EPSILON, sure > 0.5)
        self.labels_ = pd.Series(decided.astype(np.int64), index=index, name="label")
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """The inferred label of each task. See `fit`."""
        return self.fit(data).labels_

    @abstractmethod
    def _infer(self, labels: Labels) -> np.ndarray:
        """The probability or score that each item's label is 1."""


def two_coin_posterior(
    labels: Labels, sensitivity: np.ndarray, specificity: np.ndarray, prior: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """P(y = 1 | labels) of each item, and the log-likelihood of its labels (both in log space).

    Args:
        labels: The labels of the items.
        sensitivity: P(z = 1 | y = 1) of each annotator.
        specificity: P(z = 0 | y = 0) of each annotator.
        prior: P(y = 1), one value per item or one for all.
    """
    alpha, beta, p = (np.clip(values, EPSILON, 1 - EPSILON) for values in (sensitivity, specificity, prior))
    told = labels.positive @ np.stack([np.log(alpha), np.log1p(-beta)], axis=1)
    told += labels.negative @ np.stack([np.log1p(-alpha), np.log(beta)], axis=1)
    a, b = told[:, 0] + np.log(p), told[:, 1] + np.log1p(-p)
    return expit(a - b), np.logaddexp(a, b)
