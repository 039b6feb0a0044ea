"""The test of whether a gap got smaller: by hand, at its nominal rate, and with power."""

import numpy as np
import pytest
from scipy.stats import t

from fairness_pipeline.lexicons.text import tokenize
from fairness_pipeline.statistics.change import change_of_difference, change_of_diversity, change_of_groups
from fairness_pipeline.statistics.resampling import NGrams


def test_by_hand() -> None:
    before, after = np.array([1.0, 1, 0, 1, 1]), np.array([0.0, 1, 0, 1, 0])
    change = change_of_difference(before, after)
    assert (change.before, change.after) == (0.8, 0.4)
    assert change.change == pytest.approx(-0.4)
    errors = [np.std([*contrast, 1, -1], ddof=1) / np.sqrt(7) for contrast in (after - before, after + before)]
    p_values = [2 * t.sf(abs(mean) / error, 6) for mean, error in zip((-0.4, 1.2), errors, strict=True)]
    assert change.p == pytest.approx(max(p_values))
    assert p_values[1] < 0.05  # no doubt about the signs
    reach = t.ppf(0.975, 6) * errors[0]
    assert (change.low, change.high) == pytest.approx((-0.4 - reach, -0.4 + reach))


def test_a_gap_that_turns_round_is_no_smaller() -> None:
    before = np.array([1.0, 0, 1, 1, 0, 1])
    change = change_of_difference(before, -before)
    assert (change.change, change.p) == (0, 1.0)


def test_a_change_is_the_same_whichever_side_is_called_a() -> None:
    random = np.random.default_rng(5)
    before, after = random.normal(0.4, 1, 50), random.normal(-0.1, 1, 50)
    change, mirrored = change_of_difference(before, after), change_of_difference(-before, -after)
    assert (change.change, change.low, change.high, change.p) == pytest.approx(
        (mirrored.change, mirrored.low, mirrored.high, mirrored.p)
    )


def test_without_any_difference() -> None:
    change = change_of_difference(np.zeros(5), np.zeros(5))
    assert (change.change, change.p) == (0.0, 1.0)
    assert change.low < 0 < change.high
    assert change_of_difference(np.ones(2), np.zeros(2)).p > 0.05  # two equal changes are no proof
    assert change_of_difference(np.zeros(1), np.ones(1)).p == 1.0


@pytest.mark.parametrize(("mean", "correlation"), [(0.05, 0.9), (0.1, 0.9), (0.1, 0.0), (0.3, 0.5)])
def test_a_turned_gap_keeps_the_nominal_rate_and_its_interval_covers(mean: float, correlation: float) -> None:
    """Equal gaps of opposite sign in correlated answers, where both signs are easily mistaken."""
    random = np.random.default_rng(6)
    covariance = [[1, correlation], [correlation, 1]]
    draws = random.multivariate_normal([mean, -mean], covariance, size=(1500, 200))
    changes = [change_of_difference(draw[:, 0], draw[:, 1]) for draw in draws]
    assert np.mean([change.p < 0.05 for change in changes]) < 0.065
    assert np.mean([change.low <= 0 <= change.high for change in changes]) > 0.935


@pytest.mark.parametrize(("rate_a", "rate_b"), [(0.2, 0.2), (0.3, 0.2)])
def test_false_positives_stay_at_the_nominal_rate(rate_a: float, rate_b: float) -> None:
    """Two models with the same gap, none or ten points: 5% at most (fewer where both gaps are 0)."""
    random = np.random.default_rng(4)
    rejected = 0
    for _ in range(1500):
        differences = [
            (random.random(400) < rate_a).astype(float) - (random.random(400) < rate_b) for _ in ("before", "after")
        ]
        rejected += change_of_difference(*differences).p < 0.05
    share = rejected / 1500
    assert share < 0.065
    assert share > (0.035 if rate_a != rate_b else 0.0)


def test_a_gap_that_closes_is_found() -> None:
    random = np.random.default_rng(4)
    detected = 0
    for _ in range(200):
        before = (random.random(800) < 0.3).astype(float) - (random.random(800) < 0.2)
        after = (random.random(800) < 0.2).astype(float) - (random.random(800) < 0.2)
        change = change_of_difference(before, after)
        detected += change.p < 0.05 and change.change < 0
    assert detected > 160


def test_diversity() -> None:
    """Before, side b gets one answer only; after, both sides draw from the same answers."""
    random = np.random.default_rng(1)
    texts = [f"{a} {b}" for a in "abcdefghij" for b in "klmnopqrst"]
    ngrams = NGrams([tokenize(text) for text in texts])
    a, same = random.integers(0, 100, 300), np.zeros(300, dtype=int)
    closed = change_of_diversity((ngrams, ngrams), (a, same), (a, random.integers(0, 100, 300)), blocks=20)
    assert closed["diversity"].before == pytest.approx(ngrams.diversity(a).diversity - ngrams.diversity(same).diversity)
    assert closed["diversity"].change < 0
    assert closed["diversity"].p < 0.001
    unchanged = change_of_diversity((ngrams, ngrams), (a, same), (a, same), blocks=20)
    assert {name: (c.change, c.p) for name, c in unchanged.items()} == dict.fromkeys(unchanged, (0.0, 1.0))


def test_false_positives_of_diversity() -> None:
    random = np.random.default_rng(2)
    texts = [f"{a} {b}" for a in "abcdefghij" for b in "klmnopqrst"]
    ngrams = NGrams([tokenize(text) for text in texts])
    rejected = 0
    for _ in range(200):
        draws = [random.integers(0, 100, 200) for _ in range(4)]
        changes = change_of_diversity((ngrams, ngrams), (draws[0], draws[1]), (draws[2], draws[3]), blocks=20)
        rejected += changes["diversity"].p < 0.05
    assert rejected / 200 < 0.1


def test_words_that_move_together_are_the_sample() -> None:
    """20 words, each with its own change between two runs: over pairs alone half of the draws show a change."""
    random = np.random.default_rng(11)
    words, draws = np.repeat(np.arange(20), 20), 300
    over_pairs = over_words = detected = 0
    for _ in range(draws):
        moved = random.normal(0, 0.5, 20)
        before = random.normal(1.0, 1, 400)
        after = before + moved[words] + random.normal(0, 0.5, 400)
        over_pairs += change_of_difference(before, after).p < 0.05
        over_words += change_of_difference(before, after, clusters=[words]).p < 0.05
        detected += change_of_difference(before, after + 0.5, clusters=[words]).p < 0.05
    assert over_pairs / draws > 0.3
    assert over_words / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5
    assert detected / draws > 0.9


def test_texts_of_one_side_each_are_compared_between_the_sides() -> None:
    """By hand with Welch's error; and at its level if both sides shift alike."""
    on_a = np.arange(6) < 3
    before, after = np.array([1.0, 0, 1, 0, 0, 0]), np.array([0.0, 0, 1, 0, 1, 0])
    change = change_of_groups(before, after, on_a, step=0)
    assert (change.before, change.after) == pytest.approx((2 / 3, 0))
    moved = after - before
    errors = [np.std(moved[mask], ddof=1) / np.sqrt(3) for mask in (on_a, ~on_a)]
    total = after + before
    sums = [np.std(total[mask], ddof=1) / np.sqrt(3) for mask in (on_a, ~on_a)]
    p_values = [2 * t.sf((2 / 3) / np.hypot(*by_side), 2) for by_side in (errors, sums)]
    assert change.p == pytest.approx(max(p_values))
    random, alarms, draws = np.random.default_rng(3), 0, 400
    side = np.arange(200) % 2 == 0
    for _ in range(draws):
        first = random.random(200) < np.where(side, 0.6, 0.2)
        second = random.random(200) < np.where(side, 0.7, 0.3)
        alarms += change_of_groups(first.astype(float), second.astype(float), side).p < 0.05
    assert alarms / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5


def test_two_samples_of_words_that_cross_keep_the_level() -> None:
    """Attribute and target words both move a change that is truly 0; with the larger of the two errors alone, 10% and
    more are called."""
    random = np.random.default_rng(7)
    calls = {False: 0, True: 0}
    for _ in range(300):
        attribute, target = random.integers(40, size=400), random.integers(40, size=400)
        words = random.normal(0, 0.3, 40)[attribute] + random.normal(0, 0.3, 40)[target]
        before = 1.0 + random.normal(0, 0.5, 400)
        after = before + words + random.normal(0, 0.3, 400)
        for crossing in calls:
            change = change_of_difference(before, after, step=0.0, clusters=[attribute, target], crossing=crossing)
            calls[crossing] += change.p < 0.05
    assert calls[True] <= 0.05 * 300 + 8 < calls[False]
