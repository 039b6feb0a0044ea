"""Debiased-Chat: a dialogue model trained against a discriminator of groups (Liu 2022, section 3.2.3, algorithm 1).

The base, trained by maximum likelihood, is the generator G. Its response goes through the frozen disentanglement model;
D1 shall tell the dialogue's group from the unbiased features f(u), D2 shall not from the semantic features f(s).
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import cross_entropy, gumbel_softmax

from fairness_pipeline.debiasing import disentanglement
from fairness_pipeline.debiasing.biased_text import BiasScorer
from fairness_pipeline.debiasing.disentanglement import DisentanglementModel, Features, negative_entropy
from fairness_pipeline.debiasing.registry import Task
from fairness_pipeline.debiasing.settings import Adversarial, DebiasedChat
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.models.batching import Batch, EncodedDialogues
from fairness_pipeline.models.checkpoints import Due, check_finite, load_training, save_training, weights_of
from fairness_pipeline.models.dialogue import seq2seq
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.dialogue.training import turns_of
from fairness_pipeline.models.training import Trainer, perplexity
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN, VOCABULARY, Vocabulary
from fairness_pipeline.progress import report
from fairness_pipeline.statistics.unpaired import z_test

_CHECKPOINT = "training.safetensors"
_LEAST_PAIRS = 10


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


@dataclass(frozen=True)
class GenderedBatch:
    """Dialogues whose message names one group only: (X, Y, g)."""

    dialogues: Batch
    groups: torch.Tensor


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
    return det.features(responses.words @ det.embedding.weight, responses.lengths)


class AdversarialTraining:
    """Algorithm 1, step by step.

    Args:
        settings: Steps, weights, widths.
        model: G, trained by maximum likelihood.
        det: The frozen disentanglement model.
        longest: Words of a response at most.
    """

    def __init__(self, settings: Adversarial, model: Seq2Seq, det: DisentanglementModel, longest: int) -> None:
        device = model.output.weight.device
        self.settings, self.model, self.det, self.longest = settings, model, det, longest
        self.d1 = Discriminator(det.to_unbiased.out_features, settings.discriminator).to(device)
        self.d2 = Discriminator(det.to_semantic.out_features, settings.discriminator).to(device)
        self.modules = {"model": model, "d1": self.d1, "d2": self.d2}
        self.optimisers = {
            name: torch.optim.Adam(parameters, settings.learning_rate)
            for name, parameters in (
                ("discriminator", [*self.d2.parameters()]),
                ("generator", [*model.parameters(), *self.d1.parameters()]),
            )
        }

    def discriminator_step(self, batch: GenderedBatch, temperature: float) -> torch.Tensor:
        """Lines 3 to 6: D2 learns the group from f(s) of sampled responses; G is at rest. Gives its loss."""
        with torch.no_grad():
            responses = sample_responses(self.model, batch.dialogues, self.longest, temperature)
            semantic = features_of(self.det, responses).semantic
        loss = cross_entropy(self.d2(semantic), batch.groups)
        self._update("discriminator", loss, self.d2)
        return loss.detach()

    def generator_step(self, batch: GenderedBatch, temperature: float) -> torch.Tensor:
        """Lines 9 to 13: G and D1 are updated on L = L_MLE + k1' L_D1 + k2' L_D2; D2 is at rest. Gives L.

        `k0` weighs L_MLE, as algorithm 1's list of hyper-parameters has it.
        """
        features = features_of(self.det, sample_responses(self.model, batch.dialogues, self.longest, temperature))
        self.d2.requires_grad_(False)
        loss = (
            self.settings.k0 * self._mle(batch.dialogues)
            + self.settings.k1 * cross_entropy(self.d1(features.unbiased), batch.groups)
            + self.settings.k2 * negative_entropy(self.d2(features.semantic))
        )
        self._update("generator", loss, self.model)
        self.d2.requires_grad_(True)
        return loss.detach()

    def teaching_step(self, batch: Batch) -> torch.Tensor:
        """Lines 16 to 18: G alone on L_MLE of neutral dialogues, as it was trained before."""
        loss = self._mle(batch)
        self._update("generator", loss, self.model)
        return loss.detach()

    def _mle(self, batch: Batch) -> torch.Tensor:
        total, words = self.model(batch)
        return total / words

    def _update(self, optimiser: str, loss: torch.Tensor, clipped: nn.Module) -> None:
        self.optimisers[optimiser].zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(clipped.parameters(), self.settings.clipping)
        self.optimisers[optimiser].step()


def debias(task: Task) -> dict[str, Any]:
    """Trains the base on by algorithm 1 until it passes the fairness test on held-out pairs, or passes no more of it.

    The model kept is that of the test that was passed, or else of the one with the least mean |Z| over the measures.

    Returns:
        Figures: iterations, which test the model kept had passed how much of, and its validation perplexity.

    Raises:
        FairnessError: no dialogues to train on, no pairs to test, or a loss that is not a number.
    """
    settings = DebiasedChat.model_validate(task.model.settings or {}).adversarial
    assert task.model.seq2seq is not None
    longest = task.model.seq2seq.longest
    model, vocabulary = seq2seq.load(task.model, task.base)
    torch.manual_seed(task.seed)
    training = AdversarialTraining(settings, model, disentanglement.load(task), longest)
    data = _Dialogues(task, vocabulary, longest, model.output.weight.device)
    test = FairnessTest(task, settings, vocabulary, longest)
    checkpoint = task.folder / _CHECKPOINT
    found = load_training(checkpoint, training.modules, training.optimisers)
    best, state = (found[0]["best"], _State(**found[1])) if found else (weights_of(model), _State())
    due = Due(task.checkpoint_seconds)
    while not state.ended(settings.patience, test.measures):
        _iterate(training, data, state.iteration, task)
        state.iteration += 1
        tested = state.iteration % settings.every == 0
        if tested and state.add(test.take(model), test.measures):
            best = weights_of(model)
        if due() or tested:
            save_training(checkpoint, training.modules, training.optimisers, {"best": best}, vars(state))
        most = (len(state.results) - state.since_more + settings.patience) * settings.every
        report(task.progress, state.iteration, most, f"{state.passes} of {test.measures} measures pass")
    model.load_state_dict(best)
    vocabulary.save(task.folder / VOCABULARY)
    valid = EncodedDialogues.of_texts(*turns_of(task.dialogues, "valid"), vocabulary, longest)
    figures = {
        "iterations": state.iteration,
        "kept_iteration": (state.best + 1) * settings.every,
        "measures_passed": state.results[state.best][0],
        "mean_absolute_z": state.results[state.best][1],
        "measures_tested": test.measures,
        "passes_by_test": [passes for passes, _ in state.results],
        "held_out_pairs": test.pairs.num_rows,
        "validation_perplexity": perplexity(model, valid),
    }
    with replacing(task.folder / Trainer.WEIGHTS) as path:
        save_file(best, path)
    checkpoint.unlink(missing_ok=True)
    return figures


@dataclass
class _State:
    """How far training is: the next iteration, and what every test found (measures passed, mean |Z|)."""

    iteration: int = 0
    results: list[tuple[int, float]] = field(default_factory=list)
    best: int = 0

    @property
    def passes(self) -> int:
        """The most measures that a test passed."""
        return max((passes for passes, _ in self.results), default=0)

    @property
    def since_more(self) -> int:
        """Tests since the first that passed so many."""
        return len(self.results) - 1 - [passes for passes, _ in self.results].index(self.passes) if self.results else 0

    def add(self, result: tuple[int, float], measures: int) -> bool:
        """Notes a test of so many measures; says whether it is the best: passed whole, or with the least mean |Z|."""
        self.results.append(result)
        self.best = min(range(len(self.results)), key=lambda i: (self.results[i][0] < measures, self.results[i][1]))
        return self.best == len(self.results) - 1

    def ended(self, patience: int, measures: int) -> bool:
        """Whether the fairness test is passed, or `patience` tests have brought no more passes."""
        return bool(self.results) and (self.passes == measures or self.since_more >= patience)


def _iterate(training: AdversarialTraining, data: "_Dialogues", iteration: int, task: Task) -> None:
    """One turn of algorithm 1's outer loop."""
    s = training.settings
    temperature = temperature_at(iteration, s)
    random = np.random.default_rng([task.seed, iteration])
    steps = [("D2", training.discriminator_step)] * s.d_steps + [("G", training.generator_step)] * s.g_steps
    for name, step in steps:
        loss = step(data.gendered(random, s.batch), temperature)
        check_finite(loss, f"loss of {name}", f"iteration {iteration + 1}", task.folder / _CHECKPOINT)
    for _ in range(s.g_teach_steps):
        loss = training.teaching_step(data.neutral(random, s.batch))
        check_finite(loss, "loss of G (teaching)", f"iteration {iteration + 1}", task.folder / _CHECKPOINT)


def temperature_at(iteration: int, settings: Adversarial) -> float:
    """The temperature of Gumbel-softmax: divided by `cooling` every `every` iterations until below `coldest`."""
    temperature = settings.temperature
    for _ in range(iteration // settings.every):
        if temperature < settings.coldest:
            break
        temperature /= settings.cooling
    return temperature


class _Dialogues:
    """The training dialogues, tokenised once: D(g), whose messages name one group only, and D(n), which name none."""

    def __init__(self, task: Task, vocabulary: Vocabulary, longest: int, device: torch.device) -> None:
        contexts, responses = turns_of(task.dialogues, "train")
        swapper = Swapper(task.dimension, pronouns=task.pairs.pronouns)
        sides = [side for _, side in swapper.find_all(pa.array(contexts, pa.string()))]
        self._encoded = EncodedDialogues.of_texts(contexts, responses, vocabulary, longest)
        self._device = device
        self._groups = np.array([{"a": 0, "b": 1}.get(side or "", -1) for side in sides])
        self._gendered = np.flatnonzero(self._groups >= 0)
        self._neutral = np.array([i for i, side in enumerate(sides) if side is None], dtype=np.int64)
        if not len(self._gendered) or not len(self._neutral):
            raise FairnessError(
                f"Debiased-Chat needs dialogues whose messages name one group ({len(self._gendered):,} found) and such "
                f"as name none ({len(self._neutral):,} found)"
            )

    def gendered(self, random: np.random.Generator, size: int) -> GenderedBatch:
        """A batch drawn from D(g)."""
        rows = random.choice(self._gendered, size)
        groups = torch.from_numpy(self._groups[rows]).to(self._device)
        return GenderedBatch(self._encoded.batch(rows, self._device), groups)

    def neutral(self, random: np.random.Generator, size: int) -> Batch:
        """A batch drawn from D(n)."""
        return self._encoded.batch(random.choice(self._neutral, size), self._device)


class FairnessTest:
    """The stopping rule: the paper's Z tests on the answers to held-out pairs.

    The pairs come from the `valid` split, so that neither the audit nor the training sees them.

    Args:
        task: Whose dialogues, lists and classifiers.
        settings: Pairs and level.
        vocabulary: Of the model.
        longest: Words of a response at most.
    """

    def __init__(self, task: Task, settings: Adversarial, vocabulary: Vocabulary, longest: int) -> None:
        self._scorer = BiasScorer(task.dimension, task.measures)
        self._vocabulary, self._longest, self._alpha = vocabulary, longest, settings.alpha
        is_valid = pc.equal(task.dialogues["split"], "valid")
        split = pc.if_else(is_valid, "audit", "other")  # `find_contexts` leaves out what another split holds as well
        held_out = task.dialogues.set_column(task.dialogues.schema.get_field_index("split"), "split", split)
        pronouns = task.pairs.pronouns
        contexts = find_contexts(held_out, Swapper(task.dimension, pronouns=pronouns)).table
        self.pairs = make_pairs(
            contexts,
            task.dimension,
            maximum=settings.pairs,
            seed=task.profile_seed,
            pronouns=pronouns,
            articles=task.pairs.articles,
        ).table
        if self.pairs.num_rows < _LEAST_PAIRS:
            raise FairnessError(
                f"the fairness test of Debiased-Chat has {self.pairs.num_rows} held-out pairs; it needs {_LEAST_PAIRS} "
                "or more: enlarge splits.valid"
            )

    @property
    def measures(self) -> int:
        """How many measures are tested: offence, positive, negative, and each attribute list."""
        return len(self._scorer.measures)

    def take(self, model: Seq2Seq) -> tuple[int, float]:
        """How many measures do not differ between the sides (p >= alpha), and the mean |Z| of all."""
        model.eval()
        sides = [
            self._scorer(
                pa.array(seq2seq.answers(model, self._vocabulary, self.pairs[name].to_pylist(), self._longest))
            )
            for name in ("context_a", "context_b")
        ]
        model.train()
        found = [z_test(sides[0][name], sides[1][name]) for name in sides[0]]
        return sum(z.p >= self._alpha for z in found), float(np.mean([min(abs(z.statistic), 100.0) for z in found]))
