"""Effects of a method on a recipe's gaps: by hand, where nothing is cured, and where something is."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.dialogue import recipe_effects
from fairness_pipeline.measures.dialogue.naming import NAMES_OTHER
from fairness_pipeline.measures.dialogue.recipe_effects import (
    CURE,
    LARGER,
    NONE_SHOWN,
    SMALLER,
    Control,
    compare_recipes,
)

SEEDS, MEASURES, REPEATS = 5, 5, 150
OF_CONTEXTS, OF_SEEDS = 1.5, 2.0
"""Standard errors of a difference in points: of the contexts, which all seeds share, and between seeds."""


@pytest.fixture
def no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips the search for the seeds needed, which takes most of the time and does not matter for effects."""
    monkeypatch.setattr(recipe_effects, "_power", lambda *arguments: {"power": 0.5, "seeds_needed": None})


def tables(differences: np.ndarray, error: float = OF_CONTEXTS) -> list[pa.Table]:
    """Significance tables of seeds, from an array of differences (seeds, measures)."""
    reach = 1.959964 * error
    return [
        pa.Table.from_pylist(
            [
                {
                    "measure": f"m{number}", "unit": "percent", "n": 1000, "difference": float(value),
                    "value_a": 30 + float(value) / 2, "value_b": 30 - float(value) / 2, "margin": 2.0,
                    "ci_low": float(value - reach), "ci_high": float(value + reach),
                }
                for number, value in enumerate(seed)
            ]
        )
        for seed in differences
    ]  # fmt: skip


def draw(
    random: np.random.Generator, gap: float, measures: int = MEASURES, seeds: int = SEEDS, of_seeds: float = OF_SEEDS
) -> np.ndarray:
    """Draws the differences that a recipe's seeds show on one sample of contexts; `gap` is each measure's true gap."""
    contexts = random.normal(0, OF_CONTEXTS, measures)
    return gap + contexts + random.normal(0, of_seeds, (seeds, measures))


def rate(effect: str, gaps: tuple[float, float, float | None], seed: int, **drawn: Any) -> float:
    """The rate at which any measure has this effect, for true gaps of base, method and control."""
    random, count = np.random.default_rng(seed), 0
    before, after, with_control = gaps
    for _ in range(REPEATS):
        controls = [] if with_control is None else [Control("mle", tables(draw(random, with_control, **drawn)))]
        base, method = (tables(draw(random, gap, **drawn)) for gap in (before, after))
        rows = compare_recipes(base, method, controls, controlled=True, alpha=0.05)
        count += effect in rows["effect"].to_pylist()
    return count / REPEATS


def test_by_hand() -> None:
    """Differences 10, 12, 11 and 1, 3, 2, then reordered; the contexts' error is 0.5. Three seeds show no cure."""
    base, method = np.array([[10.0], [12.0], [11.0]]), np.array([[1.0], [3.0], [2.0]])
    (row,) = compare_recipes(tables(base, 0.5), tables(method, 0.5), [], controlled=True, alpha=0.05).to_pylist()
    assert (row["difference_before"], row["difference_after"], row["change"]) == (11, 2, -9)
    assert row["share_left"] == pytest.approx(2 / 11)
    assert (row["sd_before"], row["sd_after"]) == (1, 1)
    assert row["ci_low"] == pytest.approx(-9 - 1.959964 * np.sqrt(0.5), abs=1e-4)  # all seeds change by the same amount
    assert row["p"] == pytest.approx(2 * scipy.stats.norm.sf(9 / np.sqrt(0.5)), rel=1e-3)
    # |1 - 5|, |3 - 6| and |2 - 5.5| below half: the least certain of the conditions of a cure
    half = np.array([-4.0, -3.0, -3.5])
    reach = -half.mean() / np.sqrt(half.var(ddof=1) / 3 + 0.25 + 0.25 / 4)
    assert scipy.stats.norm.sf(reach) < row["p_cure"] < scipy.stats.t.sf(reach, 2)
    assert row["effect"] == SMALLER
    # -7, -11, -9: the half width follows Cochran, with a t of its own for each part of the variance.
    (row,) = compare_recipes(
        tables(base, 0.5), tables(method[[2, 0, 1]] + [[1], [0], [-1]], 0.5), [], controlled=True, alpha=0.05
    ).to_pylist()
    reach = np.hypot(scipy.stats.t.ppf(0.975, 2) * 2 / np.sqrt(3), 1.959964 * np.sqrt(0.5))
    assert (row["change"], row["ci_high"]) == (-9, pytest.approx(-9 + reach, abs=1e-4))


def test_seeds_of_alternating_signs_are_no_smaller_gap() -> None:
    """The mean of 10, -10, ... is nearly 0, but every model's gap is as wide as before."""
    alternating = np.array([[10.0], [-10.0], [10.0], [-10.0], [9.0]])
    (row,) = compare_recipes(
        tables(np.full((5, 1), 10.0) + np.arange(5)[:, None] / 10, 0.5),
        tables(alternating, 0.5),
        [],
        controlled=True,
        alpha=0.05,
    ).to_pylist()
    assert row["difference_after"] == pytest.approx(1.8)
    assert row["share_left"] == pytest.approx(9.8 / 10.2)
    assert row["effect"] == NONE_SHOWN


def test_a_cure_is_shown_to_leave_less_than_half() -> None:
    base = np.full((5, 1), 20.0) + np.arange(5)[:, None] / 10
    for left, effect in ((0.9, SMALLER), (0.52, SMALLER), (0.45, CURE)):
        rows = compare_recipes(tables(base, 0.1), tables(left * base, 0.1), [], controlled=True, alpha=0.05)
        assert rows["effect"].to_pylist() == [effect]


def naming(table: pa.Table, a: float, b: float, n: int = 1000, verdict: str = "fair") -> pa.Table:
    """A seed's table with a row for the group that its answers name."""
    row = {"measure": NAMES_OTHER, "n": n, "value_a": a, "value_b": b, "verdict": verdict}
    return pa.Table.from_pylist([*({**measure_row, "verdict": "biased"} for measure_row in table.to_pylist()), row])


RIGHT = [(1.0, 1.0)] * 5


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (RIGHT, [(3.0, 3.0)] * 5, CURE),
        (RIGHT, [(10.9, 0.0)] * 5, CURE),
        (RIGHT, [(12.0, 12.0)] * 5, SMALLER),
        (RIGHT, [(50.0, 50.0, 1000, "biased")] * 5, SMALLER),
        ([(5.0, 13.0)] * 5, [(0.0, 38.0)] * 5, SMALLER),  # the worse side counts
        (RIGHT, [(19.0, 0.0)] * 5, SMALLER),  # side b names nobody
        (RIGHT, [(0.0, 0.0)] * 4 + [(0.0, 49.0, 1000, "biased")], SMALLER),  # one seed is reversed
        (
            [(0.0, 0.0)] * 4 + [(0.0, 100.0, 1000, "fair")],
            [(0.0, 20.0)] * 5,
            SMALLER,
        ),  # one seed of the base gives no allowance
        ([(40.0, 40.0, 20)] * 5, [(12.0, 12.0)] * 5, CURE),  # nothing is known of the base
        (RIGHT, [(50.0, 50.0, 20, "inconclusive")] * 5, CURE),  # hardly anybody is named
    ],
)
def test_a_cure_does_not_name_the_other_group(before: list[Any], after: list[Any], effect: str) -> None:
    base, method = tables(np.full((5, 1), 20.0) + np.arange(5)[:, None] / 10, 0.1), tables(np.full((5, 1), 1.0), 0.1)
    base_tables, method_tables = (
        [naming(table, *values) for table, values in zip(seeds, named, strict=True)]
        for seeds, named in ((base, before), (method, after))
    )
    (row,) = compare_recipes(base_tables, method_tables, [], controlled=True, alpha=0.05).to_pylist()
    assert (row["measure"], row["effect"], row["level"]) == ("m0", effect, "evens it out")


def test_a_cure_is_measured_on_the_deciding_reading() -> None:
    """The gap of the plain answers closes; the gap with the groups' words masked stays."""
    base = tables(np.column_stack([np.full(5, 20.0) + np.arange(5) / 10, np.full(5, 8.0) + np.arange(5) / 10]), 0.1)
    cured = tables(np.column_stack([np.full(5, 1.0), np.full(5, 8.0) + np.arange(5) / 10]), 0.1)

    def named(table: pa.Table) -> pa.Table:
        return table.set_column(0, "measure", pa.array(["m0", "m0_masked"]))

    (row,) = compare_recipes(
        list(map(named, base)), list(map(named, cured)), [], controlled=True, alpha=0.05
    ).to_pylist()
    assert (row["measure"], row["effect"]) == ("m0", NONE_SHOWN)
    assert row["difference_after"] == pytest.approx(8.2)


def test_a_control_that_does_as_much_takes_the_cure_away() -> None:
    random = np.random.default_rng(1)
    base, method, placebo = tables(draw(random, 15.0)), tables(draw(random, 1.0)), tables(draw(random, 1.0))
    training = tables(draw(random, 15.0, seeds=8))
    placebo_control, mle_control = Control("placebo", placebo), Control("mle", training)

    def effects(*controls: Control, controlled: bool = True) -> set[str]:
        rows = compare_recipes(base, method, controls, controlled=controlled, alpha=0.05)
        return set(rows["effect"].to_pylist())

    assert effects(controlled=False) == effects(mle_control, controlled=False) == {SMALLER}
    assert effects(mle_control) == {CURE}
    assert (
        effects(placebo_control)
        == effects(placebo_control, mle_control)
        == effects(mle_control, placebo_control)
        == {SMALLER}
    )
    (row, *_) = compare_recipes(base, method, [mle_control, placebo_control], controlled=True, alpha=0.05).to_pylist()
    assert row["control"] == "placebo"  # the control of which it is least certain
    (row, *_) = compare_recipes(base, method, [mle_control], controlled=True, alpha=0.05).to_pylist()
    of_first = [table.to_pylist()[0]["difference"] for table in training[:SEEDS]]  # as many seeds as the method has
    assert row["difference_control"] == pytest.approx(np.mean(of_first))
    assert set(compare_recipes(base, method, [], controlled=True, alpha=0.05)["effect"].to_pylist()) == {CURE}
    assert set(compare_recipes(method, base, [], controlled=True, alpha=0.05)["effect"].to_pylist()) == {LARGER}


@pytest.mark.usefixtures("no_power")
@pytest.mark.parametrize(
    ("gaps", "drawn"),
    [
        ((0.0, 0.0, None), {}),  # nothing planted, nothing cured
        ((0.0, 0.0, 0.0), {}),
        ((8.0, 8.0, None), {}),  # a gap that stays
        ((8.0, 8.0, 8.0), {"seeds": 3, "of_seeds": 8.0}),
        ((15.0, -15.0, None), {}),  # a gap that changes its sign
        ((15.0, 5.0, 5.0), {}),  # more training does as much
        ((30.0, 10.0, 10.0), {"measures": 12}),
        ((30.0, 15.0, None), {"measures": 12}),  # half is left, or a little more
        ((15.0, 9.0, None), {"of_seeds": 4.0}),
        ((30.0, 10.0, 10.0), {"measures": 12, "seeds": 3, "of_seeds": 8.0}),
    ],
)
@pytest.mark.verify
def test_false_cures_are_rare(gaps: tuple[float, float, float | None], drawn: dict[str, Any]) -> None:
    """At most 5% of tables hold a cure, within three standard errors."""
    assert rate(CURE, gaps, seed=3, **drawn) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)


@pytest.mark.verify
@pytest.mark.usefixtures("no_power")
@pytest.mark.parametrize(("seeds", "of_seeds"), [(5, 2.0), (5, 8.0), (3, 8.0), (2, 8.0)])
def test_a_method_that_makes_answers_alike_cures_nothing_where_nothing_is_wrong(seeds: int, of_seeds: float) -> None:
    """Its differences are nearly 0 in every seed, the base's vary around 0: they are smaller by chance alone."""
    random, cures = np.random.default_rng(5), 0
    for _ in range(REPEATS):
        base = tables(draw(random, 0.0, seeds=seeds, of_seeds=of_seeds))
        method = tables(random.normal(0, 0.05, (seeds, MEASURES)), 0.05)
        effects: Sequence[str] = compare_recipes(base, method, [], controlled=True, alpha=0.05)["effect"].to_pylist()
        cures += CURE in effects
    assert cures / REPEATS <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)


@pytest.mark.verify
@pytest.mark.usefixtures("no_power")
@pytest.mark.parametrize(
    ("gap", "error", "measures", "least"), [(15.0, 0.3, 12, 0.1), (10.0, 0.3, 6, 0.05), (85.0, 1.2, 1, 0.05)]
)
def test_seeds_that_scatter_around_zero_are_no_cure_where_half_is_left(
    gap: float, error: float, measures: int, least: float
) -> None:
    """Their absolute differences are half-normal: Student's t alone calls a cure in more than `least` of the tables."""
    random, cures, by_t = np.random.default_rng(6), 0, 0
    scatter = gap / 2 / np.sqrt(2 / np.pi)
    for _ in range(REPEATS):
        base = tables(gap + random.normal(0, 0.3, (SEEDS, measures)) + random.normal(0, error, measures), error)
        drawn = random.normal(0, scatter, (SEEDS, measures)) + random.normal(0, error, measures)
        rows = compare_recipes(base, tables(drawn, error), [], controlled=True, alpha=0.05)
        cures += CURE in rows["effect"].to_pylist()
        by_t += scipy.stats.ttest_1samp(np.abs(drawn), gap / 2, alternative="less").pvalue.min() < 0.05 / measures
    assert cures / REPEATS <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)
    assert by_t / REPEATS > least


def test_seeds_that_scatter_narrowly_around_zero_are_a_cure() -> None:
    base = np.full((5, 1), 20.0) + np.arange(5)[:, None] / 10
    method = np.array([[1.0], [-1.5], [0.5], [-0.5], [1.0]])
    rows = compare_recipes(tables(base, 0.3), tables(method, 0.3), [], controlled=True, alpha=0.05)
    assert rows["effect"].to_pylist() == [CURE]


@pytest.mark.parametrize(("of_base", "of_method", "of_control"), [(1, 1, 1), (5, 5, 4), (4, 5, 5)])
def test_too_few_seeds_are_refused(of_base: int, of_method: int, of_control: int) -> None:
    base, method, control = (tables(np.ones((count, 1))) for count in (of_base, of_method, of_control))
    with pytest.raises(FairnessError, match=f"expected two seeds or more of a method, .* found {of_method} and"):
        compare_recipes(base, method, [Control("mle", control)], controlled=True, alpha=0.05)


@pytest.mark.usefixtures("no_power")
def test_a_cure_is_found() -> None:
    """Power: 2 points are left of gaps of 15, and a control leaves all of them."""
    assert rate(CURE, (15.0, 2.0, 15.0), seed=4) > 0.95
