"""Tests texts about several groups: the level with spans that matter, the power, and what is named."""

import numpy as np
import pytest
from scipy import sparse

from fairness_pipeline.statistics.many_sample import Texts, distinguish_groups


def simulated(
    random: np.random.Generator,
    *,
    groups: int = 6,
    spans: int = 12,
    items: int = 120,
    words: int = 300,
    by_span: float = 0.0,
    planted: float = 0.0,
) -> Texts:
    """Each item asked about each group with one of its spans; words occur by item, and more or less often by span.

    Args:
        random: The random generator.
        groups: How many groups.
        spans: How many spans a group.
        items: How many items.
        words: How many words there are.
        by_span: How much a span moves the log-odds of a word.
        planted: The share of the first group's texts that have one more word.
    """
    item, group = np.repeat(np.arange(items), groups), np.tile(np.arange(groups), items)
    span = group * spans + item % spans
    base = -2.5 + 0.8 * random.standard_normal(words)
    odds = base + 0.5 * random.standard_normal((items, words))[item]
    odds = odds + by_span * random.standard_normal((groups * spans, words))[span]
    present = random.random(odds.shape) < 1 / (1 + np.exp(-odds))
    more = (random.random(len(item)) < planted) & (group == 0)
    present = np.column_stack([present, more | (random.random(len(item)) < 0.01)])
    of_span = np.repeat(np.arange(groups), spans)
    stratum = np.tile(np.arange(spans), groups)
    return Texts(sparse.csr_array(present.astype(np.float32)), item, span, of_span, stratum)


@pytest.mark.verify
def test_spans_that_matter_are_no_difference_between_groups() -> None:
    shares = {}
    for by_span in (0.0, 0.6):
        p = [
            distinguish_groups(simulated(np.random.default_rng([7, draw]), by_span=by_span), draws=199, seed=draw).p
            for draw in range(40)
        ]
        shares[by_span] = float(np.mean(np.array(p) < 0.05))
    assert max(shares.values()) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40), shares


def test_a_word_in_a_sixth_of_one_groups_texts_is_found_and_named() -> None:
    detected = named = 0
    for draw in range(12):
        texts = simulated(np.random.default_rng([8, draw]), by_span=0.3, planted=0.16)
        result = distinguish_groups(texts, draws=299, seed=draw)
        detected += result.p < 0.05
        strongest = np.unravel_index(np.argmin(result.p_features, axis=None), result.p_features.shape)
        named += bool(result.kept[strongest[1]] == 300 and strongest[0] == 0)
    assert detected >= 11 and named >= 11, (detected, named)


def test_one_span_alone_proves_nothing_of_its_group() -> None:
    rejected = 0
    for draw in range(20):
        random = np.random.default_rng([9, draw])
        texts = simulated(random)
        present = texts.present.toarray()
        present[texts.span == 0, 300] = 1  # a single way to say the first group
        rejected += distinguish_groups(texts._replace(present=sparse.csr_array(present)), draws=199, seed=draw).p < 0.05
    assert rejected <= 4


def test_nothing_to_tell_gives_p_of_one() -> None:
    nothing = Texts(
        sparse.csr_array((6, 3), dtype=np.float32),
        np.arange(6) // 2,
        np.arange(6) % 2,
        np.arange(2),
        np.zeros(2, dtype=int),
    )
    assert distinguish_groups(nothing).p == 1.0
