"""The disentanglement model of Debiased-Chat: Liu 2022, section 3.2.2.

An autoencoder whose code is two vectors, f = [f(u) : f(s)]: the unbiased features of an utterance, from which its group
can be told, and its semantic features, from which it cannot. Four discriminators enforce this.

Two losses are printed with the wrong sign: minimising the entropy would make a distribution certain, and the thesis
means the contrary ("makes p(s) close to an even distribution"). As in the authors' code, `sum p log p` is
minimised.
"""

import math
from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import cross_entropy, linear, log_softmax

from fairness_pipeline.debiasing.dialogue.gendered_utterances import (
    NEUTRAL,
    Utterances,
    check_enough,
    encode,
    neutral_utterances,
    unbiased_utterances,
)
from fairness_pipeline.debiasing.dialogue.probes import (
    content_accuracy,
    group_accuracy,
    nonlinear_accuracy,
    project,
    split_balanced,
    trained_accuracy,
)
from fairness_pipeline.debiasing.dialogue.registry import PROJECTION, Task
from fairness_pipeline.debiasing.dialogue.settings import DebiasedChat, Disentanglement
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.parquet import write_parquet
from fairness_pipeline.foundation.progress import report
from fairness_pipeline.models.batching import pad, shuffled
from fairness_pipeline.models.checkpoints import Due, load_training, load_weights, save_training
from fairness_pipeline.models.devices import to_device
from fairness_pipeline.models.recurrent import last_states
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN, VOCABULARY, Vocabulary
from fairness_pipeline.models.watching import Watch

UTTERANCES = "utterances.parquet"
_WEIGHTS = "disentanglement.safetensors"
_CHECKPOINT = "training.safetensors"
_PROBES = {"accuracy": group_accuracy, "trained_probe": trained_accuracy, "nonlinear_probe": nonlinear_accuracy}
_ENCODED = 512
_DECODED = 64


class Features(NamedTuple):
    """f(u) (batch, unbiased) and f(s) (batch, semantic)."""

    unbiased: torch.Tensor
    semantic: torch.Tensor


class DisentanglementModel(nn.Module):
    """DET: a GRU reads an utterance into h, linear layers give f(u) and f(s), which start a GRU that writes it again.

    Args:
        sizes: Widths, and the decoder's shortlist.
        words: How many words it distinguishes: the most frequent of the dialogue model's, with the same numbers.
    """

    def __init__(self, sizes: Disentanglement, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, sizes.embedding, padding_idx=PAD)
        self.encoder = nn.GRU(sizes.embedding, sizes.hidden, batch_first=True)
        self.to_unbiased = nn.Linear(sizes.hidden, sizes.unbiased)
        self.to_semantic = nn.Linear(sizes.hidden, sizes.semantic)
        self.decoder = nn.GRU(sizes.embedding, sizes.hidden, batch_first=True)
        self.shortlist = sizes.shortlist if sizes.shortlist and sizes.shortlist < words else None
        self.output = nn.Linear(sizes.hidden, words + (self.shortlist is not None))

    def features(self, embedded: torch.Tensor, lengths: torch.Tensor) -> Features:
        """f(u) and f(s) of utterances given as word vectors (batch, words, embedding) of these lengths (on the CPU)."""
        (hidden,) = last_states(self.encoder, embedded, lengths)
        return Features(self.to_unbiased(hidden[0]), self.to_semantic(hidden[0]))

    def embed(self, words: torch.Tensor) -> torch.Tensor:
        """Vectors of words given as weights over the dialogue model's whole vocabulary (..., vocabulary).

        Words that it does not distinguish are unknown.
        """
        known, weight = self.embedding.num_embeddings, self.embedding.weight
        return words[..., :known] @ weight + words[..., known:].sum(dim=-1, keepdim=True) * weight[UNKNOWN]

    def read(self, utterances: torch.Tensor) -> tuple[Features, torch.Tensor]:
        """Features of `utterances` (batch, words), and L_rec, nats a word of writing them again, ends included."""
        started = self.embedding(torch.cat([utterances.new_full((len(utterances), 1), START), utterances], dim=1))
        features = self.features(started[:, 1:], (utterances != PAD).sum(dim=1).cpu())
        targets = torch.cat([utterances, utterances.new_full((len(utterances), 1), PAD)], dim=1)
        targets[torch.arange(len(targets)), (utterances != PAD).sum(dim=1)] = END
        hidden, _ = self.decoder(started, torch.cat(features, dim=1).unsqueeze(0).contiguous())
        present = targets != PAD
        return features, self._writing_loss(hidden[present], targets[present])

    def _writing_loss(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean nats of writing `targets` (words) from the decoder's states (words, hidden).

        With a shortlist p(word) of a rare word is p(a rare word) p(word | a rare word): two softmaxes, the second only
        where it is needed (section 3 of Grave et al. 2017, with one cluster as wide as the rest).
        """
        if self.shortlist is None:
            return cross_entropy(self.output(hidden), targets)
        first, rare = self.shortlist + 1, targets >= self.shortlist
        weight, bias = self.output.weight, self.output.bias
        loss = cross_entropy(
            linear(hidden, weight[:first], bias[:first]), targets.clamp(max=self.shortlist), reduction="sum"
        )
        among_rare = linear(hidden[rare], weight[first:], bias[first:])
        loss = loss + cross_entropy(among_rare, targets[rare] - self.shortlist, reduction="sum")
        return loss / len(targets)


class Discriminators(nn.Module):
    """D1 to D4 of the disentanglement model: the group from f(u) and f(s), the words from both.

    One layer each; D2 may have more.
    """

    def __init__(self, sizes: Disentanglement, words: int) -> None:
        super().__init__()
        self.d1 = nn.Linear(sizes.unbiased, 2)
        self.d2 = layered(sizes.semantic, sizes.d2_hidden, 2, sizes.d2_layers)
        self.d3 = nn.Linear(sizes.unbiased, words)
        self.d4 = nn.Linear(sizes.semantic, words)


def layered(features: int, hidden: int, scores: int, layers: int) -> nn.Sequential:
    """`layers` linear layers, with ReLU between them, from feature vectors to scores."""
    widths = [features, *[hidden] * (layers - 1), scores]
    modules: list[nn.Module] = [nn.Linear(a, b) for a, b in pairwise(widths)]
    return nn.Sequential(*[module for layer in modules[:-1] for module in (layer, nn.ReLU())], modules[-1])


def hiding(model: DisentanglementModel, words: Sequence[int]) -> DisentanglementModel:
    """A copy of a frozen autoencoder that reads these words as unknown ones."""
    copied = deepcopy(model)
    with torch.no_grad():
        copied.embedding.weight[[word for word in words if word < copied.embedding.num_embeddings]] = (
            copied.embedding.weight[UNKNOWN].clone()
        )
    return copied


def negative_entropy(scores: torch.Tensor) -> torch.Tensor:
    """sum p log p of softmax(`scores`) (batch, classes), mean over the batch: least (-log classes) where p is even.

    L_D2 (equation 3.2) and L_D3 of section 3.2.2.2, with the sign that the text means.
    """
    log_p = log_softmax(scores, dim=1)
    return (log_p.exp() * log_p).sum(dim=1).mean()


class Bags(NamedTuple):
    """B of utterances, sparse: words (utterances, most) and each one's share of the utterance; filled up with 0."""

    words: torch.Tensor
    shares: torch.Tensor

    @classmethod
    def of(cls, counted: Sequence[np.ndarray], device: torch.device) -> "Bags":
        """Builds bags from the counted words of each utterance, which may be none."""
        words = np.zeros((len(counted), max(1, *map(len, counted))), dtype=np.int64)
        shares = np.zeros(words.shape, dtype=np.float32)
        for row, numbers in enumerate(counted):
            words[row, : len(numbers)] = numbers
            shares[row, : len(numbers)] = 1 / max(len(numbers), 1)
        return cls(torch.from_numpy(words).to(device), torch.from_numpy(shares).to(device))


def bag_of_words_loss(scores: torch.Tensor, bags: Bags) -> torch.Tensor:
    """L_D4 (section 3.2.2.2): -sum B log softmax(`scores`) (batch, words), mean over the batch."""
    named = (scores.gather(1, bags.words) * bags.shares).sum(dim=1)
    return (bags.shares.sum(dim=1) * scores.logsumexp(dim=1) - named).mean()


def train(task: Task) -> dict[str, Any]:
    """Builds the corpus, trains the autoencoder, and measures how well each of its two vectors predicts the group.

    Returns:
        Figures: utterances of each group, steps, the accuracies of table 3.2 (by a strict probe, by one as the thesis
        describes it, and by one of three layers), that of the content words alone, and the test's reconstruction loss.

    Raises:
        FairnessError: too few unbiased utterances, or a loss that is not a number.
    """
    settings = DebiasedChat.model_validate(task.model.settings or {}).disentanglement
    vocabulary = Vocabulary.load(task.base / VOCABULARY)
    words = _word_count(settings, vocabulary)
    all_unbiased = unbiased_utterances(task)
    visible, utterances = encode(all_unbiased, vocabulary, words, task)
    corpus = all_unbiased.take(pa.array(visible))
    check_enough(corpus, all_unbiased, task)
    with replacing(task.folder / UTTERANCES) as path:
        write_parquet(corpus, path)
    test, rest = split_balanced(corpus, settings.held_out, task.seed)
    fitted = utterances.select(rest)
    if settings.neutral:
        neutral = neutral_utterances(task, round(settings.neutral * len(rest)))
        fitted = fitted.extended(encode(neutral, vocabulary, words, task)[1])
    model = _fit(settings, fitted, words, task)
    features = _features(model, utterances.turns)
    with replacing(task.folder / PROJECTION) as path:
        write_parquet(project(features._asdict(), utterances.groups, test, task.seed), path)
    counts = {row["values"]: row["counts"] for row in pc.value_counts(corpus["side"]).to_pylist()}
    return {
        "utterances_a": counts.get("a", 0),
        "utterances_b": counts.get("b", 0),
        "without_a_visible_word": all_unbiased.num_rows - corpus.num_rows,
        "test_utterances": len(test),
        "steps": _steps(settings, len(fitted.turns)),
        **{
            f"{name}_{kind}": probe(vectors, utterances.groups, rest, test, task.seed)
            for name, probe in _PROBES.items()
            for kind, vectors in features._asdict().items()
        },
        "accuracy_content": content_accuracy(utterances, words, rest, test, task.seed),
        "reconstruction_loss": _reconstruction_loss(model, utterances.select(test)),
    }


def load(task: Task) -> DisentanglementModel:
    """The trained autoencoder, frozen, on the CPU."""
    assert task.disentanglement is not None
    settings = DebiasedChat.model_validate(task.model.settings or {}).disentanglement
    model = DisentanglementModel(settings, _word_count(settings, Vocabulary.load(task.base / VOCABULARY)))
    model.load_state_dict(load_weights(task.disentanglement / _WEIGHTS))
    return model.requires_grad_(False)


def training_step(
    model: DisentanglementModel,
    discriminators: Discriminators,
    settings: Disentanglement,
    utterances: torch.Tensor,
    groups: torch.Tensor,
    bags: Bags,
    adversaries: torch.optim.Optimizer,
    autoencoder: torch.optim.Optimizer,
) -> torch.Tensor:
    """Takes the steps of one batch (section 3.2.2.3); returns L(det).

    First D2 and D3 learn to tell group and words from the features that should hide them, with the autoencoder frozen.
    Then the autoencoder, D1 and D4 are updated on L(det) = L_rec + k1 L_D1 + k2 L_D2 + k3 L_D3 + k4 L_D4, with D2 and
    D3 frozen.
    """
    d = discriminators
    features, reconstruction_loss = model.read(utterances)
    f_u, f_s = (vector.detach() for vector in features)
    adversaries.zero_grad(set_to_none=True)
    (_group_loss(d.d2(f_s), groups) + bag_of_words_loss(d.d3(f_u), bags)).backward()
    adversaries.step()
    for adversary in (d.d2, d.d3):
        adversary.requires_grad_(False)
    loss = (
        reconstruction_loss
        + settings.k1 * _group_loss(d.d1(features.unbiased), groups)  # equation 3.1
        + settings.k2 * negative_entropy(d.d2(features.semantic))  # equation 3.2
        + settings.k3 * negative_entropy(d.d3(features.unbiased))
        + settings.k4 * bag_of_words_loss(d.d4(features.semantic), bags)
    )
    autoencoder.zero_grad(set_to_none=True)
    loss.backward()
    autoencoder.step()
    for adversary in (d.d2, d.d3):
        adversary.requires_grad_(True)
    return loss.detach()


def _group_loss(scores: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of the groups, over utterances that name one."""
    total = cross_entropy(scores, groups, ignore_index=NEUTRAL, reduction="sum")
    return total / (groups != NEUTRAL).sum().clamp(min=1)


def optimisers_of(
    model: DisentanglementModel, discriminators: Discriminators, settings: Disentanglement
) -> dict[str, torch.optim.Optimizer]:
    """Adam for the adversaries (D2 and D3), and for the autoencoder with D1 and D4."""
    d = discriminators
    adversaries = [*d.d2.parameters(), *d.d3.parameters()]
    others = [*model.parameters(), *d.d1.parameters(), *d.d4.parameters()]
    return {
        "adversaries": torch.optim.Adam(adversaries, settings.adversary_learning_rate, fused=True),
        "autoencoder": torch.optim.Adam(others, settings.learning_rate, fused=True),
    }


def _fit(settings: Disentanglement, utterances: Utterances, words: int, task: Task) -> DisentanglementModel:
    """Trains the autoencoder in the task's folder, resuming after a kill."""
    torch.manual_seed(task.seed)
    model = to_device(DisentanglementModel(settings, words), task.model.device)
    device = next(model.parameters()).device
    if (task.folder / _WEIGHTS).exists():
        (task.folder / _CHECKPOINT).unlink(missing_ok=True)
        model.load_state_dict(load_weights(task.folder / _WEIGHTS))
        return model
    discriminators = Discriminators(settings, words).to(device)
    optimisers = optimisers_of(model, discriminators, settings)
    modules = {"model": model, "discriminators": discriminators}
    checkpoint = task.folder / _CHECKPOINT
    restored = load_training(checkpoint, modules, optimisers)
    first = restored[1]["steps"] if restored else 0
    due, watch = Due(task.checkpoint_seconds), Watch("loss of the disentanglement model", checkpoint)
    batches: list[np.ndarray] = []
    steps, steps_per_epoch = _steps(settings, len(utterances.turns)), _steps_per_epoch(settings, len(utterances.turns))
    for step in range(first, steps):
        epoch, batch_number = divmod(step, steps_per_epoch)
        if not batches or batch_number == 0:
            lengths, size = np.array([len(turn) for turn in utterances.turns]), settings.batch
            batches = shuffled(lengths, np.ones_like(lengths), size, 100 * size, task.seed + epoch)
        rows = batches[batch_number]
        optimisers["autoencoder"].param_groups[0]["lr"] = settings.learning_rate * (1 - step / steps)
        loss = training_step(
            model,
            discriminators,
            settings,
            pad([utterances.turns[i] for i in rows], device),
            torch.from_numpy(utterances.groups[rows]).to(device),
            Bags.of([utterances.counted[i] for i in rows], device),
            **optimisers,
        )
        where = f"epoch {epoch + 1}, batch {batch_number + 1}"
        summed, count = watch.add(loss, where)
        if count:
            report(task.progress, step + 1, steps, f"loss {summed / count:.2f}")
        if due():
            watch.collect(where)
            save_training(checkpoint, modules, optimisers, {}, {"steps": step + 1})
    watch.collect("the last steps")
    with replacing(task.folder / _WEIGHTS) as path:
        save_file(model.state_dict(), path)
    checkpoint.unlink(missing_ok=True)
    return model


def _steps_per_epoch(settings: Disentanglement, utterances: int) -> int:
    return -(-utterances // settings.batch)


def _steps(settings: Disentanglement, utterances: int) -> int:
    """Whole epochs: as many as declared, or as make up the least number of steps."""
    per_epoch = _steps_per_epoch(settings, utterances)
    return per_epoch * max(settings.epochs, math.ceil(settings.least_steps / per_epoch))


def _word_count(settings: Disentanglement, vocabulary: Vocabulary) -> int:
    return min(settings.vocabulary or len(vocabulary), len(vocabulary))


@torch.inference_mode()
def _features(model: DisentanglementModel, turns: list[np.ndarray]) -> Features:
    """Both vectors of every utterance, on the CPU."""
    device = next(model.parameters()).device
    parts = []
    for start in range(0, len(turns), _ENCODED):
        batch = pad(turns[start : start + _ENCODED], device)
        parts.append(model.features(model.embedding(batch), (batch != PAD).sum(dim=1).cpu()))
    return Features(*(torch.cat(vectors).cpu() for vectors in zip(*parts, strict=True)))


@torch.inference_mode()
def _reconstruction_loss(model: DisentanglementModel, utterances: Utterances) -> float:
    device = next(model.parameters()).device
    total, words = 0.0, 0
    for start in range(0, len(utterances.turns), _DECODED):
        batch = pad(utterances.turns[start : start + _DECODED], device)
        written = int((batch != PAD).sum()) + len(batch)  # with the ends
        total += model.read(batch)[1].item() * written
        words += written
    return round(total / words, 6)
