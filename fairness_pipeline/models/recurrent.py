"""Reads padded texts with a recurrent network as fast as texts without padding."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


def last_states(network: nn.LSTM | nn.GRU, words: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The network's states after the last word of each text, as if each text were read alone.

    On a CPU a packed batch takes a slow step for every word, while a batch without padding takes one call of the
    library's kernel. So the batch is read in pieces: all texts up to the end of the shortest, the others up to the next
    end, and so on. There are as many pieces as distinct lengths.

    Args:
        network: `batch_first`, in one direction.
        words: The word vectors (texts, words, width).
        lengths: The number of words of each text (texts), at least 1, on the CPU.

    Returns:
        The hidden states and, for an LSTM, the cells: (layers, texts, hidden) each.
    """
    if words.is_cuda:
        _, state = network(pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False))
        return _parts(state)
    order = torch.argsort(lengths, stable=True)
    words, state, read, finished = words[order], None, 0, []
    for length, count in zip(*(values.tolist() for values in torch.unique(lengths, return_counts=True)), strict=True):
        _, state = network(words[:, read:length], state)
        finished.append([part[:, :count] for part in _parts(state)])
        remaining = tuple(part[:, count:].contiguous() for part in _parts(state))
        words, state, read = words[count:], remaining if isinstance(network, nn.LSTM) else remaining[0], length
    original_order = torch.argsort(order)
    return tuple(torch.cat(parts, dim=1)[:, original_order] for parts in zip(*finished, strict=True))


def _parts(state: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return (state,) if isinstance(state, torch.Tensor) else state
