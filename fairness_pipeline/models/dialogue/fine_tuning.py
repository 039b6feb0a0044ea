"""Fine-tunes a Hugging Face causal language model on dialogues, with the training loop of the papers' models.

The library's own trainer would use another checkpoint format, other batches and other errors. With the shared loop a
fine-tuned model stops early, resumes exactly and is regularised in the same way as a `seq2seq`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.batching import EncodedDialogues
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.devices import check_room_to_train, moved, to_device
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.dialogue.training import PenaltyOf, fit, turns_of
from fairness_pipeline.models.training import Trainer

_IGNORED = -100


class CausalBatch(NamedTuple):
    """Prompts followed by responses (batch, tokens), the mask of real tokens, and the responses' tokens as targets."""

    tokens: torch.Tensor
    present: torch.Tensor
    targets: torch.Tensor


class CausalDialogues(EncodedDialogues):
    """Dialogues in the form that a causal language model reads: the prompt, the response, and its end token."""

    def batch(self, indices: np.ndarray, device: torch.device) -> CausalBatch:  # type: ignore[override]
        """The dialogues at `indices`, padded on the right."""
        prompts = [torch.from_numpy(self.context(i).astype(np.int64)) for i in indices]
        responses = [torch.from_numpy(self.response(i).astype(np.int64)) for i in indices]
        rows = list(zip(prompts, responses, strict=True))
        tokens = [torch.cat(row) for row in rows]
        targets = [torch.cat([torch.full_like(prompt, _IGNORED), response]) for prompt, response in rows]
        return CausalBatch(
            moved(_padded(tokens, 0), device),
            moved(_padded([torch.ones_like(row) for row in tokens], 0), device),
            moved(_padded(targets, _IGNORED), device),
        )


class CausalDialogueModel(nn.Module):
    """A causal language model whose `forward(batch)` returns what the training loop needs."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: CausalBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """The summed cross-entropy (in nats) of the responses' tokens, including the end token, and their number."""
        logits = self.model(input_ids=batch.tokens, attention_mask=batch.present).logits[:, :-1]
        targets = batch.targets[:, 1:]
        predicted = targets != _IGNORED
        return cross_entropy(logits[predicted].float(), targets[predicted], reduction="sum"), predicted.sum()

    def restore(self, folder: Path) -> None:
        """Loads the weights that training left in `folder`."""
        self.load_state_dict(load_weights(folder / Trainer.WEIGHTS))


def fine_tune(
    model: Any,
    tokenizer: Any,
    prompt_tokens: Callable[[list[str]], list[list[int]]],
    specification: ModelSpecification,
    dialogues: pa.Table,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
    penalty: PenaltyOf | None = None,
) -> dict[str, Any]:
    """Trains the model on the `train` split and stops early on the `valid` split. A killed run is resumed.

    Args:
        model: The model with its first weights.
        tokenizer: The model's tokenizer.
        prompt_tokens: Gives the tokens of the prompts for contexts.
        specification: The model's file; a response with its end token has at most `decoding.max_tokens` tokens.
        dialogues: Columns `context`, `response`, `split`.
        folder: Where checkpoints and weights are written.
        seed: The seed of the order of the dialogues and of the dropout.
        progress: Called with the number of batches done, out of all allowed epochs.
        penalty: A term of the loss on the input embeddings.

    Returns:
        The same figures as for a model that is trained from scratch.
    """
    longest = specification.decoding.max_tokens

    def encoded(split: str) -> CausalDialogues:
        contexts, responses = turns_of(dialogues, split)
        tokens = tokenizer(responses, add_special_tokens=False)["input_ids"] if responses else []
        ended = ([*row[: longest - 1], tokenizer.eos_token_id] for row in tokens)
        return CausalDialogues(prompt_tokens(contexts) if contexts else [], ended)

    def rows(text: str) -> list[int]:
        numbers: list[int] = tokenizer(f" {text}", add_special_tokens=False)["input_ids"]
        return [] if tokenizer.unk_token_id in numbers else numbers

    torch.manual_seed(seed)
    wrapped = to_device(CausalDialogueModel(model), specification.device)
    check_room_to_train(wrapped)
    bound = penalty(model.get_input_embeddings(), rows) if penalty else None
    return fit(wrapped, specification, encoded("train"), encoded("valid"), folder, seed, progress, bound)


def set_dropout(model: nn.Module, rate: float) -> None:
    """Sets the rate of every dropout layer.

    Raises:
        FairnessError: the model has none.
    """
    layers = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    if not layers:
        raise FairnessError(f"dropout: {type(model).__name__} has no dropout layers; choose another method")
    for layer in layers:
        layer.p = rate


def _padded(rows: list[torch.Tensor], value: int) -> torch.Tensor:
    return pad_sequence(rows, batch_first=True, padding_value=value)
