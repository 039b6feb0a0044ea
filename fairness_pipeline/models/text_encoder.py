"""Encodes word vectors as one vector for each text, with a convolutional or a recurrent network."""

from typing import Protocol

import torch
from torch import nn

from fairness_pipeline.models.recurrent import last_states
from fairness_pipeline.models.vocabulary import PAD


class Sizes(Protocol):
    """The sizes that a file gives for an encoder's layers."""

    @property
    def embedding(self) -> int:
        """The width of a word vector."""

    @property
    def filters(self) -> int:
        """The CNN's number of filters of each width."""

    @property
    def widths(self) -> tuple[int, ...]:
        """The CNN's filter widths, in words."""

    @property
    def hidden(self) -> int:
        """The GRU's number of units."""


class TextEncoder(nn.Module):
    """Encodes texts with a CNN or a GRU. The CNN is that of Kim (2014): filters of several widths, each with its
    largest value over the text. The GRU's last state is the vector of the text. Padding has no effect.

    Attributes:
        width: The width of a text's vector.
    """

    def __init__(self, architecture: str, words: int, sizes: Sizes) -> None:
        super().__init__()
        embedding, filters, widths, hidden = sizes.embedding, sizes.filters, sizes.widths, sizes.hidden
        self.embedding = nn.Embedding(words, embedding, padding_idx=PAD)
        self.convolutions = nn.ModuleList()
        self.gru: nn.GRU | None = None
        if architecture == "cnn":
            self.convolutions.extend(nn.Conv1d(embedding, filters, width, padding=width - 1) for width in widths)
            self.width = filters * len(widths)
        else:
            self.gru = nn.GRU(embedding, hidden, batch_first=True)
            self.width = hidden

    def forward(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The vectors (texts, width) of texts with these lengths, from word vectors (texts, words, embedding)."""
        if self.gru is not None:
            return last_states(self.gru, embedded, lengths)[0][-1]
        return torch.cat([self._largest(convolution, embedded, lengths) for convolution in self.convolutions], 1)

    def _largest(self, convolution: nn.Module, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        values = torch.relu(convolution(embedded.transpose(1, 2)))
        reach = values.shape[2] - embedded.shape[1]  # positions that the padding of the convolution adds
        outside = torch.arange(values.shape[2]) >= (lengths + reach).unsqueeze(1)
        return values.masked_fill(outside.unsqueeze(1).to(values.device), 0.0).amax(dim=2)
