"""ADD: makes stereotypical attributes as near to one group as to the other (Barikeri et al. 2021, section 4.2).

L_ADD = sum over pairs (t1, t2) in P of |cos(t1; a) - cos(t2; a)|, at every attribute a; a is its transformed vector, t1
and t2 are those of the output layer.
"""

import torch
from torch.nn.functional import cosine_similarity


class AttributeDistance:
    """The loss at an attribute."""

    attributes = True

    def __call__(
        self, hidden: torch.Tensor, place: tuple[int, int], vectors: torch.Tensor, pairs: torch.Tensor
    ) -> torch.Tensor:
        """The sum over all pairs; the vector of an attribute is the mean of its tokens."""
        attribute = hidden[place[0] : place[1]].mean(0)
        near = cosine_similarity(vectors, attribute[None], dim=1)
        return (near[pairs[:, 1]] - near[pairs[:, 0]]).abs().sum()
