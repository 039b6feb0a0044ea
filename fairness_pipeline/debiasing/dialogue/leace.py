"""LEACE: erases the group from a model's vectors of a context (Belrose et al. 2023, theorem 4.3).

Least-squares concept erasure moves the vectors just so far that no linear classifier can tell the group from them:
r(x) = x - d v'(x - mean), where for two groups d is the covariance of vector and group, and v reads along Sigma^-1 d
with v'd = 1. The vectors are the encoder's last state (`seq2seq`) or what candidates are compared with (`retrieval`).
Nothing is trained; non-linear traces stay.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from safetensors.torch import save_file

from fairness_pipeline.debiasing.dialogue.registry import Task, copy_base
from fairness_pipeline.debiasing.dialogue.settings import Erasure as Settings
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.erasure import NAME, Erasure
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary

_LEAST = 50


def debias(task: Task) -> dict[str, Any]:
    """Fits the eraser to the base's vectors of training contexts that name one group, and puts it into the model.

    Returns:
        Figures: how many contexts of each group, the share of the vectors' variance that is erased, and of a `seq2seq`
        its perplexity.

    Raises:
        FairnessError: too few contexts of a group.
    """
    contexts, groups = _gendered(task, Settings.model_validate(task.model.settings or {}).contexts)
    context_vectors = registry.context_vectors(task.model, task.base, contexts).cpu()
    vectors = context_vectors.double().numpy()
    fitted = eraser(vectors, groups)
    copy_base(task)
    weights = load_weights(task.base / Trainer.WEIGHTS) | {f"{NAME}.{n}": t for n, t in fitted.state_dict().items()}
    with replacing(task.folder / Trainer.WEIGHTS) as path:
        save_file(weights, path)
    moved = fitted(context_vectors).double().numpy() - vectors
    figures = {
        "contexts_a": int((groups == 0).sum()),
        "contexts_b": int((groups == 1).sum()),
        "variance_erased": round(float(np.square(moved).sum(axis=1).mean() / vectors.var(axis=0).sum()), 6),
    }
    if task.model.seq2seq:
        valid = task.dialogues.filter(pc.equal(task.dialogues["split"], "valid"))
        vocabulary = Vocabulary.load(task.base / VOCABULARY)
        figures["validation_perplexity"] = registry.perplexity(task.model, task.folder, valid, vocabulary, ())
    return figures


def eraser(vectors: np.ndarray, groups: np.ndarray) -> Erasure:
    """The least-squares eraser of two groups from vectors.

    Args:
        vectors: (rows, width); directions without variance are left alone.
        groups: 0 or 1 of each row (rows).
    """
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    covariance = centred.T @ centred / len(vectors)
    direction = centred.T @ (groups - groups.mean()) / len(vectors)
    reading = np.linalg.pinv(covariance, hermitian=True) @ direction
    erasure = Erasure(vectors.shape[1])
    scale = float(reading @ direction)
    erasure.direction = torch.from_numpy(direction).float()
    erasure.reading = torch.from_numpy(reading / scale if scale > 0 else reading * 0).float()
    erasure.mean = torch.from_numpy(mean).float()
    return erasure


def _gendered(task: Task, limit: int) -> tuple[list[str], np.ndarray]:
    """Distinct training contexts that name one group only, in their order, and the groups."""
    train = task.dialogues.filter(pc.equal(task.dialogues["split"], "train"))
    texts = train["context"].combine_chunks().unique()
    swapper = Swapper(task.words, pronouns=task.pairs.pronouns)
    sides = pa.array([side for _, side in swapper.find_all(texts)], pa.string())
    named = pc.indices_nonzero(pc.fill_null(pc.is_in(sides, pa.array(["a", "b"])), False)).to_numpy()
    if len(named) > limit:
        named = np.sort(np.random.default_rng(task.seed).choice(named, limit, replace=False))
    groups = pc.equal(sides.take(pa.array(named)), "b").to_numpy(zero_copy_only=False).astype(np.int64)
    for number, side in enumerate(("a", "b")):
        count = int((groups == number).sum())
        if count < _LEAST:
            raise FairnessError(
                f"the training dialogues hold {count} different contexts of group {side} "
                f"({getattr(task.groups, side)}) alone; 'leace' needs {_LEAST} or more of each: give it a "
                "larger corpus, or a dimension whose words are commoner there"
            )
    return texts.take(pa.array(named)).to_pylist(), groups
