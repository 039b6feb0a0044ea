"""The disentanglement model of Debiased-Chat: Liu 2022, section 3.2.2.

An autoencoder whose code is two vectors, f = [f(u) : f(s)]: the unbiased features of an utterance, from which its group
can be told, and its semantic features, from which it cannot. Four discriminators see to that.

Two losses are printed with the sign of an erratum: minimising the entropy would make a distribution certain, and the
thesis means the contrary ("makes p(s) close to an even distribution"). As in the authors' code, `sum p log p` is
minimised.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax
from torch.nn.utils.rnn import pack_padded_sequence

from fairness_pipeline.debiasing.biased_text import BiasScorer, unbiased
from fairness_pipeline.debiasing.registry import PROJECTION, Task
from fairness_pipeline.debiasing.settings import DebiasedChat, Disentanglement
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing
from fairness_pipeline.lexicons.stop_words import stop_words
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.models.batching import pad
from fairness_pipeline.models.checkpoints import Due, check_finite, load_training, load_weights, save_training
from fairness_pipeline.models.devices import device_of
from fairness_pipeline.models.vocabulary import END, PAD, START, VOCABULARY, Vocabulary
from fairness_pipeline.progress import report

UTTERANCES = "utterances.parquet"
_WEIGHTS = "disentanglement.safetensors"
_CHECKPOINT = "training.safetensors"
_ENCODED = 512
_DECODED = 64
_FITTED = 20_000
_SHOWN = 400
_LEAST = 10


class Features(NamedTuple):
    """f(u) (batch, unbiased) and f(s) (batch, semantic)."""

    unbiased: torch.Tensor
    semantic: torch.Tensor


class DisentanglementModel(nn.Module):
    """DET: a GRU reads an utterance into h, linear layers give f(u) and f(s), which start a GRU that writes it again.

    Args:
        sizes: Widths.
        words: Size of the vocabulary, which is the dialogue model's.
    """

    def __init__(self, sizes: Disentanglement, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, sizes.embedding, padding_idx=PAD)
        self.encoder = nn.GRU(sizes.embedding, sizes.hidden, batch_first=True)
        self.to_unbiased = nn.Linear(sizes.hidden, sizes.unbiased)
        self.to_semantic = nn.Linear(sizes.hidden, sizes.semantic)
        self.decoder = nn.GRU(sizes.embedding, sizes.hidden, batch_first=True)
        self.output = nn.Linear(sizes.hidden, words)

    def features(self, embedded: torch.Tensor, lengths: torch.Tensor) -> Features:
        """f(u) and f(s) of utterances given as word vectors (batch, words, embedding) of these lengths (on the CPU)."""
        _, hidden = self.encoder(pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False))
        return Features(self.to_unbiased(hidden[0]), self.to_semantic(hidden[0]))

    def reconstruction_loss(self, features: Features, utterances: torch.Tensor) -> torch.Tensor:
        """L_rec: the mean cross-entropy (nats a word) of writing `utterances` (batch, words) again, ends included."""
        marks = utterances.new_full((len(utterances), 1), START)
        inputs = torch.cat([marks, utterances], dim=1)
        targets = torch.cat([utterances, utterances.new_full((len(utterances), 1), PAD)], dim=1)
        targets[torch.arange(len(targets)), (utterances != PAD).sum(dim=1)] = END
        hidden, _ = self.decoder(self.embedding(inputs), torch.cat(features, dim=1).unsqueeze(0).contiguous())
        present = targets != PAD
        return cross_entropy(self.output(hidden[present]), targets[present])


class Discriminators(nn.Module):
    """D1 to D4 of the disentanglement model, one layer each: the group from f(u) and f(s), the words from both."""

    def __init__(self, sizes: Disentanglement, words: int) -> None:
        super().__init__()
        self.d1 = nn.Linear(sizes.unbiased, 2)
        self.d2 = nn.Linear(sizes.semantic, 2)
        self.d3 = nn.Linear(sizes.unbiased, words)
        self.d4 = nn.Linear(sizes.semantic, words)


def negative_entropy(scores: torch.Tensor) -> torch.Tensor:
    """sum p log p of softmax(`scores`) (batch, classes), mean over the batch: least (-log classes) where p is even.

    L_D2 (equation 3.2) and L_D3 of section 3.2.2.2, with the sign that the text means.
    """
    log_p = log_softmax(scores, dim=1)
    return (log_p.exp() * log_p).sum(dim=1).mean()


def bag_of_words_loss(scores: torch.Tensor, bags: torch.Tensor) -> torch.Tensor:
    """L_D4 (section 3.2.2.2): -sum B log p, mean over the batch; `bags` (batch, words) are shares of an utterance."""
    return -(bags * log_softmax(scores, dim=1)).sum(dim=1).mean()


class Utterances(NamedTuple):
    """Utterances of one group each: word numbers, groups (0 for a, 1 for b), and the words that count for a bag."""

    turns: list[np.ndarray]
    groups: np.ndarray
    counted: np.ndarray

    def select(self, rows: np.ndarray) -> "Utterances":
        """These rows alone."""
        return Utterances([self.turns[i] for i in rows], self.groups[rows], self.counted)

    def bags(self, rows: np.ndarray) -> torch.Tensor:
        """B (rows, words): each counted word's share among the utterance's counted words; 0 where it has none."""
        bags = np.zeros((len(rows), len(self.counted)), dtype=np.float32)
        for place, row in enumerate(rows):
            words = self.turns[row]
            np.add.at(bags[place], words[self.counted[words]], 1.0)
        return torch.from_numpy(bags / np.maximum(bags.sum(axis=1, keepdims=True), 1.0))


def train(task: Task) -> dict[str, Any]:
    """Builds the corpus, trains the autoencoder, and tells how well each of its two vectors gives the group away.

    Returns:
        Figures: utterances of each group, the accuracies of table 3.2, and the test's reconstruction loss.

    Raises:
        FairnessError: too few unbiased utterances, or a loss that is not a number.
    """
    settings = DebiasedChat.model_validate(task.model.settings or {}).disentanglement
    vocabulary = Vocabulary.load(task.base / VOCABULARY)
    corpus = unbiased_utterances(task)
    with replacing(task.folder / UTTERANCES) as path:
        pq.write_table(corpus, path)
    utterances = _encode(corpus, vocabulary, task)
    test, rest = split_balanced(corpus, settings.held_out, task.seed)
    model = _fit(settings, utterances.select(rest), len(vocabulary), task)
    features = _features(model, utterances.turns)
    with replacing(task.folder / PROJECTION) as path:
        pq.write_table(project(features, utterances.groups, test, task.seed), path)
    counts = {row["values"]: row["counts"] for row in pc.value_counts(corpus["side"]).to_pylist()}
    return {
        "utterances_a": counts.get("a", 0),
        "utterances_b": counts.get("b", 0),
        "test_utterances": len(test),
        "accuracy_unbiased": group_accuracy(features.unbiased, utterances.groups, rest, test, task.seed),
        "accuracy_semantic": group_accuracy(features.semantic, utterances.groups, rest, test, task.seed),
        "reconstruction_loss": _reconstruction_loss(model, utterances.select(test)),
    }


def unbiased_utterances(task: Task) -> pa.Table:
    """The unbiased gendered utterance corpus (section 3.2.2.1), for any dimension.

    Every context and response of the training dialogues that names one group only, and that the measures of study 1
    take for neither offensive, nor clearly positive or negative, and that holds no attribute word; as often as it
    occurs.

    Returns:
        Columns `utterance` and `side` (`a` or `b`).

    Raises:
        FairnessError: a group has too few.
    """
    train = task.dialogues.filter(pc.equal(task.dialogues["split"], "train"))
    texts = pa.chunked_array([*train["context"].chunks, *train["response"].chunks], pa.string())
    swapper = Swapper(task.dimension, pronouns=task.pairs.pronouns)
    distinct = texts.unique()
    likely = distinct.filter(pc.match_substring_regex(distinct, swapper.matcher.prefilter()))
    sides = pa.array([side for _, side in swapper.find_all(likely)], pa.string())
    kept = unbiased(
        likely.filter(pc.is_in(sides, pa.array(["a", "b"]))),
        BiasScorer(task.dimension, task.measures),
        task.progress,
    )
    known = sides.take(pc.index_in(kept, likely))
    places = pc.index_in(texts, kept).combine_chunks().drop_null()
    corpus = pa.table({"utterance": kept.take(places), "side": known.take(places)})
    for side in ("a", "b"):
        found = pc.sum(pc.equal(known, side)).as_py() or 0
        if found < _LEAST:
            raise FairnessError(
                f"the training dialogues hold {found} different unbiased utterances of group {side} "
                f"({getattr(task.dimension.groups, side)}); the disentanglement model needs {_LEAST} or more a group"
            )
    return corpus


def split_balanced(utterances: pa.Table, held_out: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the test and the rest, which has no utterance of the test's.

    The test has as many utterances of each group, each once: at most `held_out` in all, and a fifth of the smaller
    group's distinct ones.
    """
    random = np.random.default_rng(seed)
    codes = utterances["utterance"].combine_chunks().dictionary_encode().indices.to_numpy()
    distinct, first = np.unique(codes, return_index=True)
    of_b = pc.equal(utterances["side"], "b").to_numpy()[first]
    each = min(held_out // 2, max(1, min(int(of_b.sum()), int((~of_b).sum())) // 5))
    drawn = np.concatenate([random.permutation(np.flatnonzero(of_b == side))[:each] for side in (False, True)])
    return np.sort(first[drawn]), np.flatnonzero(~np.isin(codes, distinct[drawn]))


def group_accuracy(features: torch.Tensor, groups: np.ndarray, rest: np.ndarray, test: np.ndarray, seed: int) -> float:
    """Share of the test utterances whose group a fresh linear classifier tells from `features` (table 3.2).

    It has the form of D1 and D2 (one layer and softmax), and is fitted on as many utterances of each group (at most
    20,000 in all) that are not in the test.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    random = np.random.default_rng(seed)
    sides = [random.permutation(rest[groups[rest] == side]) for side in (0, 1)]
    each = min(_FITTED // 2, *map(len, sides))
    fitted = np.concatenate([side[:each] for side in sides])
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    vectors = features.numpy()
    classifier.fit(vectors[fitted], groups[fitted])
    return float(classifier.score(vectors[test], groups[test]))


def project(features: Features, groups: np.ndarray, test: np.ndarray, seed: int) -> pa.Table:
    """Figure 3.2: both vectors of at most 400 test utterances a group, on a plane by t-SNE.

    Returns:
        Columns `features` (`unbiased` or `semantic`), `side`, `x`, `y`.
    """
    from sklearn.manifold import TSNE

    shown = np.concatenate([test[groups[test] == side][:_SHOWN] for side in (0, 1)])
    tables = []
    for name, vectors in features._asdict().items():
        perplexity = min(30.0, (len(shown) - 1) / 3)
        places = TSNE(perplexity=perplexity, init="pca", random_state=seed % 2**31).fit_transform(
            vectors.numpy()[shown]
        )
        sides = pa.array(np.where(groups[shown] == 0, "a", "b").tolist())
        columns = {"features": pa.repeat(name, len(shown)), "side": sides, "x": places[:, 0], "y": places[:, 1]}
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def load(task: Task) -> DisentanglementModel:
    """The trained autoencoder, frozen, on the dialogue model's device."""
    assert task.disentanglement is not None
    settings = DebiasedChat.model_validate(task.model.settings or {}).disentanglement
    words = len(Vocabulary.load(task.base / VOCABULARY))
    model = DisentanglementModel(settings, words)
    model.load_state_dict(load_weights(task.disentanglement / _WEIGHTS))
    return model.to(device_of(task.model)).requires_grad_(False)


def training_step(
    model: DisentanglementModel,
    discriminators: Discriminators,
    settings: Disentanglement,
    utterances: torch.Tensor,
    groups: torch.Tensor,
    bags: torch.Tensor,
    adversaries: torch.optim.Optimizer,
    autoencoder: torch.optim.Optimizer,
) -> torch.Tensor:
    """One batch of section 3.2.2.3; gives L(det).

    First D2 and D3 learn to tell group and words from what they must not be told from, with the autoencoder at rest.
    Then the autoencoder, D1 and D4 are updated on L(det) = L_rec + k1 L_D1 + k2 L_D2 + k3 L_D3 + k4 L_D4, with D2 and
    D3 at rest.
    """
    d = discriminators
    lengths = (utterances != PAD).sum(dim=1).cpu()
    features = model.features(model.embedding(utterances), lengths)
    f_u, f_s = (vector.detach() for vector in features)
    adversaries.zero_grad(set_to_none=True)
    (cross_entropy(d.d2(f_s), groups) + bag_of_words_loss(d.d3(f_u), bags)).backward()
    adversaries.step()
    for adversary in (d.d2, d.d3):
        adversary.requires_grad_(False)
    loss = (
        model.reconstruction_loss(features, utterances)
        + settings.k1 * cross_entropy(d.d1(features.unbiased), groups)  # equation 3.1
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


def optimisers_of(
    model: DisentanglementModel, discriminators: Discriminators, settings: Disentanglement
) -> dict[str, torch.optim.Optimizer]:
    """Adam for the adversaries (D2 and D3), and for the autoencoder with D1 and D4."""
    d = discriminators
    adversaries = [*d.d2.parameters(), *d.d3.parameters()]
    others = [*model.parameters(), *d.d1.parameters(), *d.d4.parameters()]
    return {
        "adversaries": torch.optim.Adam(adversaries, settings.adversary_learning_rate),
        "autoencoder": torch.optim.Adam(others, settings.learning_rate),
    }


def _fit(settings: Disentanglement, utterances: Utterances, words: int, task: Task) -> DisentanglementModel:
    """Trains the autoencoder in the task's folder, going on after a kill."""
    device = device_of(task.model)
    torch.manual_seed(task.seed)
    model = DisentanglementModel(settings, words).to(device)
    if (task.folder / _WEIGHTS).exists():
        (task.folder / _CHECKPOINT).unlink(missing_ok=True)
        model.load_state_dict(load_weights(task.folder / _WEIGHTS))
        return model
    discriminators = Discriminators(settings, words).to(device)
    optimisers = optimisers_of(model, discriminators, settings)
    modules = {"model": model, "discriminators": discriminators}
    checkpoint = task.folder / _CHECKPOINT
    found = load_training(checkpoint, modules, optimisers)
    first = found[1]["steps"] if found else 0
    due = Due(task.checkpoint_seconds)
    batches: list[np.ndarray] = []
    steps = settings.epochs * -(-len(utterances.turns) // settings.batch)
    for step in range(first, steps):
        epoch, place = divmod(step, steps // settings.epochs)
        if not batches or place == 0:
            batches = _batches(utterances.turns, settings.batch, task.seed + epoch)
        rows = batches[place]
        optimisers["autoencoder"].param_groups[0]["lr"] = settings.learning_rate * (1 - step / steps)
        loss = training_step(
            model,
            discriminators,
            settings,
            pad([utterances.turns[i] for i in rows], device),
            torch.from_numpy(utterances.groups[rows]).to(device),
            utterances.bags(rows).to(device),
            **optimisers,
        )
        where = f"epoch {epoch + 1}, batch {place + 1}"
        check_finite(loss, "loss of the disentanglement model", where, checkpoint)
        if due():
            save_training(checkpoint, modules, optimisers, {}, {"steps": step + 1})
        report(task.progress, step + 1, steps, f"loss {loss.item():.2f}")
    with replacing(task.folder / _WEIGHTS) as path:
        save_file(model.state_dict(), path)
    checkpoint.unlink(missing_ok=True)
    return model


def _batches(turns: list[np.ndarray], size: int, seed: int) -> list[np.ndarray]:
    """Rows in random order, batches of like length: padding is cheap within a hundred batches sorted together."""
    random = np.random.default_rng(seed)
    lengths = np.array([len(turn) for turn in turns])
    order = random.permutation(len(turns))
    batches = []
    for window in (order[start : start + 100 * size] for start in range(0, len(order), 100 * size)):
        ordered = window[np.argsort(lengths[window], kind="stable")]
        batches += [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return [batches[i] for i in random.permutation(len(batches))]


def _encode(corpus: pa.Table, vocabulary: Vocabulary, task: Task) -> Utterances:
    assert task.model.seq2seq is not None
    turns = vocabulary.turns(corpus["utterance"].to_pylist(), task.model.seq2seq.longest)
    groups = pc.equal(corpus["side"], "b").to_numpy().astype(np.int64)
    of_groups = {word for pair in task.dimension.all_pairs("extended") for term in pair for word in tokenize(term)}
    left_out, matcher = of_groups | stop_words(), Swapper(task.dimension, pronouns="extended").matcher
    counted = [  # `he'll` names the group as `he` does
        n > END and w not in left_out and w[0].isalnum() and not matcher.find(w) for n, w in enumerate(vocabulary.words)
    ]
    return Utterances(turns, groups, np.array(counted))


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
        lengths = (batch != PAD).sum(dim=1).cpu()
        features = model.features(model.embedding(batch), lengths)
        written = int(lengths.sum()) + len(batch)  # with the ends
        total += model.reconstruction_loss(features, batch).item() * written
        words += written
    return round(total / words, 6)
