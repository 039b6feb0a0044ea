"""L2X: an explainer learns which words a classifier needs (Liu 2022, section 4.3.1; Chen et al. 2018).

max over E of E[log P_M(Y | X_S)], where X_S = s_i x_i, S = E(X) is a distribution over the words, and Y is the gold
target. The classifier M does not change.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fairness_pipeline.explanation.settings import ExplainerSettings
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.checkpoints import load_weights
from fairness_pipeline.models.classifiers.network import TextNetwork
from fairness_pipeline.models.classifiers.saliency import SaliencyNetwork
from fairness_pipeline.models.classifiers.texts import LabelledTexts, TextBatch
from fairness_pipeline.models.training import Trainer

_AT_ONCE = 256


class Explainer(nn.Module):
    """The trained network: a saliency network, judged by the frozen classifier's output on the words that it lets
    through.

    Args:
        network: The classifier.
        hidden: Units of the recurrent network in each direction.
    """

    def __init__(self, network: TextNetwork, hidden: int) -> None:
        super().__init__()
        self._frozen = (network.eval().requires_grad_(False),)  # inside a tuple it is not a submodule
        self.saliency = SaliencyNetwork(network.width, hidden).to(next(network.parameters()).device)

    def forward(self, batch: TextBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """The summed cross-entropy of the goals given X_S, and the number of texts."""
        (network,) = self._frozen
        embedded = network.embed(batch.texts)
        masked = self.saliency(embedded, batch.lengths)[:, :, None] * embedded
        loss = cross_entropy(network.logits(masked, batch.lengths), batch.goals, reduction="sum")
        return loss, torch.tensor(len(batch.goals))

    @torch.inference_mode()
    def explain(self, texts: list[np.ndarray]) -> list[np.ndarray]:
        """S of each text: one share per word. The shares of a text sum to 1."""
        (network,) = self._frozen
        dataset = LabelledTexts(texts, np.zeros(len(texts)))
        device = next(self.parameters()).device
        self.eval()
        explanations: list[np.ndarray] = [np.empty(0)] * len(texts)
        for indices in dataset.batches(_AT_ONCE, seed=None):
            batch = dataset.batch(indices, device)
            shares = self.saliency(network.embed(batch.texts), batch.lengths).double().cpu().numpy()
            for row, index in zip(shares, indices, strict=True):
                explanations[index] = row[: len(texts[index])]
        return explanations


def train_explainer(
    network: TextNetwork,
    texts: LabelledTexts,
    settings: ExplainerSettings,
    folder: Path,
    seed: int,
    progress: Progress | None = None,
) -> Explainer:
    """Trains an explainer of a classifier. A killed training resumes where it stopped.

    Args:
        network: The classifier. It does not change.
        texts: The texts, with the goals that the classifier was trained for.
        settings: The length and learning rate of the training.
        folder: The folder for checkpoint and weights.
        seed: The seed of the first weights and of the order.
        progress: Receives the progress.

    Raises:
        FairnessError: the loss is not a number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    explainer = Explainer(network, settings.hidden)
    trainer = Trainer(explainer, settings.training, folder, seed)
    with torch.backends.cudnn.flags(enabled=False):  # cuDNN has no gradients in eval mode
        trainer.fit(texts, None, progress)
    explainer.load_state_dict(load_weights(folder / Trainer.WEIGHTS))  # possibly from an earlier run
    return explainer.eval()
