"""A pretrained encoder of the `transformers` library, by id or folder, fine-tuned as a classifier."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import first_line
from fairness_pipeline.models.classifiers.network import TextNetwork
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification, EncoderSource
from fairness_pipeline.models.pretrained import load_tokenizer, longest_of, note_source, noted_source
from fairness_pipeline.models.specification import given

_FIELD = "encoder.name"


class EncoderTokens:
    """Tokens of the encoder's own tokenizer."""

    def __init__(self, source: EncoderSource, revision: str | None) -> None:
        self.source = source
        self.configuration, self._tokenizer = load_tokenizer(source.name, revision, _FIELD)
        self.revision = revision
        model = SimpleNamespace(config=self.configuration)
        self._longest = min(source.longest, longest_of(model, self._tokenizer) or source.longest)

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The numbers of each text's tokens, including the special tokens."""
        rows = self._tokenizer(list(texts), truncation=True, max_length=self._longest)["input_ids"]
        return [np.array(row) for row in rows]

    def words(self, numbers: np.ndarray) -> list[str]:
        """The tokens, without the marks of their place in a word."""
        return [str(token).lstrip("Ġ▁").removeprefix("##") for token in self._tokenizer.convert_ids_to_tokens(numbers)]

    def save(self, folder: Path) -> None:
        """Records which encoder it is."""
        note_source(folder, self.source.name, self.configuration, self.source.revision)


class EncoderNetwork(TextNetwork):
    """An encoder with a new head of two classes, which takes the vectors of the words as input.

    Raises:
        FairnessError: the model cannot be loaded, or is no encoder.
    """

    def __init__(self, tokens: EncoderTokens) -> None:
        super().__init__()
        from transformers import AutoModelForSequenceClassification
        from transformers.utils import logging

        logging.disable_progress_bar()  # the caller shows its own
        logging.set_verbosity_error()  # the library warns that the head is new, which is intended
        source = tokens.source
        try:
            self.model: Any = AutoModelForSequenceClassification.from_pretrained(
                source.name,
                revision=tokens.revision,
                num_labels=2,
                ignore_mismatched_sizes=True,
                trust_remote_code=False,
            )
        except Exception as error:  # the library passes on whatever its files raise
            first = first_line(error)
            raise FairnessError(f"{_FIELD}: '{source.name}' cannot be loaded as an encoder: {first}") from error
        self.width = self.model.get_input_embeddings().weight.shape[1]

    def embed(self, texts: torch.Tensor) -> torch.Tensor:
        """The vectors of the tokens, before position embeddings are added."""
        return self.model.get_input_embeddings()(texts)

    def logits(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The logits of the texts."""
        present = torch.arange(embedded.shape[1])[None] < lengths[:, None]
        return self.model(inputs_embeds=embedded, attention_mask=present.long().to(embedded.device)).logits


def tokens_of(specification: ClassifierSpecification, folder: Path) -> EncoderTokens:
    """The tokens of a classifier that was trained in `folder`, at the commit that training recorded."""
    recorded = noted_source(folder)
    assert recorded
    return EncoderTokens(given(specification.encoder), recorded[1])


def new_tokens(specification: ClassifierSpecification, texts: Sequence[str]) -> EncoderTokens:
    """The encoder's own tokens; they do not depend on the texts."""
    source = given(specification.encoder)
    return EncoderTokens(source, source.revision)


def network(specification: ClassifierSpecification, tokens: EncoderTokens) -> EncoderNetwork:
    """The encoder with a new head."""
    return EncoderNetwork(tokens)
