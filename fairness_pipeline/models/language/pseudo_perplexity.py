"""The pseudo-perplexity of texts under a masked language model: how well it guesses each token from all the others."""

from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.batching import by_length
from fairness_pipeline.models.devices import roomy
from fairness_pipeline.models.language.specification import BESIDE
from fairness_pipeline.models.pretrained import longest_of
from fairness_pipeline.models.training import exp_mean

_BATCH_TOKENS = 4096


class _Row(NamedTuple):
    """A text's tokens with its marks, and the positions that are guessed."""

    tokens: list[int]
    positions: list[int]


class PseudoPerplexityScorer:
    """A table with a column `text` in, one with `perplexity` and `tokens` out, row by row.

    perplexity = exp(- 1/n sum over i of log p(token i | all other tokens)): each token in turn is masked (Salazar et
    al. 2020, section 2). Of "text BESIDE other" the sum is over the tokens that both texts share, and n is their number
    (Nangia et al. 2020, section 3.1: what makes the texts differ is given, and not guessed).

    Args:
        model: A masked language model of the `transformers` library, on its device, in evaluation mode.
        tokenizer: The model's tokenizer.

    Raises:
        FairnessError: the tokenizer has no mask token.
    """

    CHUNK = 256
    """Texts at once; a text takes as many queries as it has tokens."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        if tokenizer.mask_token_id is None:
            raise FairnessError("huggingface.name: the tokenizer has no mask token; is it of a masked language model?")
        self._model = model
        self._tokenizer = tokenizer
        self._longest = longest_of(model, tokenizer)

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Scores the texts; raises FairnessError if one is too long, or has nothing to guess."""
        rows = [self._row(text) for text in texts["text"].to_pylist()]
        losses = self._losses(rows)
        counts = [len(row.positions) for row in rows]
        values = [exp_mean(loss, count) for loss, count in zip(losses, counts, strict=True)]
        return pa.table({"perplexity": pa.array(values, pa.float64()), "tokens": pa.array(counts, pa.int64())})

    def examination(self) -> dict[str, Any]:
        """The number of tokens in the model's vocabulary."""
        return {"tokens": len(self._tokenizer)}

    def _row(self, text: str) -> _Row:
        scored, _, other = text.partition(BESIDE)
        encoded = self._tokenizer(scored, return_special_tokens_mask=True)
        tokens, marks = encoded["input_ids"], encoded["special_tokens_mask"]
        if self._longest and len(tokens) > self._longest:
            raise FairnessError(
                f"a text has {len(tokens)} tokens, and the model {self._longest} positions; shorten it, or take "
                f"another model: {scored[:80]!r}"
            )
        guessed = list(range(len(tokens)))
        if other:
            matcher = SequenceMatcher(None, tokens, self._tokenizer(other)["input_ids"], autojunk=False)
            guessed = [
                position for block in matcher.get_matching_blocks() for position in range(block.a, block.a + block.size)
            ]
        positions = [position for position in guessed if not marks[position]]
        if not positions:
            reason = f"shares no token with {other[:40]!r}" if other else "has no token"
            raise FairnessError(f"a text {reason}, so that nothing can be guessed: {scored[:80]!r}")
        return _Row(tokens, positions)

    def _losses(self, rows: list[_Row]) -> list[float]:
        """The summed negative log-likelihood (nats) of the tokens of each text that are guessed."""
        queries = [(number, position) for number, row in enumerate(rows) for position in row.positions]
        lengths = np.array([len(rows[number].tokens) for number, _ in queries], dtype=np.int64)
        size, losses = roomy(_BATCH_TOKENS, self._model.device), [0.0] * len(rows)
        for batch, guessed in by_length(lambda batch: self._guessed(rows, [queries[i] for i in batch]), lengths, size):
            for query, loss in zip(batch, guessed, strict=True):
                losses[queries[query][0]] += loss
        return losses

    @torch.inference_mode()
    def _guessed(self, rows: list[_Row], batch: list[tuple[int, int]]) -> list[float]:
        device = self._model.device
        encoded = self._tokenizer.pad(
            {"input_ids": [rows[number].tokens for number, _ in batch]}, return_tensors="pt", padding_side="right"
        )
        tokens, mask = encoded["input_ids"].to(device), encoded["attention_mask"].to(device)
        indices = torch.arange(len(batch), device=device)
        positions = torch.tensor([position for _, position in batch], device=device)
        targets = tokens[indices, positions].clone()
        tokens[indices, positions] = self._tokenizer.mask_token_id
        logits = self._model(input_ids=tokens, attention_mask=mask).logits[indices, positions].double()
        losses: list[float] = (logits.logsumexp(1) - logits[indices, targets]).tolist()
        return losses
