"""Debiased-Chat: a dialogue model trained against a discriminator of groups (Liu 2022, section 3.2.3, algorithm 1).

The base, trained by maximum likelihood, is the generator G. Its response goes through the frozen disentanglement model;
D1 shall tell the dialogue's group from the unbiased features f(u), D2 shall not from the semantic features f(s).
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, gumbel_softmax

from fairness_pipeline.debiasing import disentanglement
from fairness_pipeline.debiasing.continued_training import Course, Dialogues, GenderedBatch, Step, train_on
from fairness_pipeline.debiasing.disentanglement import DisentanglementModel, Features, negative_entropy
from fairness_pipeline.debiasing.registry import Task
from fairness_pipeline.debiasing.settings import Adversarial, DebiasedChat
from fairness_pipeline.models.batching import Batch
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN


class SampledResponses(NamedTuple):
    """Sampled responses: words (batch, length, vocabulary), one of each row 1, and lengths (batch, CPU)."""

    words: torch.Tensor
    lengths: torch.Tensor


class Discriminator(nn.Sequential):
    """D1 or D2 of section 3.2.3.1: three layers with ReLU, from a feature vector to the scores of the two groups."""

    def __init__(self, features: int, hidden: int) -> None:
        super().__init__(
            nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2)
        )


def sample_responses(model: Seq2Seq, batch: Batch, longest: int, temperature: float) -> SampledResponses:
    """Responses drawn from G by the Gumbel-softmax trick, differentiable in G's weights.

    Each word is the likeliest of noisy scores, with the gradient of their softmax over the temperature (the
    straight-through form: with soft words the model learns to please by mixtures that it will never write). A response
    ends where the end mark is drawn; as in decoding, it has a word at least and holds no `UNKNOWN`; it is no longer
    than the batch's longest true response.
    """
    state = model.encode(batch.contexts, batch.lengths)
    rows = len(batch.contexts)
    embedded = model.embedding(batch.contexts.new_full((rows, 1), START))
    barred = torch.zeros(model.output.out_features, device=batch.contexts.device)
    barred[[PAD, UNKNOWN, START]] = -torch.inf
    barred_at_start = barred.clone()
    barred_at_start[END] = -torch.inf
    words: list[torch.Tensor] = []
    lengths = torch.zeros(rows, dtype=torch.int64)
    going = torch.ones(rows, dtype=torch.bool)
    for step in range(min(longest, batch.responses.shape[1] - 2)):
        output, state = model.decoder(embedded, state)
        scores = model.output(output[:, 0]) + (barred_at_start if step == 0 else barred)
        word = gumbel_softmax(scores, tau=temperature, hard=True)
        going &= (word.argmax(dim=1) != END).cpu()
        if not going.any():
            break
        lengths += going
        words.append(word)
        embedded = (word @ model.embedding.weight).unsqueeze(1)
    return SampledResponses(torch.stack(words, dim=1), lengths)


def features_of(det: DisentanglementModel, responses: SampledResponses) -> Features:
    """f(u) and f(s) of sampled responses."""
    return det.features(det.embed(responses.words), responses.lengths)


class AdversarialTraining(Course):
    """Algorithm 1, step by step.

    Args:
        settings: Steps, weights, widths.
        model: G, trained by maximum likelihood.
        det: The frozen disentanglement model.
        longest: Words of a response at most.
    """

    settings: Adversarial

    def __init__(self, settings: Adversarial, model: Seq2Seq, det: DisentanglementModel, longest: int) -> None:
        device = model.output.weight.device
        self.det, self.longest = det, longest
        self.d1 = Discriminator(det.to_unbiased.out_features, settings.discriminator).to(device)
        self.d2 = Discriminator(det.to_semantic.out_features, settings.discriminator).to(device)
        super().__init__(settings, model, self.d1.parameters())
        self.modules |= {"d1": self.d1, "d2": self.d2}
        self.optimisers["discriminator"] = torch.optim.Adam(self.d2.parameters(), settings.discriminator_learning_rate)

    def steps(self, data: Dialogues, random: np.random.Generator, iteration: int) -> list[Step]:
        """One turn of the outer loop."""
        s, temperature = self.settings, temperature_at(iteration, self.settings)
        return [
            *[Step("D2", lambda: self.discriminator_step(data.gendered(random, s.batch), temperature))] * s.d_steps,
            *[Step("G", lambda: self.generator_step(data.gendered(random, s.batch), temperature))] * s.g_steps,
            *[Step("G (teaching)", lambda: self.teaching_step(data.neutral(random, s.batch)))] * s.g_teach_steps,
        ]

    def discriminator_step(self, batch: GenderedBatch, temperature: float) -> torch.Tensor:
        """Lines 3 to 6: D2 learns the group from f(s) of sampled responses; G is at rest. Gives its loss."""
        with torch.no_grad():
            responses = sample_responses(self.model, batch.dialogues, self.longest, temperature)
            semantic = features_of(self.det, responses).semantic
        loss = cross_entropy(self.d2(semantic), batch.groups)
        self.update("discriminator", loss, self.d2)
        return loss.detach()

    def generator_step(self, batch: GenderedBatch, temperature: float) -> torch.Tensor:
        """Lines 9 to 13: G and D1 are updated on L = L_MLE + k1' L_D1 + k2' L_D2; D2 is at rest. Gives L.

        `k0` weighs L_MLE, as algorithm 1's list of hyper-parameters has it.
        """
        features = features_of(self.det, sample_responses(self.model, batch.dialogues, self.longest, temperature))
        self.d2.requires_grad_(False)
        loss = (
            self.settings.k0 * self.likelihood_loss(batch.dialogues)
            + self.settings.k1 * cross_entropy(self.d1(features.unbiased), batch.groups)
            + self.settings.k2 * negative_entropy(self.d2(features.semantic))
        )
        self.update("generator", loss, self.model)
        self.d2.requires_grad_(True)
        return loss.detach()


def debias(task: Task) -> dict[str, Any]:
    """Trains the base on by algorithm 1; figures and errors are those of `train_on`."""
    settings = DebiasedChat.model_validate(task.model.settings or {}).adversarial
    assert task.model.seq2seq is not None
    longest, det = task.model.seq2seq.longest, disentanglement.load(task)
    return train_on(task, settings, lambda model: AdversarialTraining(settings, model, det, longest))


def temperature_at(iteration: int, settings: Adversarial) -> float:
    """Gumbel-softmax's temperature: divided by `cooling` every `cooling_every` iterations until below `coldest`."""
    temperature = settings.temperature
    for _ in range(iteration // settings.cooling_every):
        if temperature < settings.coldest:
            break
        temperature /= settings.cooling
    return temperature
