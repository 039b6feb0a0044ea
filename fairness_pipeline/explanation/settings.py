"""How explainers are trained, and how much is explained."""

from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.specification import Rate, TrainingSettings


class ExplainerSettings(Specification):
    """Explainers by L2X, and integrated gradients beside them."""

    hidden: Positive = 100
    """Units of the explainer's recurrent network, in each direction."""
    epochs: Positive = 5
    """Passes over the training texts."""
    batch: Positive = 64
    """Texts of a step."""
    learning_rate: Rate = 1e-3
    """Learning rate of Adam."""
    texts: Positive = 1000
    """Texts of the split `test` that are explained, at most."""
    steps: Positive = 32
    """Points between nothing and a text at which gradients are taken."""

    @property
    def training(self) -> TrainingSettings:
        """The same for the loop that all models share, whose batches are of texts here."""
        return TrainingSettings(
            optimiser="adam", learning_rate=self.learning_rate, clipping=0.25, batch_tokens=self.batch,
            epochs=self.epochs, patience=self.epochs, decay=1.0,
        )  # fmt: skip
