"""States of a padded batch, against those of each text alone."""

import pytest
import torch
from torch import nn

from fairness_pipeline.models.recurrent import last_states


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("lengths", [[3, 1, 7, 3, 2], [4, 4, 4], [1]])
def test_states_and_gradients_are_those_of_each_text_read_alone(kind: type, lengths: list[int]) -> None:
    torch.manual_seed(0)
    network = kind(5, 4, 2, batch_first=True)
    words = torch.randn(len(lengths), max(lengths), 5, requires_grad=True)
    batched = last_states(network, words, torch.tensor(lengths))
    alone = [network(words[i : i + 1, :length])[1] for i, length in enumerate(lengths)]
    states = zip(*alone, strict=True) if kind is nn.LSTM else [alone]
    expected = [torch.cat(list(parts), dim=1) for parts in states]
    assert len(batched) == len(expected)
    for ours, theirs in zip(batched, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    gradients = [
        torch.autograd.grad(sum(part.pow(2).sum() for part in parts), words, retain_graph=True)[0]
        for parts in (batched, expected)
    ]
    torch.testing.assert_close(*gradients)
    padding = torch.arange(max(lengths)) >= torch.tensor(lengths).unsqueeze(1)
    assert not gradients[0][padding].any()
