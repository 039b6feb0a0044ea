"""The network of explainers and correctors, which weighs the words of a text (Liu 2022, section 4.3.1).

It is a bidirectional recurrent network over the word vectors, a linear layer, and a softmax over the text's words.
"""

import torch
from torch import nn

from fairness_pipeline.models.classifiers.network import TextNetwork


class SaliencyNetwork(nn.Module):
    """Gives a distribution over the words of a text, from their vectors, with `hidden` units in each direction."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.GRU(width, hidden, batch_first=True)
        self.backwards = nn.GRU(width, hidden, batch_first=True)
        self.output = nn.Linear(2 * hidden, 1)

    def forward(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The saliency (texts, words) of texts (texts, words, width) of these lengths: 0 at padding, sum 1 in a text.

        Padding has no effect. It follows the last word in both directions, because each text is reversed within its own
        length.
        """
        words = embedded.shape[1]
        positions = torch.arange(words)[None]
        present = (positions < lengths[:, None]).to(embedded.device)
        mirrored = torch.where(positions < lengths[:, None], lengths[:, None] - 1 - positions, positions).to(
            embedded.device
        )
        indices = mirrored[:, :, None].expand(-1, -1, embedded.shape[2])
        back, _ = self.backwards(embedded.gather(1, indices))
        back = back.gather(1, mirrored[:, :, None].expand(-1, -1, back.shape[2]))
        forth, _ = self.forwards(embedded)
        scores = self.output(torch.cat([forth, back], 2)).squeeze(2)
        return scores.masked_fill(~present, -torch.inf).softmax(dim=1)


class CorrectedNetwork(TextNetwork):
    """A classifier whose word vectors are multiplied by the saliencies from a corrector."""

    def __init__(self, classifier: TextNetwork, hidden: int) -> None:
        super().__init__()
        self.classifier = classifier
        self.width = classifier.width
        self.corrector = SaliencyNetwork(classifier.width, hidden).to(next(classifier.parameters()).device)

    def embed(self, texts: torch.Tensor) -> torch.Tensor:
        """The vectors of the words, before the correction."""
        return self.classifier.embed(texts)

    def corrected(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """X_S: each vector, multiplied by the saliency of its word."""
        return self.corrector(embedded, lengths)[:, :, None] * embedded

    def logits(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The logits of the texts."""
        return self.classifier.logits(self.corrected(embedded, lengths), lengths)
