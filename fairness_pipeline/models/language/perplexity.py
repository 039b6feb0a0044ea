"""The perplexity of texts under a causal language model, in batches of similar length."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch.nn.utils.rnn import pad_sequence

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.batching import by_length
from fairness_pipeline.models.devices import roomy
from fairness_pipeline.models.pretrained import positions_of
from fairness_pipeline.models.training import exp_mean

BATCH_TOKENS = 1024
"""The padded tokens of a batch on a processor. On two cores 2,048 were measured to be slower."""
_ANYTHING = "a"
_EQUAL = 1e-4


class Totals(NamedTuple):
    """The summed negative log-likelihood (nats) of each text, and the number of tokens it is summed over."""

    loss: list[float]
    tokens: list[int]


class PerplexityScorer:
    """A table with a column `text` in, one with `perplexity` and `tokens` out, row by row.

    perplexity = exp(- 1/(n - 1) sum over i = 2..n of log p(token i | tokens before it)). The first token is not
    predicted, as in the authors' code (Barikeri et al. 2021, section 3.1). If the tokenizer begins every text with a
    mark (BOS), this is the first token, and the first word is predicted, too. The same holds if there is a text
    `before`: the sum is over the scored text's own tokens. Texts are scored in the precision of the weights. Logits of
    padding are never computed.

    Args:
        model: A model of the `transformers` library, on its device, in evaluation mode.
        tokenizer: The model's tokenizer.
        before: The beginning of every text, such as a chat template's opening; it contains its own marks.
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
        values = [exp_mean(loss, count) for loss, count in zip(*totals, strict=True)]
        return pa.table({"perplexity": pa.array(values, pa.float64()), "tokens": pa.array(totals.tokens, pa.int64())})

    def examination(self) -> dict[str, Any]:
        """The number of tokens in the model's vocabulary, and the mark or template that every text begins with."""
        first = self._tokenizer(_ANYTHING)["input_ids"][:1]
        plain = self._tokenizer(_ANYTHING, add_special_tokens=False)["input_ids"][:1]
        mark = "" if self._before or first == plain else str(self._tokenizer.convert_ids_to_tokens(first)[0])
        return {"tokens": len(self._tokenizer), "begins_with": "a chat template" if self._before else mark}

    def totals(self, texts: list[str]) -> Totals:
        """The summed loss and the number of tokens of each text; a text of one token has no loss."""
        encoded: list[list[int]] = self._encoded(texts) if texts else []
        rows = [[*self._before, *row] for row in encoded]
        longest = max(range(len(rows)), key=lambda index: len(rows[index]), default=0)
        if rows and self._positions and len(rows[longest]) > self._positions:
            raise FairnessError(
                f"a text has {len(rows[longest])} tokens, and the model {self._positions} positions; shorten it, or "
                f"take another model: {texts[longest][:80]!r}"
            )
        losses = np.zeros(len(rows))
        self._short = None
        long = sorted((index for index, row in enumerate(rows) if len(row) > 1), key=rows.__getitem__)
        lengths = np.array([len(rows[index]) for index in long], dtype=np.int64)
        size = roomy(BATCH_TOKENS, self._model.device)
        for batch, batch_losses in by_length(lambda batch: self._losses([rows[long[i]] for i in batch]), lengths, size):
            losses[[long[i] for i in batch]] = batch_losses
        return Totals(losses.tolist(), [max(0, len(row) - max(1, len(self._before))) for row in rows])

    def _encoded(self, texts: list[str]) -> list[list[int]]:
        encoded: list[list[int]] = self._tokenizer(texts, add_special_tokens=not self._before)["input_ids"]
        return encoded

    @torch.inference_mode()
    def _losses(self, rows: list[list[int]]) -> list[float]:
        """The summed loss of each row of tokens."""
        device = self._model.device
        lengths = torch.tensor([len(row) for row in rows], device=device)
        tokens = pad_sequence([torch.tensor(row, device=device) for row in rows], batch_first=True)
        positions = torch.arange(tokens.shape[1], device=device)[None]
        present = positions < lengths[:, None]
        predicted = present & (positions >= max(0, len(self._before) - 1))  # the first predicted token follows
        predicted[torch.arange(len(rows), device=device), lengths - 1] = False
        logits = self._logits({"input_ids": tokens, "attention_mask": present.long()}, predicted).float()
        targets = tokens[:, 1:][predicted[:, :-1]]
        # This is the cross-entropy, without a second matrix of the same size.
        losses = logits.logsumexp(1) - logits.gather(1, targets[:, None])[:, 0]
        owners = predicted.nonzero()[:, 0]
        summed = torch.zeros(len(rows), dtype=torch.float64, device=device).index_add_(0, owners, losses.double())
        values: list[float] = summed.tolist()
        return values

    def _logits(self, inputs: dict[str, torch.Tensor], predicted: torch.Tensor) -> torch.Tensor:
        """The logits before each token to predict. If possible, the output layer only runs there."""
        if self._short is None:  # some models change the layer's output: compares one row
            first = {name: value[:1] for name, value in inputs.items()}
            both = self._by_layer(first, predicted[:1]), self._whole(first, predicted[:1])
            self._short = bool(torch.allclose(*both, atol=_EQUAL, rtol=_EQUAL))
        return (self._by_layer if self._short else self._whole)(inputs, predicted)

    def _by_layer(self, inputs: dict[str, torch.Tensor], predicted: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._model.get_output_embeddings()(self._model.base_model(**inputs)[0][predicted])
        return logits

    def _whole(self, inputs: dict[str, torch.Tensor], predicted: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._model(**inputs).logits[predicted]
        return logits
