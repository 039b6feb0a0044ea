"""HD: puts stereotypical attributes at right angles to the directions that tell the groups apart (section 4.3).

C stacks b_i = (t1_i - t2_i) / 2; B are the first k right singular vectors of C, k the least number that explains a
share, half in the paper, of its squared Frobenius norm. L_HD = sum over j of |b_j <a, b_j>| = sum over j of |<a, b_j>|,
as b_j has length 1, at every attribute a (Barikeri et al. 2021; Bordia and Bowman 2019). B is computed at each step,
without gradients.
"""

import torch


def bias_subspace(vectors: torch.Tensor, pairs: torch.Tensor, share: float) -> torch.Tensor:
    """(k, width): the directions of bias.

    Args:
        vectors: (terms, width) of the output layer.
        pairs: (pairs, 2) rows of `vectors`: side a, side b.
        share: The least share of the squared differences that the directions explain.
    """
    half = (vectors[pairs[:, 1]] - vectors[pairs[:, 0]]).detach().float() / 2
    _, values, directions = torch.linalg.svd(half, full_matrices=False)
    explained = values.square().cumsum(0) / values.square().sum()
    count = int((explained < share).sum()) + 1
    return directions[:count]


class HardDebiasing:
    """The loss at an attribute; a step's subspace is computed once.

    Args:
        share: As of `bias_subspace`.
    """

    attributes = True

    def __init__(self, share: float) -> None:
        self._share = share
        self._cached: tuple[torch.Tensor, torch.Tensor] | None = None

    def __call__(
        self, hidden: torch.Tensor, place: tuple[int, int], vectors: torch.Tensor, pairs: torch.Tensor
    ) -> torch.Tensor:
        """The summed lengths of the attribute's projections on the directions of bias."""
        if self._cached is None or self._cached[0] is not vectors:
            self._cached = vectors, bias_subspace(vectors, pairs, self._share)
        attribute = hidden[place[0] : place[1]].mean(0)
        return (self._cached[1].to(attribute.dtype) @ attribute).abs().sum()
