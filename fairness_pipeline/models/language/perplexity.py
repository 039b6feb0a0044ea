"""The perplexity of texts under a causal language model, in batches of like length."""

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch.nn.functional import cross_entropy

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.models.batching import cut

BATCH_TOKENS = 1024
"""A batch's padded tokens: measured on two cores, where 4,096 were slower."""
_EQUAL = 1e-4


class Totals(NamedTuple):
    """Of each text the summed negative log-likelihood (nats), and of how many tokens."""

    loss: list[float]
    tokens: list[int]


class PerplexityScorer:
    """A table with a column `text` in, one with `perplexity` and `tokens` out, row by row.

    perplexity = exp(- 1/(n - 1) sum over i = 2..n of log p(token i | tokens before it)): the first token stands under
    no condition, as in the authors' code (Barikeri et al. 2021, section 3.1). Text is scored in the weights' own
    precision. The logits of padding are never computed.

    Args:
        model: Of the `transformers` library, on its device, in evaluation mode.
        tokenizer: Its own.
    """

    CHUNK = 512

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._short: bool | None = None
        self._budget = BATCH_TOKENS
        positions = getattr(model.config, "max_position_embeddings", None)
        self._positions = positions if isinstance(positions, int) and positions > 0 else None

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Scores the texts; raises FairnessError for one that is too long, or has fewer than two tokens."""
        totals = self.totals(texts["text"].to_pylist())
        if short := [i for i, count in enumerate(totals.tokens) if count < 1]:
            text = texts["text"][short[0]].as_py()
            raise FairnessError(f"a text of one token has no perplexity, as nothing stands before it: {text!r}")
        values = [math.exp(min(loss / count, 700.0)) for loss, count in zip(*totals, strict=True)]
        return pa.table({"perplexity": pa.array(values, pa.float64()), "tokens": pa.array(totals.tokens, pa.int64())})

    def totals(self, texts: list[str]) -> Totals:
        """Summed loss and number of tokens of each text; a text of one token has none."""
        rows: list[list[int]] = self._tokenizer(texts)["input_ids"] if texts else []
        lengths = np.array([len(row) for row in rows])
        if self._positions and len(rows) and lengths.max() > self._positions:
            longest = int(lengths.argmax())
            raise FairnessError(
                f"a text has {lengths.max()} tokens, and the model {self._positions} positions; shorten it, or take "
                f"another model: {texts[longest][:80]!r}"
            )
        losses = [0.0] * len(rows)
        asked = np.flatnonzero(lengths > 1)
        order = asked[np.argsort(lengths[asked], kind="stable")]
        place = 0
        batches = cut(order, lengths, self._budget)
        while place < len(batches):
            indices = batches[place]
            try:
                for index, loss in zip(indices, self._losses([rows[i] for i in indices]), strict=True):
                    losses[index] = loss
                place += 1
            except torch.OutOfMemoryError:
                if len(indices) == 1:
                    raise FairnessError("one text does not fit into the GPU's memory; set device: cpu") from None
                torch.cuda.empty_cache()
                self._budget = max(1, self._budget // 2)
                batches[place : place + 1] = np.array_split(indices, 2)
        return Totals(losses, [max(0, int(length) - 1) for length in lengths])

    @torch.inference_mode()
    def _losses(self, rows: list[list[int]]) -> list[float]:
        """The summed loss of each row; rows ascend in length."""
        device, longest = self._model.device, len(rows[-1])
        tokens = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=device)
        lengths = torch.tensor([len(row) for row in rows], device=device)
        present = torch.arange(longest, device=device)[None] < lengths[:, None]
        asked = present[:, 1:]
        logits = self._logits(tokens, present, asked)
        losses = cross_entropy(logits.float(), tokens[:, 1:][asked], reduction="none").double()
        owners = torch.arange(len(rows), device=device)[:, None].expand_as(asked)[asked]
        summed = torch.zeros(len(rows), dtype=torch.float64, device=device).index_add_(0, owners, losses)
        found: list[float] = summed.tolist()
        return found

    def _logits(self, tokens: torch.Tensor, present: torch.Tensor, asked: torch.Tensor) -> torch.Tensor:
        """The logits where a token follows. The output layer alone is asked there, if that is what the model does."""
        inputs = {"input_ids": tokens, "attention_mask": present.long()}
        if self._short is not False:
            hidden = self._model.base_model(**inputs)[0][:, :-1][asked]
            logits: torch.Tensor = self._model.get_output_embeddings()(hidden)
            if self._short:
                return logits
        whole: torch.Tensor = self._model(**inputs).logits[:, :-1][asked]
        if self._short is None:  # some models do more to their logits than the layer does
            self._short = bool(torch.allclose(logits, whole, atol=_EQUAL, rtol=_EQUAL))
        return whole
