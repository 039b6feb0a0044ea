"""Checks for nominal false positives under the null, and for the power that is promised.

Responses are drawn independently by the sample's grammar itself, not by a trained model: a network truly answers
differently wherever embeddings differ, so its null is not one.
"""

import random

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.corpora.dialogue.grammar import Grammar, Scene
from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.measures.dialogue.attribute_words import AttributeWordScorer
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.measures.dialogue.sentiment import SentimentScorer
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.statistics.comparison import compare_counts, compare_rates
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.permutation import permutation_p
from fairness_pipeline.statistics.resampling import NGrams

REPLICATES, PAIRS = 2000, 400
TEN_PERCENT = Margin(relative=0.1)


def within(count: int, replicates: int, rate: float) -> bool:
    """Whether a rejection count is within four standard errors of its rate."""
    return abs(count / replicates - rate) < 4 * (rate * (1 - rate) / replicates) ** 0.5


@pytest.fixture(scope="module")
def replies() -> dict[str, np.ndarray]:
    """Scores of 20,000 replies that the grammar draws to side a of `gender`, each independent of all others."""
    grammar, draw = Grammar.load("grammars/twitter_sample.yaml"), random.Random(1)
    texts = []
    for _ in range(20_000):
        topic = draw.choice(sorted(grammar.topics))
        texts.append(grammar.reply(Scene("gender", "a", topic, draw.choice(grammar.topics[topic].objects)), draw))
    distinct = sorted(set(texts))
    table = pa.table({"text": distinct})
    index = np.searchsorted(distinct, texts)
    words = AttributeWordScorer(load_dimension("gender").attribute_words)(table)
    return {
        "offensive": PolitenessScorer()(table)["offensive"].to_numpy(zero_copy_only=False)[index],
        "positive": SentimentScorer()(table)["positive"].to_numpy(zero_copy_only=False)[index],
        "career": words["career"].to_numpy()[index].astype(float),
        "index": index,
        "distinct": np.array(distinct),
    }


@pytest.mark.verify
@pytest.mark.parametrize("measure", ["offensive", "positive", "career"])
def test_nominal_rejection_under_the_null(replies: dict[str, np.ndarray], measure: str) -> None:
    random_ = np.random.default_rng(7)
    scores = replies[measure]
    compare = compare_counts if measure == "career" else compare_rates
    unpaired = paired = wilcoxon = covered = 0
    for _ in range(REPLICATES):
        a, b = random_.choice(scores, PAIRS), random_.choice(scores, PAIRS)
        row = compare(measure, a, b, TEN_PERCENT)
        unpaired += row.p < 0.05
        paired += row.p_paired < 0.05
        wilcoxon += (row.p_wilcoxon or 1.0) < 0.05
        covered += row.ci_low <= 0 <= row.ci_high
    assert within(unpaired, REPLICATES, 0.05)
    assert within(paired, REPLICATES, 0.05)
    assert within(covered, REPLICATES, 0.95)
    assert measure != "career" or within(wilcoxon, REPLICATES, 0.05)


def test_nominal_rejection_of_the_permutation_test(replies: dict[str, np.ndarray]) -> None:
    random_ = np.random.default_rng(8)
    ngrams = NGrams([tokenize(text) for text in replies["distinct"]])
    rejected = 0
    for i in range(400):
        a, b = random_.choice(replies["index"], 100), random_.choice(replies["index"], 100)
        rejected += permutation_p(ngrams, a, b, permutations=99, seed=i)["diversity"] <= 0.05
    assert within(rejected, 400, 0.05)


@pytest.mark.parametrize("kind", ["rate", "count"])
@pytest.mark.verify
def test_equivalence_at_the_margins_edge(kind: str) -> None:
    """True difference = margin: equivalence may be claimed in at most alpha of all cases, and well inside it mostly is."""
    random_ = np.random.default_rng(9)
    pairs, mean = 6000, 0.3
    claimed = inside = 0
    for _ in range(1000):
        # (a - b) = 0.1 (a + b) / 2 for a = 1.05 mean, b = 0.95 mean.
        for edge in (True, False):
            means = (1.05 * mean, 0.95 * mean) if edge else (mean, mean)
            if kind == "rate":
                row = compare_rates("m", *(random_.random(pairs) < m for m in means), TEN_PERCENT)
            else:
                row = compare_counts("m", *(random_.poisson(m, pairs).astype(float) for m in means), TEN_PERCENT)
            claimed += edge and row.verdict == "fair"
            inside += not edge and row.verdict == "fair"
    assert claimed / 1000 < 0.05 + 4 * (0.05 * 0.95 / 1000) ** 0.5
    assert inside / 1000 > 0.8


@pytest.mark.parametrize("kind", ["rate", "count"])
@pytest.mark.verify
def test_the_smallest_detectable_difference_is_found_in_four_of_five(kind: str) -> None:
    random_ = np.random.default_rng(10)
    pairs, mean = 1500, 0.25

    def draw(means: tuple[float, float]) -> object:
        if kind == "rate":
            return compare_rates("m", *(random_.random(pairs) < m for m in means), TEN_PERCENT)
        return compare_counts("m", *(random_.poisson(m, pairs).astype(float) for m in means), TEN_PERCENT)

    scale = 100 if kind == "rate" else 1
    detectable = np.mean([draw((mean, mean)).minimum_detectable for _ in range(50)]) / scale
    shifted = (mean + detectable / 2, mean - detectable / 2)
    detected = sum(draw(shifted).p_paired < 0.05 for _ in range(1000))
    assert within(detected, 1000, 0.8)


def test_pairing_gains_power_where_the_unpaired_test_is_conservative() -> None:
    """With 60% identical answers the unpaired Z rejects far too rarely under the null, the paired test nominally."""
    random_ = np.random.default_rng(11)
    unpaired = paired = 0
    for _ in range(REPLICATES):
        a = random_.random(PAIRS) < 0.3
        b = np.where(random_.random(PAIRS) < 0.6, a, random_.random(PAIRS) < 0.3)
        row = compare_rates("m", a, b, TEN_PERCENT)
        unpaired += row.p < 0.05
        paired += row.p_paired < 0.05
    assert unpaired / REPLICATES < 0.01
    assert within(paired, REPLICATES, 0.05)
