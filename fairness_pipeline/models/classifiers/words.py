"""The CNN and the RNN of Liu (2022, section 4.5.1) over the words of a vocabulary, with random initial vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import nn

from fairness_pipeline.models.classifiers.network import TextNetwork
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification, NetworkSettings
from fairness_pipeline.models.text_encoder import TextEncoder
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary

_DROPOUT = {"cnn": 0.3, "rnn": 0.2}


class WordTokens:
    """The words of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary, longest: int) -> None:
        self.vocabulary = vocabulary
        self._longest = longest

    @classmethod
    def build(cls, specification: ClassifierSpecification, texts: Sequence[str]) -> Self:
        """Builds the vocabulary from the most frequent words of the texts."""
        settings = _settings(specification)
        return cls(Vocabulary.build(texts, settings.vocabulary), settings.longest)

    @classmethod
    def load(cls, specification: ClassifierSpecification, folder: Path) -> Self:
        """Loads what `save` wrote."""
        return cls(Vocabulary.load(folder / VOCABULARY), _settings(specification).longest)

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The numbers of each text's words. A text without words becomes an end mark."""
        return self.vocabulary.turns(texts, self._longest)

    def words(self, numbers: np.ndarray) -> list[str]:
        """The words with these numbers."""
        return [self.vocabulary.words[number] for number in numbers]

    def save(self, folder: Path) -> None:
        """Writes one word a line."""
        self.vocabulary.save(folder / VOCABULARY)


class WordNetwork(TextNetwork):
    """Word embeddings, an encoder, dropout and a linear layer."""

    def __init__(self, architecture: str, settings: NetworkSettings, words: int) -> None:
        super().__init__()
        self.encoder = TextEncoder(architecture, words, settings)
        self.width = settings.embedding
        self.dropout = nn.Dropout(_DROPOUT[architecture] if settings.dropout is None else settings.dropout)
        self.output = nn.Linear(self.encoder.width, 2)

    def embed(self, texts: torch.Tensor) -> torch.Tensor:
        """The vectors of the words."""
        return self.encoder.embedding(texts)

    def logits(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The logits of the texts."""
        return self.output(self.dropout(self.encoder(embedded, lengths)))


def tokens_of(specification: ClassifierSpecification, folder: Path) -> WordTokens:
    """The words of a classifier that was trained in `folder`."""
    return WordTokens.load(specification, folder)


def new_tokens(specification: ClassifierSpecification, texts: Sequence[str]) -> WordTokens:
    """The tokens built from these texts."""
    return WordTokens.build(specification, texts)


def network(specification: ClassifierSpecification, tokens: WordTokens) -> WordNetwork:
    """A network with random weights."""
    return WordNetwork(specification.architecture, _settings(specification), len(tokens.vocabulary))


def _settings(specification: ClassifierSpecification) -> NetworkSettings:
    return specification.network or NetworkSettings()
