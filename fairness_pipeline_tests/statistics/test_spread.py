"""A gap that varies between units: false alarms, power, and the size of what is found, on planted truths."""

import numpy as np
import pytest

from fairness_pipeline.statistics.spread import Spread, spread_between

UNITS, WORDS = 60, 20


def drawn(seed: int, lean: float, *, of_words: float = 0.0) -> Spread:
    """Yes or no answers: units lean either way by `lean`; each word's two forms have rates of their own."""
    random = np.random.default_rng(seed)
    unit, word = np.repeat(np.arange(UNITS), WORDS), np.tile(np.arange(WORDS), UNITS)
    kept = np.sort(random.permutation(len(unit))[:800])
    unit, word = unit[kept], word[kept]
    sides = np.where(random.permutation(UNITS) % 2, 1.0, -1.0)[unit]
    own = [0.2 + of_words * random.uniform(-1, 1, WORDS)[word] for _ in "ab"]
    a, b = (random.random(len(unit)) < own[side] + lean * sides * (1, -1)[side] / 2 for side in (0, 1))
    found = spread_between(a.astype(float) - b, unit, word, seed)
    assert found
    return found


@pytest.mark.parametrize("of_words", [0.0, 0.2])
def test_false_alarms_keep_their_level(of_words: float) -> None:
    """Words that are answered otherwise than their counterparts, the same in each unit, are no spread."""
    p = np.array([drawn(seed, 0.0, of_words=of_words).p for seed in range(200)])
    assert (p <= 0.05).mean() <= 0.1  # 3 standard errors above 5%


def test_opposite_units_are_found_and_measured() -> None:
    found = [drawn(seed, 0.3) for seed in range(20)]
    assert np.mean([own.p <= 0.01 for own in found]) >= 0.9
    assert np.mean([own.typical for own in found]) == pytest.approx(0.3, abs=0.04)
    assert np.mean([own.upper >= 0.3 for own in found]) >= 0.9
    assert all(own.units == UNITS for own in found)


def test_a_gap_that_is_the_same_in_every_unit_is_no_spread() -> None:
    unit, word = np.repeat(np.arange(UNITS), WORDS), np.tile(np.arange(WORDS), UNITS)
    found = spread_between(np.ones(len(unit)), unit, word, 0)
    assert found and found.typical < 1e-6 and found.p > 0.9 and (found.towards_a, found.towards_b) == (UNITS, 0)


@pytest.mark.parametrize("gap", [0.2, 0.6])
def test_a_mean_gap_takes_nothing_from_the_spread(gap: float) -> None:
    """With few pairs a unit, flipped signs would make variance of it."""
    found = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        unit, word = random.integers(200, size=500), random.integers(20, size=500)
        of_unit = 0.25 * np.where(np.arange(200) % 2, 1, -1)
        found.append(spread_between(gap + of_unit[unit] + random.normal(0, 0.2, 500), unit, word, seed))
    assert all(own and own.p <= 0.01 for own in found)
    assert np.mean([own.typical for own in found if own]) == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("units", [12, 40])
def test_the_bound_holds_units_for_a_sample(units: int) -> None:
    """At a true standard deviation of 0.1 of units drawn from many."""
    above = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        unit, word = np.repeat(np.arange(units), WORDS), np.tile(np.arange(WORDS), units)
        found = spread_between(random.normal(0, 0.1, units)[unit] + random.normal(0, 0.3, len(unit)), unit, word, seed)
        above.append(found is not None and found.upper >= 0.1)
    assert np.mean(above) >= 0.85  # 3 standard errors below 95%


def test_what_is_not_finite_or_empty_tells_nothing() -> None:
    unit, word = np.repeat(np.arange(UNITS), WORDS), np.tile(np.arange(WORDS), UNITS)
    assert spread_between(np.where(unit == 3, np.nan, 0.0), unit, word, 0) is None
    assert spread_between(np.zeros(0), np.zeros(0, int), np.zeros(0, int), 0) is None


def test_units_of_one_word_each_or_few_words_tell_nothing() -> None:
    assert spread_between(np.ones(40), np.arange(40), np.arange(40) % 20, 0) is None
    assert spread_between(np.ones(40), np.arange(40) % 4, np.arange(40) % 5, 0) is None
