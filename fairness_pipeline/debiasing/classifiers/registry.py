"""Trains text classifiers, plain or with a debiasing method; each seed's network has its own folder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pydantic

from fairness_pipeline.debiasing.settings import NoSettings
from fairness_pipeline.foundation.progress import Progress, within
from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.classifiers import registry
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.models.specification import Rate

if TYPE_CHECKING:
    from fairness_pipeline.models.classifiers.network import TextNetwork, Tokens


class DebiasedTCSettings(Specification):
    """Debiased-TC: a corrector between words and classifier (Liu 2022, section 4.4)."""

    hidden: Positive = 100
    """Units of the corrector's recurrent network, in each direction."""
    epochs: Positive = 5
    """Passes over the training texts."""
    learning_rate: Rate = 1e-3
    """Learning rate of Adam, of the corrector."""
    adversary: Annotated[float, pydantic.Field(ge=0)] = 1.0
    """Weight of the adversary's loss for the corrector."""
    second_order: bool = False
    """Whether the corrector follows its classifiers' next step (xi is their learning rate), not their present state
    (xi is 0, as in the thesis)."""


class Method(NamedTuple):
    """A method's module and settings. The module has `prepared` (of the training set) or `train`."""

    module: str
    settings: type[Specification]


METHODS = {
    "data_aug": Method("data_augmentation", NoSettings),
    "ins_weigh": Method("instance_weighting", NoSettings),
    "debiased_tc": Method("debiased_tc", DebiasedTCSettings),
}


class Texts(NamedTuple):
    """Encoded texts, the label of each, its author's group (0 is a, 1 is b), and its weight (None: 1 each)."""

    words: Sequence[np.ndarray]
    labels: np.ndarray
    groups: np.ndarray
    weights: np.ndarray | None = None

    def and_these(self, others: "Texts") -> "Texts":
        """These texts, then others."""
        return Texts(
            [*self.words, *others.words],
            np.concatenate([self.labels, others.labels]),
            np.concatenate([self.groups, others.groups]),
        )


@dataclass(frozen=True)
class Task:
    """The inputs of a training.

    `added` holds texts that balance the skewed training set; only one method may use them.
    """

    classifier: ClassifierSpecification
    tokens: "Tokens"
    train: Texts
    valid: Texts
    added: Texts
    folder: Path
    seed: int
    progress: Progress | None = None

    @property
    def settings(self) -> Any:
        """The method's settings."""
        return METHODS[str(self.classifier.debiasing)].settings.model_validate(self.classifier.settings or {})


def train(task: Task) -> list[list[float]]:
    """Trains a classifier with every seed, resuming earlier trainings.

    Returns:
        The validation accuracy after each epoch, by seed.

    Raises:
        FairnessError: a loss that is not a number.
    """
    seeds = task.classifier.seeds
    task.tokens.save(task.folder)
    return [
        _train_one(
            replace(
                task,
                folder=seed_folder(task.folder, number),
                seed=task.seed + number,
                progress=within(task.progress, number, seeds, f"seed {number}"),
            )
        )
        for number in range(1, seeds + 1)
    ]


def load(specification: ClassifierSpecification, folder: Path, number: int, tokens: "Tokens") -> "TextNetwork":
    """The classifier that was trained with seed `number`, from 1, in `folder`, ready to predict."""
    from fairness_pipeline.models.checkpoints import load_weights
    from fairness_pipeline.models.training import Trainer

    network = new_network(specification, tokens)
    network.load_state_dict(load_weights(seed_folder(folder, number) / Trainer.WEIGHTS))
    return network.eval()


def new_network(specification: ClassifierSpecification, tokens: "Tokens") -> "TextNetwork":
    """A classifier before training, with a corrector if its method has one."""
    network = registry.new_network(specification, tokens)
    if specification.debiasing != "debiased_tc":
        return network
    from fairness_pipeline.models.classifiers.saliency import CorrectedNetwork

    settings = DebiasedTCSettings.model_validate(specification.settings or {})
    return CorrectedNetwork(network, settings.hidden)


def seed_folder(folder: Path, number: int) -> Path:
    """The folder of a seed's network."""
    return folder / f"seed-{number}"


def _train_one(task: Task) -> list[float]:
    import torch

    from fairness_pipeline.models.classifiers.network import fit
    from fairness_pipeline.models.classifiers.texts import LabelledTexts

    task.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(task.seed)
    network = new_network(task.classifier, task.tokens)
    if task.classifier.debiasing:
        method = import_module(f"fairness_pipeline.debiasing.classifiers.{METHODS[task.classifier.debiasing].module}")
        if hasattr(method, "train"):
            trained: list[float] = method.train(network, task)
            return trained
        task = replace(task, train=method.prepared(task))
    texts, valid = task.train, task.valid
    return fit(
        network,
        LabelledTexts(texts.words, texts.labels, texts.weights),
        LabelledTexts(valid.words, valid.labels),
        task.classifier.fitting,
        task.folder,
        task.seed,
        task.progress,
    )
