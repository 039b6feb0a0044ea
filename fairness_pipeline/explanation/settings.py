"""How explainers are trained, and how many texts are explained."""

from fairness_pipeline.foundation.yaml_files import Positive, Specification
from fairness_pipeline.models.specification import Rate, TrainingSettings


class ExplainerSettings(Specification):
    """Settings of L2X explainers and of integrated gradients."""

    hidden: Positive = 100
    """Units of the explainer's recurrent network in each direction."""
    epochs: Positive = 5
    """Passes over the training texts."""
    batch: Positive = 64
    """Texts per step."""
    learning_rate: Rate = 1e-3
    """Learning rate of Adam."""
    texts: Positive = 1000
    """The maximum number of texts of the split `test` that are explained."""
    steps: Positive = 32
    """The number of points between the zero vector and a text at which gradients are taken."""

    @property
    def training(self) -> TrainingSettings:
        """The same settings for the training loop that all models share. A batch there is a number of texts."""
        return TrainingSettings(
            optimiser="adam", learning_rate=self.learning_rate, clipping=0.25, batch_tokens=self.batch,
            epochs=self.epochs, patience=self.epochs, decay=1.0,
        )  # fmt: skip
