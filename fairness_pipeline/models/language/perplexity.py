"""The perplexity of texts under a causal language model, in batches of similar length."""

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.batching import by_length
from fairness_pipeline.models.devices import roomy
from fairness_pipeline.models.pretrained import positions_of

BATCH_TOKENS = 1024
"""The padded tokens of a batch on a processor. On two cores 2,048 were measured to be slower."""
_ANYTHING = "a"
_EQUAL = 1e-4
_SHARED = 2
"""Two texts must share at least this many first tokens; their beginning is then computed only once."""


class Totals(NamedTuple):
    """The summed negative log-likelihood (nats) of each text, and the number of tokens it is summed over."""

    loss: list[float]
    tokens: list[int]


class _Row(NamedTuple):
    """One text, or two with the same beginning: the whole first one, then the rest of the second; and their indices."""

    tokens: list[int]
    shared: int
    first: int
    owners: tuple[int, ...]


class PerplexityScorer:
    """A table with a column `text` in, one with `perplexity` and `tokens` out, row by row.

    perplexity = exp(- 1/(n - 1) sum over i = 2..n of log p(token i | tokens before it)). The first token is not
    predicted, as in the authors' code (Barikeri et al. 2021, section 3.1). A tokenizer that begins every text with a
    mark (BOS) has its mark there; then the first word is predicted, too. So it is where something stands `before` the
    text: only the text's own tokens are summed over. Texts are scored in the weights' own
    precision. Logits of padding are never computed. The beginning that two texts share (a phrase and its
    counterfactual, up to the exchanged word) is computed once, if the model then gives the same result. This is
    tested on the longest two of each call, so that a result depends on the texts of its call alone.

    Args:
        model: A model of the `transformers` library, on its device, in evaluation mode.
        tokenizer: The model's tokenizer.
        before: What every text follows, such as a chat template's opening; its own marks stand in it.
    """

    def __init__(self, model: Any, tokenizer: Any, before: str = "") -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._before: list[int] = tokenizer(before, add_special_tokens=False)["input_ids"] if before else []
        self._short: bool | None = None
        self._positions = positions_of(model)

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Scores the texts; raises FairnessError if one is too long or has fewer than two tokens."""
        totals = self.totals(texts["text"].to_pylist())
        if short := [i for i, count in enumerate(totals.tokens) if count < 1]:
            text = texts["text"][short[0]].as_py()
            raise FairnessError(f"a text of one token has no perplexity, as nothing stands before it: {text!r}")
        values = [math.exp(min(loss / count, 700.0)) for loss, count in zip(*totals, strict=True)]
        return pa.table({"perplexity": pa.array(values, pa.float64()), "tokens": pa.array(totals.tokens, pa.int64())})

    def examination(self) -> dict[str, Any]:
        """The number of tokens that the model chooses among; what every text begins with, where it does."""
        first = self._tokenizer(_ANYTHING)["input_ids"][:1]
        plain = self._tokenizer(_ANYTHING, add_special_tokens=False)["input_ids"][:1]
        mark = "" if self._before or first == plain else str(self._tokenizer.convert_ids_to_tokens(first)[0])
        return {"tokens": len(self._tokenizer), "begins_with": "a chat template" if self._before else mark}

    def totals(self, texts: list[str]) -> Totals:
        """The summed loss and the number of tokens of each text; a text of one token has no loss."""
        own: list[list[int]] = self._encoded(texts) if texts else []
        rows = [[*self._before, *row] for row in own]
        longest = max(range(len(rows)), key=lambda place: len(rows[place]), default=0)
        if rows and self._positions and len(rows[longest]) > self._positions:
            raise FairnessError(
                f"a text has {len(rows[longest])} tokens, and the model {self._positions} positions; shorten it, or "
                f"take another model: {texts[longest][:80]!r}"
            )
        losses = [0.0] * len(rows)
        self._short = None
        packed = self._packed(rows)
        lengths = np.array([len(row.tokens) for row in packed], dtype=np.int64)
        size = roomy(BATCH_TOKENS, self._model.device)
        for batch, of_batch in by_length(lambda batch: self._losses([packed[i] for i in batch]), lengths, size):
            for number, of_row in zip(batch, of_batch, strict=True):
                for owner, loss in zip(packed[number].owners, of_row, strict=False):
                    losses[owner] = loss
        return Totals(losses, [max(0, len(row) - max(1, len(self._before))) for row in rows])

    def _encoded(self, texts: list[str]) -> list[list[int]]:
        encoded: list[list[int]] = self._tokenizer(texts, add_special_tokens=not self._before)["input_ids"]
        return encoded

    def _packed(self, rows: list[list[int]]) -> list[_Row]:
        """Rows for texts of two tokens or more. Alphabetical neighbours with the same beginning share a row."""
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
        if not together:
            return alone
        longest = max(together, key=lambda row: len(row.tokens))  # as some models only look back so far
        same = self._is_the_same(longest, [row for row in alone if row.owners[0] in longest.owners])
        return packed if same else alone

    def _is_the_same(self, both: _Row, alone: list[_Row]) -> bool:
        """Whether the model gives two texts the same result in one row as one by one; some models cannot."""
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
        # The tokens to predict, as rows of (row, place, token, first or second text).
        follows = np.concatenate([_follows(number, row, self._first) for number, row in enumerate(rows)])
        asked = np.zeros((len(rows), width), dtype=bool)
        asked[follows[:, 0], follows[:, 1]] = True
        numbers = np.cumsum(asked).reshape(asked.shape) - 1
        inputs = self._inputs(rows, width)
        logits = self._logits(inputs, torch.from_numpy(asked).to(device)).float()
        where = torch.from_numpy(numbers[follows[:, 0], follows[:, 1]]).to(device)
        # This is the cross-entropy, without a second matrix of the same size.
        losses = logits.logsumexp(1)[where] - logits[where, torch.from_numpy(follows[:, 2]).to(device)]
        owners = torch.from_numpy(2 * follows[:, 0] + follows[:, 3]).to(device)
        summed = torch.zeros(2 * len(rows), dtype=torch.float64, device=device).index_add_(0, owners, losses.double())
        found: list[float] = summed.tolist()
        return list(zip(found[::2], found[1::2], strict=True))

    @property
    def _first(self) -> int:
        """The place before the first token that is predicted."""
        return max(0, len(self._before) - 1)

    def _inputs(self, rows: list[_Row], width: int) -> dict[str, torch.Tensor]:
        """The model's inputs. For rows with two texts they include each token's position and what it may attend to."""
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
            places[number, len(row.tokens) :] = 0  # positions of padding, which no token attends to
        lowest = torch.finfo(self._model.dtype).min
        mask = torch.from_numpy(np.where(seen, 0.0, lowest)).to(device, self._model.dtype)[:, None]
        return {"input_ids": tokens, "attention_mask": mask, "position_ids": torch.from_numpy(places).to(device)}

    def _logits(self, inputs: dict[str, torch.Tensor], asked: torch.Tensor) -> torch.Tensor:
        """The logits before each token to predict. If possible, the output layer only runs there."""
        if self._short is None:  # some models change the layer's output: tested on one row
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
    """The number of first tokens that two texts share; each text keeps at least one of its own."""
    most = min(len(one), len(other)) - 1
    return next((place for place in range(most) if one[place] != other[place]), max(0, most))


def _follows(number: int, row: _Row, start: int) -> np.ndarray:
    """Rows of (row, place, the token that follows there, 0 or 1 for the text that it belongs to), from a place on."""
    rows = [(number, place, row.tokens[place + 1], 0) for place in range(start, row.first - 1)]
    if len(row.owners) == 2:
        rows += [(number, place, row.tokens[place + 1], 1) for place in range(start, row.shared - 1)]
        rows.append((number, row.shared - 1, row.tokens[row.first], 1))
        rows += [(number, place, row.tokens[place + 1], 1) for place in range(row.first, len(row.tokens) - 1)]
    return np.array(rows, dtype=np.int64)
