"""The perplexity of texts under a causal language model, in batches of like length."""

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.batching import cut
from fairness_pipeline.models.pretrained import positions_of

BATCH_TOKENS = 1024
"""A batch's padded tokens: measured on two cores, where 2,048 were slower."""
_EQUAL = 1e-4
_SHARED = 2
"""Tokens that two texts must begin with alike, so that their beginning is computed once."""


class Totals(NamedTuple):
    """Of each text the summed negative log-likelihood (nats), and of how many tokens."""

    loss: list[float]
    tokens: list[int]


class _Row(NamedTuple):
    """A text, or two that begin alike: the first whole, then what the second does not share; and which they are."""

    tokens: list[int]
    shared: int
    first: int
    owners: tuple[int, ...]


class PerplexityScorer:
    """A table with a column `text` in, one with `perplexity` and `tokens` out, row by row.

    perplexity = exp(- 1/(n - 1) sum over i = 2..n of log p(token i | tokens before it)): the first token stands under
    no condition, as in the authors' code (Barikeri et al. 2021, section 3.1). Texts are scored in the weights' own
    precision. Logits of padding are never computed, and what two texts begin with (a phrase and its counterfactual, up
    to the word that was exchanged) is computed once, if the model gives the same then: tried on the longest two.

    Args:
        model: Of the `transformers` library, on its device, in evaluation mode.
        tokenizer: Its own.
    """

    CHUNK = 2048

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._short: bool | None = None
        self._shares: bool | None = None
        self._budget = BATCH_TOKENS
        self._positions = positions_of(model)

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
        longest = max(range(len(rows)), key=lambda place: len(rows[place]), default=0)
        if rows and self._positions and len(rows[longest]) > self._positions:
            raise FairnessError(
                f"a text has {len(rows[longest])} tokens, and the model {self._positions} positions; shorten it, or "
                f"take another model: {texts[longest][:80]!r}"
            )
        losses = [0.0] * len(rows)
        packed = self._packed(rows)
        lengths = np.array([len(row.tokens) for row in packed], dtype=np.int64)
        batches = cut(np.argsort(lengths, kind="stable"), lengths, self._budget)
        place = 0
        while place < len(batches):
            batch = [packed[i] for i in batches[place]]
            try:
                for row, found in zip(batch, self._losses(batch), strict=True):
                    for owner, loss in zip(row.owners, found, strict=False):
                        losses[owner] = loss
                place += 1
            except torch.OutOfMemoryError:
                if len(batch) == 1:
                    raise FairnessError("one text does not fit into the GPU's memory; set device: cpu") from None
                torch.cuda.empty_cache()
                self._budget = max(1, self._budget // 2)
                batches[place : place + 1] = np.array_split(batches[place], 2)
        return Totals(losses, [max(0, len(row) - 1) for row in rows])

    def _packed(self, rows: list[list[int]]) -> list[_Row]:
        """Texts of two tokens or more; neighbours in the order of the alphabet that begin alike as one row."""
        order = sorted((i for i, row in enumerate(rows) if len(row) > 1), key=lambda i: rows[i])
        alone = [_Row(rows[i], 0, len(rows[i]), (i,)) for i in order]
        packed: list[_Row] = []
        place = 0
        while place < len(order):
            one, other = order[place], order[min(place + 1, len(order) - 1)]
            shared = _alike(rows[one], rows[other]) if one != other else 0
            if shared < _SHARED:
                packed.append(alone[place])
                place += 1
                continue
            packed.append(_Row([*rows[one], *rows[other][shared:]], shared, len(rows[one]), (one, other)))
            place += 2
        together = [row for row in packed if len(row.owners) == 2]
        if self._shares is not False and together:  # tried on the longest: some models look back so far only
            longest = max(together, key=lambda row: len(row.tokens))
            self._shares = self._is_the_same(longest, [row for row in alone if row.owners[0] in longest.owners])
        return packed if self._shares else alone

    def _is_the_same(self, both: _Row, alone: list[_Row]) -> bool:
        """Whether the model gives two texts in one row what it gives them one by one; not all can."""
        try:
            (together,) = self._losses([both])
        except (TypeError, ValueError, RuntimeError, IndexError):
            return False
        found = {row.owners[0]: self._losses([row])[0][0] for row in alone}
        return bool(np.allclose(together, [found[owner] for owner in both.owners], rtol=_EQUAL))

    @torch.inference_mode()
    def _losses(self, rows: list[_Row]) -> list[tuple[float, float]]:
        """The summed loss of the one or two texts of each row."""
        device, width = self._model.device, max(len(row.tokens) for row in rows)
        # Which token follows where, and of which text: (row, place, token, first or second text).
        follows = np.concatenate([_follows(number, row) for number, row in enumerate(rows)])
        asked = np.zeros((len(rows), width), dtype=bool)
        asked[follows[:, 0], follows[:, 1]] = True
        numbers = np.cumsum(asked).reshape(asked.shape) - 1
        inputs = self._inputs(rows, width)
        logits = self._logits(inputs, torch.from_numpy(asked).to(device)).float()
        where = torch.from_numpy(numbers[follows[:, 0], follows[:, 1]]).to(device)
        # Cross-entropy, but without a second matrix of that size.
        losses = logits.logsumexp(1)[where] - logits[where, torch.from_numpy(follows[:, 2]).to(device)]
        owners = torch.from_numpy(2 * follows[:, 0] + follows[:, 3]).to(device)
        summed = torch.zeros(2 * len(rows), dtype=torch.float64, device=device).index_add_(0, owners, losses.double())
        found: list[float] = summed.tolist()
        return list(zip(found[::2], found[1::2], strict=True))

    def _inputs(self, rows: list[_Row], width: int) -> dict[str, torch.Tensor]:
        """What the model is given: of rows with two texts where each token stands, and what it may look at."""
        device = self._model.device
        tokens = torch.tensor([[*row.tokens, *[0] * (width - len(row.tokens))] for row in rows], device=device)
        if all(len(row.owners) == 1 for row in rows):
            lengths = torch.tensor([len(row.tokens) for row in rows], device=device)
            present = torch.arange(width, device=device)[None] < lengths[:, None]
            return {"input_ids": tokens, "attention_mask": present.long()}
        places = np.tile(np.arange(width), (len(rows), 1))
        seen = np.tile(np.tril(np.ones((width, width), dtype=bool)), (len(rows), 1, 1))
        for number, row in enumerate(rows):
            if len(row.owners) == 2:
                places[number, row.first :] -= row.first - row.shared
                seen[number, row.first :, row.shared : row.first] = False
            places[number, len(row.tokens) :] = 0  # of padding, which is never looked at
        lowest = torch.finfo(self._model.dtype).min
        mask = torch.from_numpy(np.where(seen, 0.0, lowest)).to(device, self._model.dtype)[:, None]
        return {"input_ids": tokens, "attention_mask": mask, "position_ids": torch.from_numpy(places).to(device)}

    def _logits(self, inputs: dict[str, torch.Tensor], asked: torch.Tensor) -> torch.Tensor:
        """The logits where a token follows. The output layer alone is asked there, if that is what the model does."""
        if self._short is None:  # some models do more to their logits than the layer does: tried on one row
            first = {name: value[:1] for name, value in inputs.items()}
            both = self._by_layer(first, asked[:1]), self._whole(first, asked[:1])
            self._short = bool(torch.allclose(*both, atol=_EQUAL, rtol=_EQUAL))
        return (self._by_layer if self._short else self._whole)(inputs, asked)

    def _by_layer(self, inputs: dict[str, torch.Tensor], asked: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._model.get_output_embeddings()(self._model.base_model(**inputs)[0][asked])
        return logits

    def _whole(self, inputs: dict[str, torch.Tensor], asked: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._model(**inputs).logits[asked]
        return logits


def _alike(one: list[int], other: list[int]) -> int:
    """How many tokens two texts begin with alike; one at least of either is its own."""
    most = min(len(one), len(other)) - 1
    return next((place for place in range(most) if one[place] != other[place]), max(0, most))


def _follows(number: int, row: _Row) -> np.ndarray:
    """(row, place, the token that follows there, 0 or 1 for the text that it belongs to)."""
    found = [(number, place, row.tokens[place + 1], 0) for place in range(row.first - 1)]
    if len(row.owners) == 2:
        found += [(number, place, row.tokens[place + 1], 1) for place in range(row.shared - 1)]
        found.append((number, row.shared - 1, row.tokens[row.first], 1))
        found += [(number, place, row.tokens[place + 1], 1) for place in range(row.first, len(row.tokens) - 1)]
    return np.array(found, dtype=np.int64)
