"""Debiased-TC: a corrector chooses which words a classifier may look at (Liu 2022, section 4.4, algorithm 2).

Corrector C (theta), classifier M_Y (W_Y, with the words' vectors) and adversary M_Z (W_Z) read X_S = s_i x_i. In turns:
theta descends grad L_Y - grad L_Z, the sign turned by a gradient-reversal layer before M_Z, on a batch of V' = V + T;
then W_Y descends L_Y and W_Z descends L_Z on a batch of T. With xi > 0 theta's gradient is taken where one step of size
xi would have brought W_Y and W_Z (DARTS, Liu, Simonyan and Yang 2019).
"""

import json
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from fairness_pipeline.debiasing.classifiers.registry import Task
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import report
from fairness_pipeline.models.checkpoints import Due, load_training, save_training, weights_of
from fairness_pipeline.models.classifiers import registry
from fairness_pipeline.models.classifiers.network import TextNetwork, inaccuracy
from fairness_pipeline.models.classifiers.saliency import CorrectedNetwork
from fairness_pipeline.models.classifiers.texts import LabelledTexts, TextBatch
from fairness_pipeline.models.training import Trainer
from fairness_pipeline.models.watching import Watch


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, values: torch.Tensor, strength: float) -> torch.Tensor:
        context.strength = strength
        return values.view_as(values)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return -context.strength * gradients[0], None


def reversal(values: torch.Tensor, strength: float = 1.0) -> torch.Tensor:
    """Gradient reversal: the values pass unchanged, their gradient times -`strength` (Ganin and Lempitsky 2015)."""
    output: torch.Tensor = _Reversal.apply(values, strength)  # type: ignore[no-untyped-call]
    return output


Weights = dict[str, torch.Tensor]
Pair = tuple[TextBatch, torch.Tensor]
"""A batch with its labels, and its authors' groups."""


class Game(nn.Module):
    """Classifier, corrector and adversary.

    Args:
        network: Classifier and corrector.
        adversary: A network of the same architecture, which predicts the author's group.
        strength: The weight of the adversary's loss for the corrector.
    """

    def __init__(self, network: CorrectedNetwork, adversary: TextNetwork, strength: float) -> None:
        super().__init__()
        self.network = network
        self.adversary = adversary
        self.strength = strength

    def forward(self, batch: TextBatch, groups: torch.Tensor, *, turned: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """L_Y and L_Z of a batch; `turned` puts the reversal before the adversary."""
        embedded = self.network.embed(batch.texts)
        corrected = self.network.corrected(embedded, batch.lengths)
        by_adversary = reversal(corrected, self.strength) if turned else corrected
        loss = cross_entropy(self.network.classifier.logits(corrected, batch.lengths), batch.goals)
        return loss, cross_entropy(self.adversary.logits(by_adversary, batch.lengths), groups)

    def split(self) -> tuple[Weights, Weights, Weights]:
        """theta, W_Y (with the words' vectors) and W_Z, by name."""
        parts: dict[str, Weights] = {"network.corrector.": {}, "network.classifier.": {}, "adversary.": {}}
        for name, parameter in self.named_parameters():
            next(part for prefix, part in parts.items() if name.startswith(prefix))[name] = parameter
        theta, of_label, of_group = parts.values()
        return theta, of_label, of_group


def classifier_gradients(game: Game, train: Pair, *, create_graph: bool = False) -> Weights:
    """grad L_Y by W_Y and grad L_Z by W_Z, on a batch of T; None for parameters that are not used.

    Args:
        game: Classifier, corrector and adversary.
        train: The batch.
        create_graph: Whether the gradients can be followed back to theta.
    """
    _, *classifiers = game.split()
    losses = game(*train, turned=False)
    gradient_of: Weights = {}
    for loss, weights in zip(losses, classifiers, strict=True):
        gradients = torch.autograd.grad(
            loss, list(weights.values()), create_graph=create_graph, retain_graph=True, allow_unused=True
        )
        gradient_of |= {
            name: gradient for name, gradient in zip(weights, gradients, strict=True) if gradient is not None
        }
    return gradient_of


def corrector_gradient(game: Game, valid: Pair, train: Pair, xi: float) -> Weights:
    """The gradient of L_Y - L_Z on `valid` by theta, at W - xi grad_W L_train(W, theta).

    Args:
        game: Classifier, corrector and adversary.
        valid: A batch of V'.
        train: A batch of T; unused where `xi` is 0.
        xi: The size of the step to look ahead.
    """
    theta, of_label, of_group = game.split()
    moved = {**of_label, **of_group}
    if xi:
        for name, gradient in classifier_gradients(game, train, create_graph=True).items():
            moved[name] = moved[name] - xi * gradient
        # The effect of theta on L_Z through the adversary's next step is reversed as well.
        moved |= {name: reversal(moved[name], game.strength) for name in of_group}
    losses = functional_call(game, {**theta, **moved}, valid, {"turned": True})
    gradients = torch.autograd.grad(losses[0] + losses[1], list(theta.values()))
    return dict(zip(theta, gradients, strict=True))


def train(network: CorrectedNetwork, task: Task) -> list[float]:
    """Algorithm 2, for a fixed number of epochs; leaves the network in the task's folder.

    Resumes a killed training.

    Returns:
        The validation accuracy after each epoch.

    Raises:
        FairnessError: a loss that is not a number.
    """
    settings, fitting = task.settings, task.classifier.fitting
    weights, checkpoint = (task.folder / name for name in (Trainer.WEIGHTS, Trainer.CHECKPOINT))
    train_set, whole_set = _with_groups(task.train), _with_groups(task.train.and_these(task.valid))
    valid = LabelledTexts(task.valid.words, task.valid.labels)
    game = Game(network, registry.new_network(task.classifier, task.tokens), settings.adversary)
    device = next(game.parameters()).device
    theta, of_label, of_group = game.split()
    classifier_weights = {**of_label, **of_group}
    of_corrector = torch.optim.Adam(theta.values(), settings.learning_rate)
    of_classifiers = torch.optim.Adam(classifier_weights.values(), fitting.learning_rate)
    optimisers = {"corrector": of_corrector, "classifiers": of_classifiers}
    epoch, step, history = 0, 0, list[float]()
    if weights.exists() and (task.folder / Trainer.HISTORY).exists():  # one may have been deleted
        checkpoint.unlink(missing_ok=True)
        stored: list[float] = json.loads((task.folder / Trainer.HISTORY).read_text(encoding="utf-8"))
        return stored
    if restored := load_training(checkpoint, {"game": game}, optimisers):
        epoch, step, history = (restored[1][name] for name in ("epoch", "step", "history"))
    due, watch = Due(fitting.checkpoint_seconds), Watch("gradient of the training loss", checkpoint)

    def save() -> None:
        watch.collect(f"epoch {epoch + 1}, batch {step}")
        position = {"epoch": epoch, "step": step, "history": history}
        save_training(checkpoint, {"game": game}, optimisers, {}, position)

    xi = fitting.learning_rate if settings.second_order else 0.0
    while epoch < settings.epochs:
        order = train_set[0].batches(fitting.batch, task.seed + epoch)
        whole_order = whole_set[0].batches(fitting.batch, task.seed + 1000 + epoch)
        game.train()
        while step < len(order):
            batch = _batch(train_set, order[step], device)
            whole_batch = _batch(whole_set, whole_order[step % len(whole_order)], device)
            where = f"epoch {epoch + 1}, batch {step + 1}"
            with torch.backends.cudnn.flags(enabled=not xi):  # cuDNN has no second gradient of a recurrent network
                gradients = corrector_gradient(game, whole_batch, batch, xi)
            _step(of_corrector, theta, gradients, fitting.clipping, watch, where)
            _step(of_classifiers, classifier_weights, classifier_gradients(game, batch), fitting.clipping, watch, where)
            step += 1
            report(task.progress, epoch * len(order) + step, settings.epochs * len(order), "")
            if due():
                save()
        history.append(1 - inaccuracy(network, valid))
        epoch, step = epoch + 1, 0
        save()
    with replacing(task.folder / Trainer.HISTORY) as path:
        path.write_text(json.dumps(history), encoding="utf-8")
    with replacing(weights) as path:
        save_file(weights_of(network), path)
    checkpoint.unlink(missing_ok=True)
    return history


def _with_groups(texts: Any) -> tuple[LabelledTexts, np.ndarray]:
    return LabelledTexts(texts.words, texts.labels), texts.groups.astype(np.int64)


def _batch(texts: tuple[LabelledTexts, np.ndarray], indices: np.ndarray, device: torch.device) -> Pair:
    return texts[0].batch(indices, device), torch.from_numpy(texts[1][indices]).to(device)


def _step(
    optimiser: torch.optim.Optimizer, weights: Weights, gradients: Weights, clipping: float, watch: Watch, where: str
) -> None:
    for name, parameter in weights.items():
        parameter.grad = gradients.get(name)
    watch.add(nn.utils.clip_grad_norm_(weights.values(), clipping), where)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
