"""The base of all truth inference methods: labels as integers, and the interface of a method."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import scipy

from fairness_pipeline.foundation.errors import FairnessError

if TYPE_CHECKING:
    import pandas as pd

_UNDECIDED = 1e-6
"""A probability this close to one half does not decide the label; nor do two of several classes within twice this."""
_COLUMNS = ("task", "worker", "label")
EPSILON = 1e-10
"""Keeps logarithms finite."""
Classifier = Callable[[np.ndarray], np.ndarray]
"""P_w(y | x): takes mu_i of each item, in the order in which the items first occur in the labels, learns from it,
and returns P(y_i = 1 | x_i)."""


@dataclass(frozen=True)
class Labels:
    """Labels as integers: the item, the annotator and the class (from 0) of each label.

    `items` and `annotators` are their ids, `classes` is the number of classes. Of two classes 1 is the positive one.
    """

    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    items: "pd.Index"
    annotators: "pd.Index"
    classes: int = 2

    @classmethod
    def of(cls, data: "pd.DataFrame", classes: int = 2) -> Self:
        """Reads a table with `task`, `worker` and `label`, in any order.

        Raises:
            FairnessError: a column is missing, a label is no number of a class, or an annotator labelled an item twice.
        """
        import pandas as pd

        missing = [name for name in _COLUMNS if name not in data.columns]
        if missing:
            raise FairnessError(f"expected columns {', '.join(_COLUMNS)}, found {', '.join(map(str, data.columns))}")
        if data.empty:
            raise FairnessError("expected labels, found none")
        for name in _COLUMNS[:2]:
            if data[name].isna().any():
                raise FairnessError(f"{int(data[name].isna().sum()):,} rows have no {name}; leave them out")
        wrong = data[~data["label"].isin(range(classes))]
        if len(wrong):
            first = wrong.iloc[0]
            expected = "neither 0 nor 1" if classes == 2 else f"not whole numbers from 0 to {classes - 1}"
            raise FairnessError(
                f"{len(wrong):,} labels are {expected}, such as {first['label']} of '{first['worker']}' for "
                f"'{first['task']}'"
            )
        item, items = pd.factorize(data["task"])
        annotator, annotators = pd.factorize(data["worker"])
        pairs = np.sort(item.astype(np.int64) * len(annotators) + annotator)
        if (pairs[1:] == pairs[:-1]).any():
            first = data[data.duplicated(["task", "worker"])].iloc[0]
            raise FairnessError(f"'{first['worker']}' labelled '{first['task']}' more than once; keep one label")
        label = data["label"].to_numpy().astype(np.int64)
        return cls(item, annotator, label, pd.Index(items), pd.Index(annotators), classes)

    @cached_property
    def indicators(self) -> "tuple[scipy.sparse.csr_array, ...]":
        """For each class, (items, annotators): 1 if the annotator gave the item this class."""
        return tuple(self._indicator(label) for label in range(self.classes))

    @property
    def positive(self) -> "scipy.sparse.csr_array":
        """(items, annotators): 1 if the annotator called the item positive."""
        return self.indicators[1]

    @property
    def negative(self) -> "scipy.sparse.csr_array":
        """(items, annotators): 1 if the annotator called the item negative."""
        return self.indicators[0]

    @cached_property
    def votes(self) -> np.ndarray:
        """(items, classes): the number of labels."""
        cells = self.item * self.classes + self.label
        counts: np.ndarray = np.bincount(cells, minlength=len(self.items) * self.classes)
        return counts.reshape(-1, self.classes)

    def one_against_rest(self, which: int) -> "Labels":
        """The same labels of two classes: this one, and all others."""
        return replace(self, label=(self.label == which).astype(np.int64), classes=2)

    def confusion(self, probas: np.ndarray) -> np.ndarray:
        """(annotators, classes, classes): each annotator's expected number of labels, by true class (second) and label
        (third).

        Args:
            probas: (items, classes) the probability of each class.
        """
        return np.stack([labels @ probas for labels in self._by_annotator], axis=2)

    @cached_property
    def _by_annotator(self) -> "tuple[scipy.sparse.csr_array, ...]":
        return tuple(labels.T.tocsr() for labels in self.indicators)

    @cached_property
    def _label_totals(self) -> np.ndarray:
        """(classes, annotators): the number of labels of each class."""
        return np.stack([np.asarray(labels.sum(axis=1)).ravel() for labels in self._by_annotator])

    def counts(self, probas: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Each annotator's expected positive and negative labels of positive items, then of negative items.

        Args:
            probas: P(y = 1) of each item.
        """
        negative, positive = self._by_annotator
        of_positive, of_negative = positive @ probas, negative @ probas
        totals = self._label_totals
        return of_positive, of_negative, totals[1] - of_positive, totals[0] - of_negative

    def _indicator(self, value: int) -> "scipy.sparse.csr_array":
        chosen = self.label == value
        coordinates = self.item[chosen], self.annotator[chosen]
        return scipy.sparse.csr_array(
            (np.ones(int(chosen.sum())), coordinates), shape=(len(self.items), len(self.annotators))
        )

    def of_items(self, values: np.ndarray) -> np.ndarray:
        """The sum of `values` (one per label) over the labels of each item."""
        return np.bincount(self.item, values, len(self.items))

    def of_annotators(self, values: np.ndarray) -> np.ndarray:
        """The sum of `values` (one per label) over the labels of each annotator."""
        return np.bincount(self.annotator, values, len(self.annotators))

    def shares(self) -> np.ndarray:
        """(items, classes): the share of each item's labels."""
        return self.votes / self.votes.sum(axis=1, keepdims=True)

    def positive_shares(self) -> np.ndarray:
        """The share of each item's labels that are 1."""
        shares: np.ndarray = self.shares()[:, 1]
        return shares


class TruthInference(ABC):
    """The interface of a truth inference method.

    Attributes:
        several: Whether the method supports more than two classes.
        labels_: The inferred class of each task, from 0. If the method is undecided, it is the majority's; in a tie,
            it is the last one (of two classes 1).
        probas_: The probability that a task's label is 1; of more than two classes a table with a column per class.
            Methods without probabilities give a share or a score in 0..1.
        loss_history_: The loss after each iteration. Empty for methods that minimise no loss.
    """

    several: ClassVar[bool] = False
    labels_: "pd.Series"
    probas_: "pd.Series | pd.DataFrame"
    loss_history_: list[float]

    def fit(self, data: "pd.DataFrame", classes: int = 2) -> Self:
        """Infers the label of each task.

        Args:
            data: A table with `task`, `worker` and `label` (from 0), one row per label.
            classes: The number of classes.

        Raises:
            FairnessError: as `Labels.of`, or the method supports only two classes.
        """
        import pandas as pd

        if classes > 2 and not self.several:
            raise FairnessError(f"{type(self).__name__} infers one of two classes, not of {classes}")
        labels = Labels.of(data, classes)
        self.loss_history_ = []
        probas = self._infer(labels)
        if probas.ndim == 1:
            probas = np.stack([1 - probas, probas], axis=1)
        index = labels.items.rename("task")
        if classes == 2:
            self.probas_ = pd.Series(probas[:, 1], index=index, name="proba")
        else:
            self.probas_ = pd.DataFrame(probas, index=index)
        undecided = probas > probas.max(axis=1, keepdims=True) - 2 * _UNDECIDED
        self.labels_ = pd.Series(last_of_the_highest(np.where(undecided, labels.votes, -1)), index=index, name="label")
        return self

    def fit_predict(self, data: "pd.DataFrame", classes: int = 2) -> "pd.Series":
        """The inferred label of each task. See `fit`."""
        return self.fit(data, classes).labels_

    @abstractmethod
    def _infer(self, labels: Labels) -> np.ndarray:
        """The probability or score of each class, (items, classes); of two classes (items,) is that of 1."""


def converged(losses: Sequence[float], tol: float) -> bool:
    """Whether the last iteration lowered the loss by less than `tol`."""
    return len(losses) > 1 and losses[-2] - losses[-1] < tol


def last_of_the_highest(values: np.ndarray) -> np.ndarray:
    """The class with the highest value in each row (items, classes); of several the last one.

    Examples:
        >>> last_of_the_highest(np.array([[0.5, 0.5, 0.0], [0.2, 0.5, 0.3]]))
        array([1, 1])
    """
    highest = values >= values.max(axis=1, keepdims=True) - EPSILON
    last: np.ndarray = values.shape[1] - 1 - highest[:, ::-1].argmax(axis=1)
    return last


def class_posterior(labels: Labels, log_confusion: np.ndarray, log_prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(y | labels) of each item (items, classes), and the log-likelihood of its labels.

    Args:
        labels: The labels of the items.
        log_confusion: (annotators, classes, classes): log P(z | y) of each annotator, y first.
        log_prior: log P(y), (classes,) or (items, classes).
    """
    log_joint = log_prior + sum(given @ log_confusion[:, :, label] for label, given in enumerate(labels.indicators))
    highest = log_joint.max(axis=1, keepdims=True)
    scaled = np.exp(log_joint - highest)
    total = scaled.sum(axis=1, keepdims=True)
    return scaled / total, (highest + np.log(total))[:, 0]


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
    of_negative = np.stack([np.log(beta), np.log1p(-beta)], axis=1)
    of_positive = np.stack([np.log1p(-alpha), np.log(alpha)], axis=1)
    log_prior = np.stack([np.log1p(-p), np.log(p)], axis=-1)
    probas, likelihood = class_posterior(labels, np.stack([of_negative, of_positive], axis=1), log_prior)
    return probas[:, 1], likelihood


def one_coin(skill: np.ndarray, classes: int) -> np.ndarray:
    """(annotators, classes, classes): P(z | y) if `skill` is right, and every wrong class is as likely."""
    wrong = (1 - skill) / (classes - 1)
    confusion: np.ndarray = np.where(np.eye(classes, dtype=bool), skill[:, None, None], wrong[:, None, None])
    return confusion
