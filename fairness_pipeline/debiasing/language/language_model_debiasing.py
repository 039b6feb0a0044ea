"""LMD: equal probability for the two terms of a pair (Barikeri et al. 2021, section 4.1; Qian et al. 2019).

L_LMD = 1/|P_t| sum over pairs (t1, t2) in P_t of |log y_t1 / y_t2|, at every position of a target term t; y is a
softmax over the terms of all pairs alone, so that log y_t1 / y_t2 is the difference of their logits.
"""

import torch


class LanguageModelDebiasing:
    """The loss at the position that predicts a target."""

    attributes = False

    def __call__(
        self, hidden: torch.Tensor, place: tuple[int, list[int]], vectors: torch.Tensor, pairs: torch.Tensor
    ) -> torch.Tensor:
        """The mean over the pairs that the target is in."""
        first, rows = place
        logs = torch.log_softmax(hidden[first - 1] @ vectors.T, dim=0)
        target_pairs = pairs[rows]
        return (logs[target_pairs[:, 1]] - logs[target_pairs[:, 0]]).abs().mean()
