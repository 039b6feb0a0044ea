"""LEACE: the group erased from the encoder's last state (Belrose et al. 2023, theorem 4.3).

Least-squares concept erasure moves the states as little as it must so that no linear reader can tell the group from
them: r(x) = x - d v'(x - mean), where for two groups d is the covariance of state and group, and v reads along
Sigma^-1 d with v'd = 1. Nothing is trained; what is not linear stays.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from safetensors.torch import save_file

from fairness_pipeline.debiasing.registry import Task
from fairness_pipeline.debiasing.settings import Erasure as Settings
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.models.batching import EncodedDialogues, pad
from fairness_pipeline.models.dialogue import seq2seq
from fairness_pipeline.models.dialogue.training import turns_of
from fairness_pipeline.models.erasure import Erasure
from fairness_pipeline.models.training import Trainer, perplexity
from fairness_pipeline.models.vocabulary import VOCABULARY
from fairness_pipeline.progress import report

_BATCH = 512
_LEAST = 50


def debias(task: Task) -> dict[str, Any]:
    """Fits the eraser to the base's states of training contexts that name one group, and puts it into the model.

    Returns:
        Figures: how many contexts of each group, the share of the states' variance that is erased, perplexity.

    Raises:
        FairnessError: too few contexts of a group.
    """
    settings = Settings.model_validate(task.model.settings or {})
    assert task.model.seq2seq is not None
    longest = task.model.seq2seq.longest
    model, vocabulary = seq2seq.load(task.model, task.base)
    model.eval()
    contexts, groups = _gendered(task, settings.contexts)
    states = []
    with torch.inference_mode():
        for start in range(0, len(contexts), _BATCH):
            turns = vocabulary.turns(contexts[start : start + _BATCH], longest)
            lengths = torch.tensor([len(turn) for turn in turns])
            encoded = model.encode(pad(turns, model.output.weight.device), lengths)
            states.append(seq2seq.flat(encoded).cpu().double().numpy())
            report(task.progress, start + len(turns), len(contexts), "contexts read")
    vectors = np.concatenate(states)
    model.erasure = eraser(vectors, groups).to(model.output.weight.device)
    vocabulary.save(task.folder / VOCABULARY)
    with replacing(task.folder / Trainer.WEIGHTS) as path:
        save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, path)
    with torch.inference_mode():
        moved = model.erasure(torch.from_numpy(vectors).float().to(model.output.weight.device)).cpu().double().numpy()
    valid = EncodedDialogues.of_texts(*turns_of(task.dialogues, "valid"), vocabulary, longest)
    return {
        "contexts_a": int((groups == 0).sum()),
        "contexts_b": int((groups == 1).sum()),
        "variance_erased": round(float(np.square(moved - vectors).sum(axis=1).mean() / vectors.var(axis=0).sum()), 6),
        "validation_perplexity": perplexity(model, valid),
    }


def eraser(vectors: np.ndarray, groups: np.ndarray) -> Erasure:
    """The least-squares eraser of two groups from vectors.

    Args:
        vectors: (rows, width); directions in which they do not vary are left alone.
        groups: 0 or 1 of each row (rows).
    """
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    covariance = centred.T @ centred / len(vectors)
    direction = centred.T @ (groups - groups.mean()) / len(vectors)
    reading = np.linalg.pinv(covariance, hermitian=True) @ direction
    found = Erasure(vectors.shape[1])
    scale = float(reading @ direction)
    found.direction = torch.from_numpy(direction).float()
    found.reading = torch.from_numpy(reading / scale if scale > 0 else reading * 0).float()
    found.mean = torch.from_numpy(mean).float()
    return found


def _gendered(task: Task, most: int) -> tuple[list[str], np.ndarray]:
    """Distinct training contexts that name one group only, in their order, and the groups."""
    train = task.dialogues.filter(pc.equal(task.dialogues["split"], "train"))
    texts = train["context"].combine_chunks().unique()
    swapper = Swapper(task.dimension, pronouns=task.pairs.pronouns)
    sides = pa.array([side for _, side in swapper.find_all(texts)], pa.string())
    named = pc.indices_nonzero(pc.fill_null(pc.is_in(sides, pa.array(["a", "b"])), False)).to_numpy()
    if len(named) > most:
        named = np.sort(np.random.default_rng(task.seed).choice(named, most, replace=False))
    groups = pc.equal(sides.take(pa.array(named)), "b").to_numpy(zero_copy_only=False).astype(np.int64)
    for number, side in enumerate(("a", "b")):
        found = int((groups == number).sum())
        if found < _LEAST:
            raise FairnessError(
                f"the training dialogues hold {found} different contexts of group {side} "
                f"({getattr(task.dimension.groups, side)}) alone; 'leace' needs {_LEAST} or more of each: give it a "
                "larger corpus, or a dimension whose words are commoner there"
            )
    return texts.take(pa.array(named)).to_pylist(), groups
