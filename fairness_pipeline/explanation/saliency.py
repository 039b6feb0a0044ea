"""Measures how far the words that predict the label and the author's group overlap (Liu 2022, section 4.3.2)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from fairness_pipeline.debiasing.classifiers.registry import Task
from fairness_pipeline.explanation.agreement import SALIENCY, js_divergence
from fairness_pipeline.explanation.integrated_gradients import integrated_gradients
from fairness_pipeline.explanation.l2x import train_explainer
from fairness_pipeline.explanation.settings import ExplainerSettings
from fairness_pipeline.foundation.progress import within
from fairness_pipeline.models.classifiers import registry
from fairness_pipeline.models.classifiers.network import TextNetwork, fit
from fairness_pipeline.models.classifiers.texts import LabelledTexts

_SEED_OFFSET = 500_000_000


def saliency(
    network: TextNetwork, task: Task, ids: list[str], words: list[np.ndarray], settings: ExplainerSettings, seed: int
) -> pa.Table:
    """A table of `SALIENCY` for one classifier.

    M_Z has the same architecture without a debiasing method. It learns the author's group from the same texts. Both M_Y
    and M_Z are explained.

    Args:
        network: M_Y, trained.
        task: The task that M_Y was trained on. The explainers' folders and seeds are derived from it.
        ids: The ids of the texts to explain.
        words: The words of these texts, encoded.
        settings: The settings of the explainers.
        seed: The seed of the classifier.

    Raises:
        FairnessError: the loss is not a number.
    """
    classifier = task.classifier.model_copy(update={"base": None, "debiasing": None, "settings": None})
    group_seed = task.seed + _SEED_OFFSET  # only the texts are shared
    torch.manual_seed(group_seed)
    group_network = registry.new_network(classifier, task.tokens)
    train, valid = (LabelledTexts(split.words, split.groups) for split in (task.train, task.valid))
    folder = task.folder / "group"
    folder.mkdir(parents=True, exist_ok=True)
    fit(group_network, train, valid, classifier.fitting, folder, group_seed, task.progress)
    shares = {}
    for name, explained, goals, explainer_seed in (
        ("label", network, task.train.labels, task.seed),
        ("group", group_network, task.train.groups, group_seed),
    ):
        texts = LabelledTexts(task.train.words, goals)
        explainer = train_explainer(
            explained, texts, settings, task.folder / f"explainer-{name}", explainer_seed, task.progress
        )
        shares[f"{name}_l2x"] = explainer.explain(words)
        shares[f"{name}_gradients"] = integrated_gradients(explained, words, settings.steps)
    columns: dict[str, Any] = {name: [text.tolist() for text in by_text] for name, by_text in shares.items()}
    for name in ("l2x", "gradients"):
        pairs = zip(shares[f"label_{name}"], shares[f"group_{name}"], strict=True)
        columns[f"js_{name}"] = [js_divergence(label, group) for label, group in pairs]
    columns["text_id"] = ids
    columns["seed"] = [seed] * len(ids)
    columns["words"] = [task.tokens.words(text_words) for text_words in words]
    return pa.table({name: columns[name] for name in SALIENCY.names}, schema=SALIENCY)


def part_of(task: Task, folder: Path, number: int, total: int) -> Task:
    """The task for one of several classifiers to explain, with its own folder, seed and share of the progress.

    Args:
        task: The task of all classifiers.
        folder: The folder of all classifiers.
        number: The number of this classifier, from 1.
        total: The number of classifiers.
    """
    seed_folder = folder / f"seed-{number}"
    seed_folder.mkdir(parents=True, exist_ok=True)
    progress = within(task.progress, number, total, f"seed {number}")
    return replace(task, folder=seed_folder, seed=task.seed + number, progress=progress)
