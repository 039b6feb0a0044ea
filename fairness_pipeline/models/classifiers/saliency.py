"""Which word counts how much: the shape of explainers and correctors (Liu 2022, section 4.3.1).

A bi-directional recurrent network over the words' vectors, a linear layer, and a softmax over the words of the text.
"""

import torch
from torch import nn

from fairness_pipeline.models.classifiers.network import TextNetwork


class SaliencyNetwork(nn.Module):
    """Word vectors to a distribution over the words.

    Args:
        width: Of a word's vector.
        hidden: Units of the recurrent network, in each direction.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.GRU(width, hidden, batch_first=True)
        self.backwards = nn.GRU(width, hidden, batch_first=True)
        self.output = nn.Linear(2 * hidden, 1)

    def forward(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The saliency (texts, words) of texts (texts, words, width) of these lengths; 0 at padding, sum 1 a text.

        Padding changes nothing: it stands after the last word for both directions, as each text is turned round within
        its own length.
        """
        words = embedded.shape[1]
        places = torch.arange(words)[None]
        present = (places < lengths[:, None]).to(embedded.device)
        turned = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places).to(embedded.device)
        there = turned[:, :, None].expand(-1, -1, embedded.shape[2])
        back, _ = self.backwards(embedded.gather(1, there))
        back = back.gather(1, turned[:, :, None].expand(-1, -1, back.shape[2]))
        forth, _ = self.forwards(embedded)
        scores = self.output(torch.cat([forth, back], 2)).squeeze(2)
        return scores.masked_fill(~present, -torch.inf).softmax(dim=1)


class CorrectedNetwork(TextNetwork):
    """A classifier that reads each word times what its corrector gives it.

    Args:
        classifier: What stands behind the corrector.
        hidden: The corrector's units.
    """

    def __init__(self, classifier: TextNetwork, hidden: int) -> None:
        super().__init__()
        self.classifier = classifier
        self.width = classifier.width
        self.corrector = SaliencyNetwork(classifier.width, hidden).to(next(classifier.parameters()).device)

    def embed(self, texts: torch.Tensor) -> torch.Tensor:
        """The vectors of the words, before they are corrected."""
        return self.classifier.embed(texts)

    def corrected(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """X_S: each vector times its word's saliency."""
        return self.corrector(embedded, lengths)[:, :, None] * embedded

    def logits(self, embedded: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """The logits of the texts."""
        return self.classifier.logits(self.corrected(embedded, lengths), lengths)
