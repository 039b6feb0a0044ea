"""Study 2's systems: language models whose likelihoods of phrases are known, and small GPT-2s."""

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.lexicons.counterfactuals import make_counterfactuals
from fairness_pipeline.lexicons.stereotypes import Lexicon, stereotypes_of
from fairness_pipeline.measures.language.phrase_bias import (
    OPPOSITE,
    OWN,
    PHRASE_PERPLEXITIES,
    LanguageModelBiasSettings,
    compare_phrases,
)
from fairness_pipeline.measures.language.stereotype import STEREOTYPE
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline_tests.lineup.shared import System, Verdicts

STUDY = "language_model_bias"
DIMENSIONS = ("religion1", "religion2", "race", "gender", "orientation")
SIZES = (90, 240)
"""The least and largest number of phrases of a draw; RedditBias's test splits have 88 to 238 that can be judged."""
_BEFORE = ("honestly", "i swear", "as we know", "trust me", "everyone says", "look around", "it seems", "for real")
_AFTER = ("", "in this town", "these days", "most of the time", "if you ask me", "as always", "and you know it")

Phrase = dict[str, str]
"""The four versions of a phrase, its target and its attribute."""


@cache
def _lexicon(name: str) -> tuple[Lexicon, list[tuple[str, str]], list[str]]:
    dimension = load_dimension(name)
    stereotypes = stereotypes_of(dimension)
    pairs = [pair for pair in stereotypes.pairs if " " not in "".join(pair)]
    return Lexicon(stereotypes), pairs, [term for term, _ in stereotypes.opposites if " " not in term]


def phrases(dimension: str, random: np.random.Generator) -> list[Phrase]:
    """Returns phrases of side b with their counterfactuals and opposites, as the pipeline makes them.

    Attribute words are as unevenly frequent as RedditBias's: a few occur in most of the phrases.
    """
    lexicon, pairs, attributes = _lexicon(dimension)
    count = int(random.integers(*SIZES, endpoint=True))
    chosen = random.permutation(attributes)[: int(random.integers(16, 28))]
    weights = 1 / np.arange(1, len(chosen) + 1) ** 0.7
    rows = []
    for number in range(count):
        target = pairs[random.integers(len(pairs))][1]
        attribute = str(random.choice(chosen, p=weights / weights.sum()))
        before, after = random.choice(_BEFORE), random.choice(_AFTER)
        clause = f"{target} are {attribute}" if number % 3 else f"those {attribute} {target} are here"
        split = "train" if number == 0 else "dev" if number == 1 else "test"
        text = f"{before} {clause} {after}".strip()
        rows.append({"phrase_id": str(number), "comment_id": str(number), "split": split, "phrase": text})
    table, _ = make_counterfactuals(pa.Table.from_pylist(rows), lexicon)
    return [
        {"a": row["text_a"], "b": row["text_b"], "opposite_a": row["opposite_a"], "opposite_b": row["opposite_b"],
         "target": row["target"], "attribute": row["attribute"]}
        for row in table.to_pylist()
        if row["split"] == "test" and row["attribute"]
    ]  # fmt: skip


Model = Callable[[list[Phrase], np.random.Generator], list[dict[str, float]]]
"""Returns the negative log-likelihood (nats) of each version of each phrase."""


def judge(dimension: str, model: Model, draw: int) -> Verdicts:
    """Returns the verdict on a model in one draw of phrases."""
    random = np.random.default_rng([draw, 11])
    sample = phrases(dimension, random)
    rows: list[dict[str, Any]] = []
    for number, (phrase, losses) in enumerate(zip(sample, model(sample, random), strict=True)):
        for version, (reading, side) in _VERSIONS.items():
            tokens = len(phrase[version].split())
            rows.append(
                {"phrase_id": str(number), "comment_id": str(number), "split": "test", "target": phrase["target"],
                 "side": side, "reading": reading, "attribute": phrase["attribute"], "text": phrase[version],
                 "tokens": tokens, "perplexity": math.exp(losses[version] / tokens)}
            )  # fmt: skip
    # A counterpart may have two words for one (`christian people`), so that all versions get the same number of tokens.
    for number in range(len(sample)):
        versions = rows[4 * number : 4 * number + 4]
        for row in versions:
            total = row["tokens"] * math.log(row["perplexity"])
            row |= {"tokens": 10, "perplexity": math.exp(total / 10)}
    table = pa.Table.from_pylist(rows, schema=PHRASE_PERPLEXITIES)
    names_the_group = load_dimension(dimension).names_the_group
    judged = compare_phrases(table, table, LanguageModelBiasSettings(), {}, names_the_group=names_the_group).to_pylist()
    return {row["measure"]: row["verdict"] for row in judged if row["measure"] == STEREOTYPE}


_VERSIONS = {"a": (OWN, "a"), "b": (OWN, "b"), "opposite_a": (OPPOSITE, "a"), "opposite_b": (OPPOSITE, "b")}


def _losses_of(loss: Callable[[str], float], sample: list[Phrase]) -> list[dict[str, float]]:
    return [{version: loss(phrase[version]) for version in _VERSIONS} for phrase in sample]


def _unigram(sample: list[Phrase], random: np.random.Generator) -> list[dict[str, float]]:
    """Each word has its own likelihood, whatever precedes it."""
    known: dict[str, float] = {}
    return _losses_of(
        lambda text: sum(known.setdefault(word, float(random.gamma(4, 2))) for word in text.split()), sample
    )


def _bigram(likes_b: float, sample: list[Phrase], random: np.random.Generator) -> list[dict[str, float]]:
    """Each pair of words has its own likelihood; side b's words are likelier by `likes_b` nats after any word."""
    known: dict[tuple[str, str], float] = {}
    words_b = {word for phrase in sample for word in phrase["target"].split()}

    def loss(text: str) -> float:
        words = text.split()
        pairs = zip(["", *words], words, strict=False)
        return sum(known.setdefault(pair, float(random.gamma(4, 2))) - likes_b * (pair[1] in words_b) for pair in pairs)

    return _losses_of(loss, sample)


def _lottery(spread: float, sample: list[Phrase], random: np.random.Generator) -> list[dict[str, float]]:
    """Each attribute word and each opposite favours a random group, by the same law for both."""
    known: dict[tuple[str, str], float] = {}
    rows = _unigram(sample, random)
    for phrase, row in zip(sample, rows, strict=True):
        for version in ("b", "opposite_b"):
            row[version] += known.setdefault((phrase["attribute"], version), float(random.normal(0, spread)))
    return rows


def _planted(times: float, share: float, sample: list[Phrase], random: np.random.Generator) -> list[dict[str, float]]:
    """A share of the attribute words is `times` times as likely for side b."""
    rows = _unigram(sample, random)
    words = list(dict.fromkeys(phrase["attribute"] for phrase in sample))
    chosen = set(random.permutation(words)[: math.ceil(share * len(words))])
    for phrase, row in zip(sample, rows, strict=True):
        row["b"] -= math.log(times) * (phrase["attribute"] in chosen)
        for version in _VERSIONS:
            row[version] += float(random.normal(0, 0.3))
    return rows


def _halves(times: float, sample: list[Phrase], random: np.random.Generator) -> list[dict[str, float]]:
    """Half of the attribute words are `times` times as likely for side b, half are as many times less likely."""
    rows = _unigram(sample, random)
    words = list(dict.fromkeys(phrase["attribute"] for phrase in sample))
    chosen = set(random.permutation(words)[: len(words) // 2])
    for phrase, row in zip(sample, rows, strict=True):
        row["b"] -= math.log(times) * (1 if phrase["attribute"] in chosen else -1)
        for version in _VERSIONS:
            row[version] += float(random.normal(0, 0.3))
    return rows


def _random_gpt2(sample: list[Phrase], random: np.random.Generator) -> list[dict[str, float]]:
    """A GPT-2 with random weights that reads one token per word."""
    import torch
    import transformers
    from transformers import GPT2Config, GPT2LMHeadModel

    transformers.logging.set_verbosity_error()
    torch.manual_seed(int(random.integers(2**31)))
    vocabulary: dict[str, int] = {}
    texts = [phrase[version].split() for phrase in sample for version in _VERSIONS]
    ids = [[vocabulary.setdefault(word, len(vocabulary) + 1) for word in text] for text in texts]
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(vocabulary) + 1,
            n_positions=32,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
    ).eval()
    longest = max(map(len, ids))
    batch = torch.tensor([[0, *text, *[0] * (longest - len(text))] for text in ids])
    mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in ids])
    with torch.no_grad():
        logits = model(batch[:, :-1]).logits
    token_losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch[:, 1:], reduction="none")
    losses = (token_losses * mask).sum(dim=1).tolist()
    step = len(_VERSIONS)
    return [dict(zip(_VERSIONS, losses[step * i : step * i + step], strict=True)) for i in range(len(sample))]


def systems() -> Iterator[System]:
    """Yields all systems, in each dimension."""
    innocent: dict[str, Model] = {
        "unigram: words have likelihoods of their own": _unigram,
        "bigram: after every word each other has its own": partial(_bigram, 0.0),
        "bigram that likes side b's words": partial(_bigram, 1.0),
        "each attribute favours a group by lot, sd 0.3 nats": partial(_lottery, 0.3),
        "each attribute favours a group by lot, sd 0.7 nats": partial(_lottery, 0.7),
        "GPT-2 with random weights": _random_gpt2,
    }
    guilty: dict[str, tuple[Model, float]] = {
        "stereotype 2 times as likely": (partial(_planted, 2.0, 1.0), 0.8),
        "stereotype 2 times as unlikely": (partial(_planted, 0.5, 1.0), 0.8),
        "stereotype 4 times as likely": (partial(_planted, 4.0, 1.0), 0.95),
        "stereotype 10 times as likely in half of the attributes": (partial(_planted, 10.0, 0.5), 0.8),
        "half of the attributes 4 times as likely of side b, half of side a": (partial(_halves, 4.0), 0.8),
    }
    for dimension in DIMENSIONS:
        fast = dimension == "gender"
        for name, model in innocent.items():
            yield System(STUDY, dimension, name, "innocent", partial(judge, dimension, model), fast=fast)
        for name, (model, power) in guilty.items():
            judge_draw = partial(judge, dimension, model)
            # In gender the target words are a sample, too; they are few and vary.
            least = 0.4 if dimension == "gender" and power < 0.95 and not name.startswith("half") else power
            yield System(STUDY, dimension, name, "guilty", judge_draw, (STEREOTYPE,), least, fast=fast and power > 0.9)
        few = partial(judge, dimension, partial(_planted, 4.0, 0.1))
        yield System(STUDY, dimension, "stereotype 4 times as likely in a tenth of the attributes", "hangs on few", few)
