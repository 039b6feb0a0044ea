"""Word embedding regularisation (WER): Liu et al. 2020, section 4.2; Liu 2022, section 2.4.2.

    L_reg = L_ori + k * sum over (w, w') of || e_w - e_w' ||_2

over the word pairs of the dimension, and their forms with a clitic (`he'll`, `boy's`), which models treat as separate
words. The embedding of a phrase, or of a word that a tokenizer cuts in pieces, is the mean of its parts'. L_ori is
the mean loss of a batch.

The term's gradient never shrinks: its norm is k sqrt(2 pairs) however near the words are. Where it is clipped together
with that of L_ori, as in a training that clips the whole gradient, it leaves little room for learning to answer. Here
the gradient of the distances is clipped apart, and then weighted by k, unless `clip: as_printed`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import embedding_bag

from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.debiasing.dialogue.settings import WordEmbeddingRegularization
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.dimensions import with_clitics
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.training import Penalty


def debias(task: Task) -> dict[str, Any]:
    """Trains the model with the regularisation term, on the base's dialogues with the base's settings.

    Raises:
        FairnessError: the model knows no pair, or what the architecture's training raises.
    """
    settings = WordEmbeddingRegularization.model_validate(task.model.settings or {})
    pairs = with_clitics(task.words.all_pairs(task.pairs.pronouns))
    distances: list[PairDistance] = []

    def penalty(embedding: nn.Embedding, rows: Callable[[str], list[int]]) -> Penalty:
        distances.append(PairDistance(pairs, embedding, rows))
        if not len(distances[0]):
            raise FairnessError(
                f"the model knows both words of none of the {len(pairs):,} pairs, so 'wer' has nothing to regularise; "
                "give it a larger vocabulary or corpus, or commoner words"
            )
        return Penalty(distances[0], settings.k, clipped_apart=settings.clip == "apart")

    figures = registry.prepare(task.model, task.dialogues, task.folder, task.seed, task.progress, penalty=penalty)
    return {
        **figures,
        "pairs_drawn_together": len(distances[0]),
        "pairs_and_forms_with_an_unknown_word": distances[0].unknown,
    }


class PairDistance:
    """The sum of the Euclidean distances between the embeddings of paired words.

    Args:
        pairs: (word or phrase, counterpart).
        embedding: The embedding of the model's words.
        rows: Returns the embedding's rows of a text; none where the model lacks a word. Such a pair is left out.
    """

    def __init__(
        self, pairs: Sequence[tuple[str, str]], embedding: nn.Embedding, rows: Callable[[str], list[int]]
    ) -> None:
        known = [(rows(a), rows(b)) for a, b in pairs]
        known = [(a, b) for a, b in known if a and b]
        self.unknown = len(pairs) - len(known)
        self._embedding = embedding
        self._sides = [_Bags([pair[side] for pair in known], embedding.weight.device) for side in (0, 1)]

    def __len__(self) -> int:
        return len(self._sides[0].offsets)

    def __call__(self) -> torch.Tensor:
        """The sum, differentiable in the embedding; 0 where no pair is known."""
        if not len(self):
            return self._embedding.weight.new_zeros(())
        a, b = (embedding_bag(s.words, self._embedding.weight, s.offsets, mode="mean") for s in self._sides)
        return torch.linalg.vector_norm(a - b, dim=1).sum()


class _Bags:
    """Lists of row numbers, end to end."""

    def __init__(self, lists: list[list[int]], device: torch.device) -> None:
        self.words = torch.tensor([number for numbers in lists for number in numbers], device=device)
        starts = [sum(map(len, lists[:i])) for i in range(len(lists))]
        self.offsets = torch.tensor(starts, device=device)
