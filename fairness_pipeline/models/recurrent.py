"""Reading padded texts with a recurrent network, at the speed of texts without padding."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


def last_states(network: nn.LSTM | nn.GRU, words: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The network's states after each text's own last word, as if it had been read alone.

    On a CPU a packed batch takes a slow step for every word, where one without padding takes one call of the library's
    kernel. So the batch is read in pieces: all texts up to the end of the shortest, the others on to the next end, and
    so on. The pieces are as many as there are distinct lengths.

    Args:
        network: `batch_first`, in one direction.
        words: Word vectors (texts, words, width).
        lengths: Words of each text (texts), at least 1, on the CPU.

    Returns:
        Hidden states, and cells of an LSTM: (layers, texts, hidden) each.
    """
    if words.is_cuda:
        _, state = network(pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False))
        return _parts(state)
    order = torch.argsort(lengths, stable=True)
    words, state, read, finished = words[order], None, 0, []
    for length, count in zip(*(found.tolist() for found in torch.unique(lengths, return_counts=True)), strict=True):
        _, state = network(words[:, read:length], state)
        finished.append([part[:, :count] for part in _parts(state)])
        going = tuple(part[:, count:].contiguous() for part in _parts(state))
        words, state, read = words[count:], going if isinstance(network, nn.LSTM) else going[0], length
    back = torch.argsort(order)
    return tuple(torch.cat(parts, dim=1)[:, back] for parts in zip(*finished, strict=True))


def _parts(state: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return (state,) if isinstance(state, torch.Tensor) else state
