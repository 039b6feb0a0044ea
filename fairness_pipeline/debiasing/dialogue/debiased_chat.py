"""Debiased-Chat: a dialogue model trained against a discriminator of groups (Liu 2022, section 3.2.3, algorithm 1).

The base, trained by maximum likelihood, is the generator G. Its response goes through the frozen disentanglement model;
D1 should tell the dialogue's group from the unbiased features f(u); D2 should not, from the semantic features f(s).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy, softmax

from fairness_pipeline.debiasing.dialogue import disentanglement
from fairness_pipeline.debiasing.dialogue.continued_training import Course, Dialogues, GenderedBatch, Step, train_on
from fairness_pipeline.debiasing.dialogue.disentanglement import (
    DisentanglementModel,
    Features,
    hiding,
    layered,
    negative_entropy,
)
from fairness_pipeline.debiasing.dialogue.gendered_utterances import naming_words
from fairness_pipeline.debiasing.dialogue.probes import half_and_half
from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.debiasing.dialogue.settings import Adversarial, DebiasedChat
from fairness_pipeline.models.batching import Batch
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN, VOCABULARY, Vocabulary


class SampledResponses(NamedTuple):
    """Sampled responses: words (batch, length), and lengths (batch, CPU).

    `soft` (batch, length, vocabulary) are the probabilities whose gradient the words carry; None where G is frozen.
    """

    words: torch.Tensor
    soft: torch.Tensor | None
    lengths: torch.Tensor


_LAYERS = 3
"""Layers of D1 and D2 (section 3.2.3.1)."""
_PROBED = 2048
"""Answers of G that a probe of f(s) is fitted to and tested on."""


def sample_responses(
    model: Seq2Seq, batch: Batch, longest: int, temperature: float, noise: float = 1.0
) -> SampledResponses:
    """Responses drawn from G by the Gumbel-softmax trick, differentiable in G's weights unless gradients are off.

    Each word is the likeliest of noisy scores, with the gradient of their softmax over the temperature (the
    straight-through form: with soft words the model learns mixtures that it will never write). Gumbel's
    noise times 1 draws from G's distribution, times 0 takes the likeliest word, as G answers. A response ends where the
    end mark is drawn; as in decoding, dropout is off, it has at least one word and no `UNKNOWN`; it is no
    longer than the batch's longest true response.
    """
    with without_dropout(model):
        return _sample(model, batch, longest, temperature, noise)


@contextmanager
def without_dropout(model: Seq2Seq) -> Iterator[None]:
    """Turns dropout off inside, in training mode, which gradients need on a GPU."""
    between_layers, elsewhere = model.encoder.dropout, model.dropout.p
    model.encoder.dropout = model.decoder.dropout = model.dropout.p = 0.0
    try:
        yield
    finally:
        model.encoder.dropout = model.decoder.dropout = between_layers
        model.dropout.p = elsewhere


def _sample(model: Seq2Seq, batch: Batch, longest: int, temperature: float, noise: float) -> SampledResponses:
    state = model.encode(batch.contexts, batch.lengths)
    rows = len(batch.contexts)
    embedded = model.embedding(batch.contexts.new_full((rows, 1), START))
    barred = torch.zeros(model.output.out_features, device=batch.contexts.device)
    barred[[PAD, UNKNOWN, START]] = -torch.inf
    barred_at_start = barred.clone()
    barred_at_start[END] = -torch.inf
    words: list[torch.Tensor] = []
    softs: list[torch.Tensor] = []
    lengths = batch.contexts.new_zeros(rows)
    going = lengths == 0
    for step in range(min(longest, batch.responses.shape[1] - 2)):
        output, state = model.decoder(embedded, state)
        scores = model.output(output[:, 0]) + (barred_at_start if step == 0 else barred)
        if noise:
            scores = scores - noise * torch.empty_like(scores).exponential_().log()
        word = scores.argmax(dim=1)
        going = going & (word != END)
        if (step + 1) % model.together == 0 and not going.any():
            break
        lengths += going
        words.append(word)
        embedded = model.embedding(word)
        if torch.is_grad_enabled():
            softs.append(softmax(scores / temperature, dim=1))
            embedded = embedded + gradient_alone(softs[-1]) @ model.embedding.weight.detach()
        embedded = embedded.unsqueeze(1)
    lengths = lengths.cpu()
    longest = int(lengths.max())
    soft = torch.stack(softs[:longest], dim=1) if softs else None
    return SampledResponses(torch.stack(words[:longest], dim=1), soft, lengths)


def gradient_alone(values: torch.Tensor) -> torch.Tensor:
    """Zeros with the gradient of `values`."""
    return values - values.detach()


def features_of(det: DisentanglementModel, responses: SampledResponses) -> Features:
    """f(u) and f(s) of sampled responses."""
    known = responses.words < det.embedding.num_embeddings
    embedded = det.embedding(responses.words.where(known, UNKNOWN))
    if responses.soft is not None:
        embedded = embedded + det.embed(gradient_alone(responses.soft))
    return det.features(embedded, responses.lengths)


def gradient_penalty(scores: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    """R1 and R2 of Mescheder et al. 2018 (section 4.1), over both groups: E |gradient of D2's log odds|^2 / 2.

    Without it the two networks need not converge, however near they start (section 2 there).
    """
    (gradient,) = torch.autograd.grad((scores[:, 1] - scores[:, 0]).sum(), features, create_graph=True)
    return gradient.pow(2).sum(dim=1).mean() / 2


class AdversarialTraining(Course):
    """Algorithm 1, step by step.

    Args:
        settings: Steps, weights, widths.
        model: G, trained by maximum likelihood.
        det: The frozen disentanglement model.
        longest: Words of a response at most.
        naming: Numbers of the words that name a group.
        shuffled: Whether the discriminators get groups drawn at random: a placebo.
    """

    settings: Adversarial

    def __init__(
        self,
        settings: Adversarial,
        model: Seq2Seq,
        det: DisentanglementModel,
        longest: int,
        *,
        naming: Sequence[int] = (),
        shuffled: bool = False,
    ) -> None:
        device = model.output.weight.device
        self.det, self.longest, self.shuffled = det.to(device), longest, shuffled
        self.without_names = hiding(self.det, naming)
        self.d1 = layered(det.to_unbiased.out_features, settings.discriminator, 2, _LAYERS).to(device)
        self.d2 = layered(det.to_semantic.out_features, settings.discriminator, 2, _LAYERS).to(device)
        super().__init__(settings, model, self.d1.parameters())
        self.modules |= {"d1": self.d1, "d2": self.d2}
        self.optimisers["discriminator"] = torch.optim.Adam(self.d2.parameters(), settings.discriminator_learning_rate)

    def steps(self, data: Dialogues, random: np.random.Generator, iteration: int) -> list[Step]:
        """One turn of the outer loop."""
        s, temperature = self.settings, temperature_at(iteration, self.settings)
        return [
            Step("D2", lambda: self.discriminator_steps(self.drawn(data, random, s.d_steps), temperature)),
            *[
                Step(
                    "G",
                    lambda: self.generator_step(self.drawn(data, random, 1), temperature, self.others(data, random)),
                )
            ]
            * s.g_steps,
            *[Step("G (teaching)", lambda: self.teaching_step(data.neutral(random, s.batch)))] * s.g_teach_steps,
        ]

    def others(self, data: Dialogues, random: np.random.Generator) -> Batch | None:
        """With `teaching: unbiased`, the dialogues of L_MLE, instead of those that the discriminators judge."""
        return data.taught(random, self.settings.batch) if self.settings.teaching == "unbiased" else None

    def drawn(self, data: Dialogues, random: np.random.Generator, batches: int) -> GenderedBatch:
        """Dialogues whose message names one group, enough to fill the batches."""
        batch = data.gendered(random, batches * self.settings.batch)
        return batch.shuffled(random) if self.shuffled else batch

    def diagnose(self, data: Dialogues, random: np.random.Generator) -> dict[str, float]:
        """How well a fresh probe tells the group from f(s) of G's answers; and without the groups' words (`hidden`)."""
        drawn = data.gendered(random, _PROBED, again=False)
        with torch.no_grad():
            answers = self.sampled(drawn.dialogues, self.settings.temperature)
            models = {"": self.det, "_hidden": self.without_names}
            semantic = {suffix: features_of(det, answers).semantic.cpu() for suffix, det in models.items()}
        groups = drawn.groups.cpu().numpy()
        return {f"probe_of_answers{suffix}": half_and_half(vectors, groups, 0) for suffix, vectors in semantic.items()}

    def discriminator_steps(self, drawn: GenderedBatch, temperature: float) -> torch.Tensor:
        """Lines 3 to 6: D2 learns the group from f(s) of sampled responses, `batch` at a time; G is frozen.

        Therefore all responses are sampled at once, and may be passed over several times. Returns the last loss.
        """
        s = self.settings
        with torch.no_grad():
            semantic = features_of(self.det, self.sampled(drawn.dialogues, temperature)).semantic
        for _ in range(s.passes):
            for rows in torch.randperm(len(semantic)).to(semantic.device).split(s.batch):
                features = semantic[rows].requires_grad_()
                scores = self.d2(features)
                loss = cross_entropy(scores, drawn.groups[rows])
                if s.gradient_penalty:
                    loss = loss + s.gradient_penalty * gradient_penalty(scores, features)
                self.update("discriminator", loss, self.d2)
        return loss.detach()

    def sampled(self, dialogues: Batch, temperature: float) -> SampledResponses:
        """G's responses to the contexts of `dialogues`."""
        return sample_responses(self.model, dialogues, self.longest, temperature, self.settings.noise)

    def generator_step(self, batch: GenderedBatch, temperature: float, taught: Batch | None = None) -> torch.Tensor:
        """Lines 9 to 13: G and D1 are updated on L = L_MLE + k1' L_D1 + k2' L_D2; D2 is frozen. Returns L.

        `k0` weighs L_MLE, as algorithm 1's list of hyper-parameters has it; L_MLE may be of other dialogues (`taught`).
        """
        self.d2.requires_grad_(False)
        s, features = self.settings, features_of(self.det, self.sampled(batch.dialogues, temperature))
        loss = (
            s.k0 * self.likelihood_loss(taught or batch.dialogues)
            + s.k1 * cross_entropy(self.d1(features.unbiased), batch.groups)
            + s.k2 * negative_entropy(self.d2(features.semantic))
        )
        self.update("generator", loss, self.model)
        self.d2.requires_grad_(True)
        return loss.detach()


def debias(task: Task, *, shuffled: bool = False) -> dict[str, Any]:
    """Continues the base by algorithm 1, or by its placebo (`shuffled`); figures and errors are those of `train_on`."""
    settings = DebiasedChat.model_validate(task.model.settings or {}).adversarial
    assert task.model.seq2seq is not None
    longest, det = task.model.seq2seq.longest, disentanglement.load(task)
    naming = naming_words(task, Vocabulary.load(task.base / VOCABULARY))
    return train_on(
        task,
        settings,
        lambda model: AdversarialTraining(settings, model, det, longest, naming=naming, shuffled=shuffled),
        settings.teaching,
    )


def temperature_at(iteration: int, settings: Adversarial) -> float:
    """Gumbel-softmax's temperature: divided by `cooling` every `cooling_every` iterations until below `coldest`."""
    temperature = settings.temperature
    for _ in range(iteration // settings.cooling_every):
        if temperature < settings.coldest:
            break
        temperature /= settings.cooling
    return temperature
