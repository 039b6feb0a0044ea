"""A gap that varies between units: false alarms, power, and the size of what is found, on planted truths."""

import numpy as np
import pytest

from fairness_pipeline.statistics.spread import Spread, spread_between

UNITS, WORDS = 60, 20


def drawn(seed: int, lean: float, *, of_words: float = 0.0) -> Spread:
    """Yes or no answers: units lean either way by `lean`; each word's two forms have rates of their own."""
    random = np.random.default_rng(seed)
    unit, word = np.repeat(np.arange(UNITS), WORDS), np.tile(np.arange(WORDS), UNITS)
    selected = np.sort(random.permutation(len(unit))[:800])
    unit, word = unit[selected], word[selected]
    sides = np.where(random.permutation(UNITS) % 2, 1.0, -1.0)[unit]
    rates = [0.2 + of_words * random.uniform(-1, 1, WORDS)[word] for _ in "ab"]
    a, b = (random.random(len(unit)) < rates[side] + lean * sides * (1, -1)[side] / 2 for side in (0, 1))
    spread = spread_between(a.astype(float) - b, unit, word, seed)
    assert spread
    return spread


@pytest.mark.parametrize("of_words", [0.0, 0.2])
def test_false_alarms_keep_their_level(of_words: float) -> None:
    """Words whose answers differ from their counterparts' alike in each unit are no spread."""
    p = np.array([drawn(seed, 0.0, of_words=of_words).p for seed in range(200)])
    assert (p <= 0.05).mean() <= 0.1  # 3 standard errors above 5%


def test_opposite_units_are_detected_and_measured() -> None:
    spreads = [drawn(seed, 0.3) for seed in range(20)]
    assert np.mean([spread.p <= 0.01 for spread in spreads]) >= 0.9
    assert np.mean([spread.typical for spread in spreads]) == pytest.approx(0.3, abs=0.04)
    assert np.mean([spread.upper >= 0.3 for spread in spreads]) >= 0.9
    assert all(spread.units == UNITS for spread in spreads)


def test_a_gap_that_is_the_same_in_every_unit_is_no_spread() -> None:
    unit, word = np.repeat(np.arange(UNITS), WORDS), np.tile(np.arange(WORDS), UNITS)
    spread = spread_between(np.ones(len(unit)), unit, word, 0)
    assert spread and spread.typical < 1e-6 and spread.p > 0.9 and (spread.towards_a, spread.towards_b) == (UNITS, 0)


@pytest.mark.parametrize("gap", [0.2, 0.6])
def test_a_mean_gap_takes_nothing_from_the_spread(gap: float) -> None:
    """With few pairs a unit, flipped signs would turn the mean into variance."""
    spreads = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        unit, word = random.integers(200, size=500), random.integers(20, size=500)
        of_unit = 0.25 * np.where(np.arange(200) % 2, 1, -1)
        spreads.append(spread_between(gap + of_unit[unit] + random.normal(0, 0.2, 500), unit, word, seed))
    assert all(spread and spread.p <= 0.01 for spread in spreads)
    assert np.mean([spread.typical for spread in spreads if spread]) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("units", [12, 40])
def test_the_bound_treats_units_as_a_sample(units: int) -> None:
    """At a true standard deviation of 0.1 of units drawn from many."""
    above = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        unit, word = np.repeat(np.arange(units), WORDS), np.tile(np.arange(WORDS), units)
        spread = spread_between(random.normal(0, 0.1, units)[unit] + random.normal(0, 0.3, len(unit)), unit, word, seed)
        above.append(spread is not None and spread.upper >= 0.1)
    assert np.mean(above) >= 0.85  # 3 standard errors below 95%


def test_what_is_not_finite_or_empty_tells_nothing() -> None:
    unit, word = np.repeat(np.arange(UNITS), WORDS), np.tile(np.arange(WORDS), UNITS)
    assert spread_between(np.where(unit == 3, np.nan, 0.0), unit, word, 0) is None
    assert spread_between(np.zeros(0), np.zeros(0, int), np.zeros(0, int), 0) is None


def test_units_of_one_word_each_or_few_words_tell_nothing() -> None:
    assert spread_between(np.ones(40), np.arange(40), np.arange(40) % 20, 0) is None
    assert spread_between(np.ones(40), np.arange(40) % 4, np.arange(40) % 5, 0) is None
