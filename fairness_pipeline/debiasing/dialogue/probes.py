"""Measures how well features of Debiased-Chat's autoencoder predict the group (Liu 2022, table 3.2 and figure 3.2)."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fairness_pipeline.debiasing.dialogue.gendered_utterances import Utterances

_FITTED = 20_000
_SHOWN = 400
_PROBE_STEPS = 2000
_PROBE_BATCH = 32
_LEAST_TO_KEEP_ASIDE = 200


def split_balanced(utterances: pa.Table, held_out: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the test and the rest, which has no utterance of the test's.

    The test has as many utterances of each group, each once: at most `held_out` in all, and a fifth of the smaller
    group's distinct ones.
    """
    random = np.random.default_rng(seed)
    codes = utterances["utterance"].combine_chunks().dictionary_encode().indices.to_numpy()
    distinct, first = np.unique(codes, return_index=True)
    of_b = pc.equal(utterances["side"], "b").to_numpy()[first]
    per_group = min(held_out // 2, max(1, min(int(of_b.sum()), int((~of_b).sum())) // 5))
    drawn = np.concatenate([random.permutation(np.flatnonzero(of_b == side))[:per_group] for side in (False, True)])
    return np.sort(first[drawn]), np.flatnonzero(~np.isin(codes, distinct[drawn]))


def group_accuracy(features: torch.Tensor, groups: np.ndarray, rest: np.ndarray, test: np.ndarray, seed: int) -> float:
    """Share of the test utterances whose group a fresh linear classifier tells from `features` (table 3.2, strictly).

    It has the form of D1 and D2 (one layer and softmax), is fitted to its optimum on standardised features of as many
    utterances of each group (at most 20,000 in all) that are not in the test, and finds any linear trace.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fitted = _balanced(groups, rest, seed)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    vectors = features.numpy()
    classifier.fit(vectors[fitted], groups[fitted])
    return float(classifier.score(vectors[test], groups[test]))


def half_and_half(features: torch.Tensor, groups: np.ndarray, seed: int) -> float:
    """`group_accuracy` of as many vectors of each group: it is fitted to one half of them and tested on the other."""
    rows = _balanced(groups, np.arange(len(groups)), seed)
    drawn = np.random.default_rng(seed).permutation(len(rows) // 2)
    first = np.isin(np.arange(len(rows)) % (len(rows) // 2), drawn[: len(drawn) // 2])
    return group_accuracy(features, groups, rows[first], rows[~first], seed)


def trained_accuracy(
    features: torch.Tensor, groups: np.ndarray, rest: np.ndarray, test: np.ndarray, seed: int
) -> float:
    """The same by a probe as the thesis describes its own: one layer, trained by Adam on the raw features.

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
        predicted = probe(features[torch.from_numpy(test)]).argmax(dim=1).numpy()
    return float((predicted == groups[test]).mean())


def nonlinear_accuracy(
    features: torch.Tensor, groups: np.ndarray, rest: np.ndarray, test: np.ndarray, seed: int
) -> float:
    """The same by three layers with ReLU (64 units each), as D2 of the game has them: it also finds what is not linear.

    Not in table 3.2. It is fitted to standardised features and stops where a held-out tenth gets no better.
    """
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fitted, vectors = _balanced(groups, rest, seed), features.numpy()
    early = len(fitted) >= _LEAST_TO_KEEP_ASIDE
    layers = MLPClassifier((64, 64), early_stopping=early, n_iter_no_change=20, random_state=seed % 2**31)
    classifier = make_pipeline(StandardScaler(), layers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may still be getting better
        classifier.fit(vectors[fitted], groups[fitted])
    return float(classifier.score(vectors[test], groups[test]))


def content_accuracy(utterances: Utterances, words: int, rest: np.ndarray, test: np.ndarray, seed: int) -> float:
    """Not in table 3.2: the same from the content words alone, which f(s) should keep.

    A logistic regression on the words' counts, its penalty chosen by cross-validation.
    """
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    def counts(rows: np.ndarray) -> Any:
        counted = [utterances.counted[row] for row in rows]
        owners = np.repeat(np.arange(len(rows)), [len(numbers) for numbers in counted])
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
    per_group = min(_FITTED // 2, *map(len, sides))
    return np.concatenate([side[:per_group] for side in sides])


def project(features: dict[str, torch.Tensor], groups: np.ndarray, test: np.ndarray, seed: int) -> pa.Table:
    """Figure 3.2: both vectors of at most 400 test utterances a group, on a plane by t-SNE.

    Returns:
        Columns `features` (`unbiased` or `semantic`), `side`, `x`, `y`.
    """
    from sklearn.manifold import TSNE

    sample = np.concatenate([test[groups[test] == side][:_SHOWN] for side in (0, 1)])
    tables = []
    for name, vectors in features.items():
        perplexity = min(30.0, (len(sample) - 1) / 3)
        points = TSNE(perplexity=perplexity, init="pca", random_state=seed % 2**31).fit_transform(
            vectors.numpy()[sample]
        )
        sides = pa.array(np.where(groups[sample] == 0, "a", "b").tolist())
        columns = {"features": pa.repeat(name, len(sample)), "side": sides, "x": points[:, 0], "y": points[:, 1]}
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)
