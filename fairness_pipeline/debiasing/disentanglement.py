"""The disentanglement model of Debiased-Chat: Liu 2022, section 3.2.2.

An autoencoder whose code is two vectors, f = [f(u) : f(s)]: the unbiased features of an utterance, from which its group
can be told, and its semantic features, from which it cannot. Four discriminators see to that.

Two losses are printed with the sign of an erratum: minimising the entropy would make a distribution certain, and the
thesis means the contrary ("makes p(s) close to an even distribution"). As in the authors' code, `sum p log p` is
minimised.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax

from fairness_pipeline.debiasing.biased_text import BiasScorer, unbiased
from fairness_pipeline.debiasing.registry import PROJECTION, Task
from fairness_pipeline.debiasing.settings import DebiasedChat, Disentanglement
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.files import replacing
from fairness_pipeline.lexicons.stop_words import stop_words
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lexicons.text import TOKEN, fold
from fairness_pipeline.models.batching import pad
from fairness_pipeline.models.checkpoints import Due, check_finite, load_training, load_weights, save_training
from fairness_pipeline.models.devices import device_of
from fairness_pipeline.models.recurrent import last_states
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN, VOCABULARY, Vocabulary
from fairness_pipeline.progress import report

UTTERANCES = "utterances.parquet"
NEUTRAL = -1
"""Instead of a group, for an utterance that names none."""
_WEIGHTS = "disentanglement.safetensors"
_CHECKPOINT = "training.safetensors"
_ENCODED = 512
_DECODED = 64
_FITTED = 20_000
_SHOWN = 400
_LEAST = 20
_PROBE_STEPS = 2000
_PROBE_BATCH = 32


class Features(NamedTuple):
    """f(u) (batch, unbiased) and f(s) (batch, semantic)."""

    unbiased: torch.Tensor
    semantic: torch.Tensor


class DisentanglementModel(nn.Module):
    """DET: a GRU reads an utterance into h, linear layers give f(u) and f(s), which start a GRU that writes it again.

    Args:
        sizes: Widths, and the precision of what is as wide as the vocabulary.
        words: How many words it tells apart: the most frequent of the dialogue model's, with the same numbers.
    """

    def __init__(self, sizes: Disentanglement, words: int) -> None:
        super().__init__()
        self._precision = sizes.precision
        self.embedding = nn.Embedding(words, sizes.embedding, padding_idx=PAD)
        self.encoder = nn.GRU(sizes.embedding, sizes.hidden, batch_first=True)
        self.to_unbiased = nn.Linear(sizes.hidden, sizes.unbiased)
        self.to_semantic = nn.Linear(sizes.hidden, sizes.semantic)
        self.decoder = nn.GRU(sizes.embedding, sizes.hidden, batch_first=True)
        self.output = nn.Linear(sizes.hidden, words)

    def features(self, embedded: torch.Tensor, lengths: torch.Tensor) -> Features:
        """f(u) and f(s) of utterances given as word vectors (batch, words, embedding) of these lengths (on the CPU)."""
        (hidden,) = last_states(self.encoder, embedded, lengths)
        return Features(self.to_unbiased(hidden[0]), self.to_semantic(hidden[0]))

    def embed(self, words: torch.Tensor) -> torch.Tensor:
        """Vectors of words given as weights over the dialogue model's whole vocabulary (..., vocabulary).

        Those beyond the words that it tells apart are unknown.
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
        loss = cross_entropy(over_words(self.output, hidden[present], self._precision), targets[present])
        return features, loss


def over_words(layer: nn.Linear, vectors: torch.Tensor, precision: str) -> torch.Tensor:
    """`layer`, as wide as the vocabulary, of `vectors`: nearly all of a step's products, and all that may be coarse."""
    with torch.autocast(vectors.device.type, torch.bfloat16, precision == "bfloat16"):
        scores: torch.Tensor = layer(vectors)
    return scores.float()


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


class Bags(NamedTuple):
    """B of utterances, sparse: words (utterances, most) and each one's share of the utterance; filled up with 0."""

    words: torch.Tensor
    shares: torch.Tensor

    @classmethod
    def of(cls, counted: Sequence[np.ndarray], device: torch.device) -> "Bags":
        """From the counted words of each utterance, which may be none."""
        words = np.zeros((len(counted), max(1, *map(len, counted))), dtype=np.int64)
        shares = np.zeros(words.shape, dtype=np.float32)
        for row, own in enumerate(counted):
            words[row, : len(own)] = own
            shares[row, : len(own)] = 1 / max(len(own), 1)
        return cls(torch.from_numpy(words).to(device), torch.from_numpy(shares).to(device))


def bag_of_words_loss(scores: torch.Tensor, bags: Bags) -> torch.Tensor:
    """L_D4 (section 3.2.2.2): -sum B log softmax(`scores`) (batch, words), mean over the batch."""
    named = (scores.gather(1, bags.words) * bags.shares).sum(dim=1)
    return (bags.shares.sum(dim=1) * scores.logsumexp(dim=1) - named).mean()


class Utterances(NamedTuple):
    """Word numbers of utterances, groups (0 for a, 1 for b, `NEUTRAL`), and the words that count for a bag."""

    turns: list[np.ndarray]
    groups: np.ndarray
    counted: list[np.ndarray]

    def select(self, rows: np.ndarray) -> "Utterances":
        """These rows alone."""
        return Utterances([self.turns[i] for i in rows], self.groups[rows], [self.counted[i] for i in rows])

    def extended(self, others: "Utterances") -> "Utterances":
        """These and others."""
        groups = np.concatenate([self.groups, others.groups])
        return Utterances([*self.turns, *others.turns], groups, [*self.counted, *others.counted])


def train(task: Task) -> dict[str, Any]:
    """Builds the corpus, trains the autoencoder, and tells how well each of its two vectors gives the group away.

    Returns:
        Figures: utterances of each group, steps, the accuracies of table 3.2 (by a strict probe, and by one as the
        thesis describes it), that of the content words alone, and the test's reconstruction loss.

    Raises:
        FairnessError: too few unbiased utterances, or a loss that is not a number.
    """
    settings = DebiasedChat.model_validate(task.model.settings or {}).disentanglement
    vocabulary = Vocabulary.load(task.base / VOCABULARY)
    words = _words(settings, vocabulary)
    found = unbiased_utterances(task)
    visible, utterances = encode(found, vocabulary, words, task)
    corpus = found.take(pa.array(visible))
    _check_enough(corpus, found, task)
    with replacing(task.folder / UTTERANCES) as path:
        pq.write_table(corpus, path)
    test, rest = split_balanced(corpus, settings.held_out, task.seed)
    fitted = utterances.select(rest)
    if settings.neutral:
        others = neutral_utterances(task, round(settings.neutral * len(rest)))
        fitted = fitted.extended(encode(others, vocabulary, words, task)[1])
    model = _fit(settings, fitted, words, task)
    features = _features(model, utterances.turns)
    with replacing(task.folder / PROJECTION) as path:
        pq.write_table(project(features, utterances.groups, test, task.seed), path)
    counts = {row["values"]: row["counts"] for row in pc.value_counts(corpus["side"]).to_pylist()}
    return {
        "utterances_a": counts.get("a", 0),
        "utterances_b": counts.get("b", 0),
        "without_a_visible_word": found.num_rows - corpus.num_rows,
        "test_utterances": len(test),
        "steps": _steps(settings, len(fitted.turns)),
        **{
            f"{name}_{kind}": probe(vectors, utterances.groups, rest, test, task.seed)
            for name, probe in (("accuracy", group_accuracy), ("trained_probe", trained_accuracy))
            for kind, vectors in features._asdict().items()
        },
        "accuracy_content": content_accuracy(utterances, words, rest, test, task.seed),
        "reconstruction_loss": _reconstruction_loss(model, utterances.select(test)),
    }


def unbiased_utterances(task: Task) -> pa.Table:
    """The unbiased gendered utterance corpus (section 3.2.2.1), for any dimension.

    Every context and response of the training dialogues that names one group only, and that the measures of study 1
    take for neither offensive, nor clearly positive or negative, and that holds no attribute word; as often as it
    occurs.

    Returns:
        Columns `utterance` and `side` (`a` or `b`).
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
    return pa.table({"utterance": kept.take(places), "side": known.take(places)})


def neutral_utterances(task: Task, count: int) -> pa.Table:
    """So many different contexts and responses of the training dialogues that name no group, biased ones among them.

    The unbiased utterances lack the words that make others biased; without these the features of such words, and what
    D2 could tell from them, would be left to chance. The thesis has no such utterances.

    Returns:
        Columns `utterance` and `side` (null).
    """
    train = task.dialogues.filter(pc.equal(task.dialogues["split"], "train"))
    distinct = pa.chunked_array([*train["context"].chunks, *train["response"].chunks], pa.string()).unique()
    swapper = Swapper(task.dimension, pronouns="extended")
    named = pc.match_substring_regex(distinct, swapper.matcher.prefilter())
    others = distinct.filter(pc.invert(named))
    drawn = np.random.default_rng(task.seed).permutation(len(others))[:count]
    texts = others.take(pa.array(np.sort(drawn)))
    return pa.table({"utterance": texts, "side": pa.nulls(len(texts), pa.string())})


def _check_enough(corpus: pa.Table, found: pa.Table, task: Task) -> None:
    for side in ("a", "b"):
        own, all_found = (
            len(table.filter(pc.equal(table["side"], side))["utterance"].unique()) for table in (corpus, found)
        )
        if own < _LEAST:
            raise FairnessError(
                f"the training dialogues hold {all_found} different unbiased utterances of group {side} "
                f"({getattr(task.dimension.groups, side)}), {own} of them with a group word that the model knows; the "
                f"disentanglement model needs {_LEAST} or more of each group, and thousands to converge: give it a "
                "larger corpus, or a dimension whose words are commoner there"
            )


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
    """Share of the test utterances whose group a fresh linear classifier tells from `features` (table 3.2), strictly.

    It has the form of D1 and D2 (one layer and softmax), is fitted to its optimum on standardised features of as many
    utterances of each group (at most 20,000 in all) that are not in the test, and finds whatever is linear.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fitted = _balanced(groups, rest, seed)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    vectors = features.numpy()
    classifier.fit(vectors[fitted], groups[fitted])
    return float(classifier.score(vectors[test], groups[test]))


def trained_accuracy(
    features: torch.Tensor, groups: np.ndarray, rest: np.ndarray, test: np.ndarray, seed: int
) -> float:
    """The same by a probe as the thesis describes its own: one layer, trained by Adam on the features as they are.

    2,000 steps of 32 utterances at a rate of 0.001, which it does not state; a weaker probe than `group_accuracy`.
    """
    random, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed % 2**31)
    fitted, targets = _balanced(groups, rest, seed), torch.from_numpy(groups)
    probe = nn.Linear(features.shape[1], 2)
    with torch.no_grad():
        for parameter in probe.parameters():
            parameter.uniform_(-0.1, 0.1, generator=generator)
    optimiser = torch.optim.Adam(probe.parameters(), 0.001)
    for _ in range(_PROBE_STEPS):
        rows = torch.from_numpy(random.choice(fitted, _PROBE_BATCH))
        optimiser.zero_grad(set_to_none=True)
        cross_entropy(probe(features[rows]), targets[rows]).backward()
        optimiser.step()
    with torch.inference_mode():
        told = probe(features[torch.from_numpy(test)]).argmax(dim=1).numpy()
    return float((told == groups[test]).mean())


def content_accuracy(utterances: Utterances, words: int, rest: np.ndarray, test: np.ndarray, seed: int) -> float:
    """The floor of table 3.2: the same from the content words alone, which f(s) is asked to keep.

    A logistic regression on the words' counts, its penalty chosen by cross-validation.
    """
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    def counts(rows: np.ndarray) -> Any:
        counted = [utterances.counted[row] for row in rows]
        owners = np.repeat(np.arange(len(rows)), [len(own) for own in counted])
        columns = np.concatenate(counted) if counted else np.empty(0, np.int64)
        return csr_matrix((np.ones(len(columns)), (owners, columns)), shape=(len(rows), words))

    fitted, groups = _balanced(utterances.groups, rest, seed), utterances.groups
    search = GridSearchCV(LogisticRegression(max_iter=2000), {"C": [0.01, 0.1, 1.0]}, cv=5)
    search.fit(counts(fitted), groups[fitted])
    return float(search.score(counts(test), groups[test]))


def _balanced(groups: np.ndarray, rest: np.ndarray, seed: int) -> np.ndarray:
    """As many rows of each group, at most 20,000 in all."""
    random = np.random.default_rng(seed)
    sides = [random.permutation(rest[groups[rest] == side]) for side in (0, 1)]
    each = min(_FITTED // 2, *map(len, sides))
    return np.concatenate([side[:each] for side in sides])


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
    model = DisentanglementModel(settings, _words(settings, Vocabulary.load(task.base / VOCABULARY)))
    model.load_state_dict(load_weights(task.disentanglement / _WEIGHTS))
    return model.to(device_of(task.model)).requires_grad_(False)


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
    """One batch of section 3.2.2.3; gives L(det).

    First D2 and D3 learn to tell group and words from what they must not be told from, with the autoencoder at rest.
    Then the autoencoder, D1 and D4 are updated on L(det) = L_rec + k1 L_D1 + k2 L_D2 + k3 L_D3 + k4 L_D4, with D2 and
    D3 at rest.
    """
    d, precision = discriminators, settings.precision
    features, reconstruction_loss = model.read(utterances)
    f_u, f_s = (vector.detach() for vector in features)
    adversaries.zero_grad(set_to_none=True)
    (_group_loss(d.d2(f_s), groups) + bag_of_words_loss(over_words(d.d3, f_u, precision), bags)).backward()
    adversaries.step()
    for adversary in (d.d2, d.d3):
        adversary.requires_grad_(False)
    loss = (
        reconstruction_loss
        + settings.k1 * _group_loss(d.d1(features.unbiased), groups)  # equation 3.1
        + settings.k2 * negative_entropy(d.d2(features.semantic))  # equation 3.2
        + settings.k3 * negative_entropy(over_words(d.d3, features.unbiased, precision))
        + settings.k4 * bag_of_words_loss(over_words(d.d4, features.semantic, precision), bags)
    )
    autoencoder.zero_grad(set_to_none=True)
    loss.backward()
    autoencoder.step()
    for adversary in (d.d2, d.d3):
        adversary.requires_grad_(True)
    return loss.detach()


def _group_loss(scores: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of the groups of those that name one."""
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
    steps, each = _steps(settings, len(utterances.turns)), _steps_an_epoch(settings, len(utterances.turns))
    for step in range(first, steps):
        epoch, place = divmod(step, each)
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
            Bags.of([utterances.counted[i] for i in rows], device),
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


def _steps_an_epoch(settings: Disentanglement, utterances: int) -> int:
    return -(-utterances // settings.batch)


def _steps(settings: Disentanglement, utterances: int) -> int:
    """Whole epochs: as many as declared, or as make up the least number of steps."""
    each = _steps_an_epoch(settings, utterances)
    return each * max(settings.epochs, math.ceil(settings.least_steps / each))


def _words(settings: Disentanglement, vocabulary: Vocabulary) -> int:
    return min(settings.vocabulary or len(vocabulary), len(vocabulary))


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


def encode(corpus: pa.Table, vocabulary: Vocabulary, words: int, task: Task) -> tuple[np.ndarray, Utterances]:
    """The utterances in which a word that names the group can be seen, and which rows of the `corpus` they are.

    Of an utterance whose only such word is cut away, or unknown, nothing but its content would tell the group. A bag
    counts words but stop words and all that the matcher takes for a group's (`he'll`, and `old man` as a whole).

    Args:
        corpus: Columns `utterance`, `side` (null for those that name no group, all of which are kept).
        vocabulary: Of the dialogue model, the most frequent words first.
        words: How many of them are told apart.
        task: Whose dimension and longest turn.
    """
    assert task.model.seq2seq is not None
    naming, all_naming = (
        Swapper(task.dimension, pronouns=pronouns).matcher for pronouns in (task.pairs.pronouns, "extended")
    )
    stops, texts = stop_words(), corpus["utterance"].combine_chunks()
    rows, turns, counted = [], [], []
    sides = corpus["side"].to_pylist()
    found = zip(texts.to_pylist(), sides, naming.find_all(texts), all_naming.find_all(texts), strict=True)
    for row, (text, side, named, barred) in enumerate(found):
        tokens = list(TOKEN.finditer(text))[: task.model.seq2seq.longest]
        spelled = [fold(token.group()) for token in tokens]
        numbers = np.array([n if (n := vocabulary.number(word)) < words else UNKNOWN for word in spelled])
        if not tokens:
            continue
        if side is None or any(
            number != UNKNOWN and _within(token, named) for token, number in zip(tokens, numbers, strict=True)
        ):
            counts = [
                number > END and word[0].isalnum() and word not in stops and not _within(token, barred)
                for token, word, number in zip(tokens, spelled, numbers, strict=True)
            ]
            rows.append(row)
            turns.append(numbers)
            counted.append(numbers[counts])
    groups = np.array([{"a": 0, "b": 1, None: NEUTRAL}[side] for side in sides], dtype=np.int64)
    return np.array(rows, dtype=np.int64), Utterances(turns, groups[rows], counted)


def _within(token: re.Match[str], matches: Sequence[tuple[int, int, str]]) -> bool:
    """Whether a token belongs to one of the matches (`he'll` to `he`)."""
    return any(start < token.end() and token.start() < end for start, end, _ in matches)


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
