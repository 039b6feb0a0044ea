"""What a method makes of a recipe's gaps: by hand, where nothing is cured, and where something is."""

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
    EFFECTS,
    LARGER,
    NO_GAP,
    NONE_SHOWN,
    SMALLER,
    Control,
    compare_recipes,
)

SEEDS, MEASURES, REPEATS = 5, 5, 150
OF_CONTEXTS, OF_SEEDS = 1.5, 2.0
"""Standard errors of a difference: that of the contexts, which all seeds share, and between seeds (points)."""


@pytest.fixture
def no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for the seeds needed takes most of the time, and a count of effects does not look at it."""
    monkeypatch.setattr(recipe_effects, "_power", lambda *given: {"power": 0.5, "seeds_needed": None})


def tables(differences: np.ndarray, error: float = OF_CONTEXTS) -> list[pa.Table]:
    """Significance tables of seeds, from differences (seeds, measures)."""
    reach = 1.959964 * error
    return [
        pa.Table.from_pylist(
            [
                {
                    "measure": f"m{place}", "unit": "percent", "n": 1000, "difference": float(value),
                    "value_a": 30 + float(value) / 2, "value_b": 30 - float(value) / 2, "margin": 2.0,
                    "ci_low": float(value - reach), "ci_high": float(value + reach),
                }
                for place, value in enumerate(own)
            ]
        )
        for own in differences
    ]  # fmt: skip


def draw(
    random: np.random.Generator, gap: float, measures: int = MEASURES, seeds: int = SEEDS, of_seeds: float = OF_SEEDS
) -> np.ndarray:
    """A recipe with a true gap in every measure: what its seeds show on one draw of contexts."""
    contexts = random.normal(0, OF_CONTEXTS, measures)
    return gap + contexts + random.normal(0, of_seeds, (seeds, measures))


def rate(effect: str, gaps: tuple[float, float, float | None], seed: int, **drawn: Any) -> float:
    """How often any measure has this effect, for true gaps of base, method and control."""
    random, found = np.random.default_rng(seed), 0
    before, after, with_control = gaps
    for _ in range(REPEATS):
        controls = [] if with_control is None else [Control("mle", tables(draw(random, with_control, **drawn)))]
        base, own = (tables(draw(random, gap, **drawn)) for gap in (before, after))
        rows = compare_recipes(base, own, controls, controlled=True, alpha=0.05)
        found += effect in rows["effect"].to_pylist()
    return found / REPEATS


def test_by_hand() -> None:
    """Differences 10, 12, 11 and 1, 3, 2, then another order; errors 0.5 of the contexts, each. No cure of three seeds."""
    base, own = np.array([[10.0], [12.0], [11.0]]), np.array([[1.0], [3.0], [2.0]])
    (row,) = compare_recipes(tables(base, 0.5), tables(own, 0.5), [], controlled=True, alpha=0.05).to_pylist()
    assert (row["difference_before"], row["difference_after"], row["change"]) == (11, 2, -9)
    assert row["share_left"] == pytest.approx(2 / 11)
    assert (row["sd_before"], row["sd_after"]) == (1, 1)
    assert row["ci_low"] == pytest.approx(-9 - 1.959964 * np.sqrt(0.5), abs=1e-4)  # all seeds change by as much
    assert row["p"] == pytest.approx(2 * scipy.stats.norm.sf(9 / np.sqrt(0.5)), rel=1e-3)
    # |1 - 5|, |3 - 6| and |2 - 5.5| below half: the least sure of what a cure needs
    half = np.array([-4.0, -3.0, -3.5])
    reach = -half.mean() / np.sqrt(half.var(ddof=1) / 3 + 0.25 + 0.25 / 4)
    assert scipy.stats.norm.sf(reach) < row["p_cure"] < scipy.stats.t.sf(reach, 2)
    assert row["effect"] == SMALLER
    # -7, -11, -9: the half width is that of Cochran, each part of the variance by its own t.
    (row,) = compare_recipes(
        tables(base, 0.5), tables(own[[2, 0, 1]] + [[1], [0], [-1]], 0.5), [], controlled=True, alpha=0.05
    ).to_pylist()
    reach = np.hypot(scipy.stats.t.ppf(0.975, 2) * 2 / np.sqrt(3), 1.959964 * np.sqrt(0.5))
    assert (row["change"], row["ci_high"]) == (-9, pytest.approx(-9 + reach, abs=1e-4))


def test_seeds_that_turn_round_are_no_smaller_gap() -> None:
    """The mean of 10, -10, ... is nearly 0, every model's gap as wide as before."""
    turned = np.array([[10.0], [-10.0], [10.0], [-10.0], [9.0]])
    (row,) = compare_recipes(
        tables(np.full((5, 1), 10.0) + np.arange(5)[:, None] / 10, 0.5),
        tables(turned, 0.5),
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
    """A seed's table with the row of what its answers name."""
    row = {"measure": NAMES_OTHER, "n": n, "value_a": a, "value_b": b, "verdict": verdict}
    return pa.Table.from_pylist([*({**own, "verdict": "biased"} for own in table.to_pylist()), row])


RIGHT = [(1.0, 1.0)] * 5


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (RIGHT, [(3.0, 3.0)] * 5, CURE),
        (RIGHT, [(10.9, 0.0)] * 5, CURE),
        (RIGHT, [(12.0, 12.0)] * 5, SMALLER),
        (RIGHT, [(50.0, 50.0, 1000, "biased")] * 5, SMALLER),
        ([(5.0, 13.0)] * 5, [(0.0, 38.0)] * 5, SMALLER),  # the side that is named worse
        (RIGHT, [(19.0, 0.0)] * 5, SMALLER),  # and side b names nobody
        (RIGHT, [(0.0, 0.0)] * 4 + [(0.0, 49.0, 1000, "biased")], SMALLER),  # one seed turned round
        (
            [(0.0, 0.0)] * 4 + [(0.0, 100.0, 1000, "fair")],
            [(0.0, 20.0)] * 5,
            SMALLER,
        ),  # no allowance for one of the base
        ([(40.0, 40.0, 20)] * 5, [(12.0, 12.0)] * 5, CURE),  # of the base nothing is known
        (RIGHT, [(50.0, 50.0, 20, "inconclusive")] * 5, CURE),  # hardly anybody is named
    ],
)
def test_a_cure_does_not_name_the_other_group(before: list[Any], after: list[Any], effect: str) -> None:
    base, own = tables(np.full((5, 1), 20.0) + np.arange(5)[:, None] / 10, 0.1), tables(np.full((5, 1), 1.0), 0.1)
    was, now = (
        [naming(table, *said) for table, said in zip(each, how, strict=True)]
        for each, how in ((base, before), (own, after))
    )
    (row,) = compare_recipes(was, now, [], controlled=True, alpha=0.05).to_pylist()
    assert (row["measure"], row["effect"], row["level"]) == ("m0", effect, "evens it out")


def test_the_deciding_reading_is_what_a_cure_is_measured_on() -> None:
    """The gap of the answers as they are closes; that with the groups' words masked stays."""
    whole = tables(np.column_stack([np.full(5, 20.0) + np.arange(5) / 10, np.full(5, 8.0) + np.arange(5) / 10]), 0.1)
    cured = tables(np.column_stack([np.full(5, 1.0), np.full(5, 8.0) + np.arange(5) / 10]), 0.1)

    def named(table: pa.Table) -> pa.Table:
        return table.set_column(0, "measure", pa.array(["m0", "m0_masked"]))

    (row,) = compare_recipes(
        list(map(named, whole)), list(map(named, cured)), [], controlled=True, alpha=0.05
    ).to_pylist()
    assert (row["measure"], row["effect"]) == ("m0", NONE_SHOWN)
    assert row["difference_after"] == pytest.approx(8.2)


def test_a_control_that_does_as_much_takes_the_cure_away() -> None:
    random = np.random.default_rng(1)
    base, own, other = tables(draw(random, 15.0)), tables(draw(random, 1.0)), tables(draw(random, 1.0))
    more = tables(draw(random, 15.0, seeds=8))
    same, longer = Control("placebo", other), Control("mle", more)

    def effects(*controls: Control, controlled: bool = True) -> set[str]:
        rows = compare_recipes(base, own, controls, controlled=controlled, alpha=0.05)
        return set(rows["effect"].to_pylist())

    assert effects(controlled=False) == effects(longer, controlled=False) == {SMALLER}
    assert effects(longer) == {CURE}
    assert effects(same) == effects(same, longer) == effects(longer, same) == {SMALLER}
    (row, *_) = compare_recipes(base, own, [longer, same], controlled=True, alpha=0.05).to_pylist()
    assert row["control"] == "placebo"  # of which it is least sure
    (row, *_) = compare_recipes(base, own, [longer], controlled=True, alpha=0.05).to_pylist()
    of_first = [table.to_pylist()[0]["difference"] for table in more[:SEEDS]]  # of as many seeds as the method has
    assert row["difference_control"] == pytest.approx(np.mean(of_first))
    assert set(compare_recipes(base, own, [], controlled=True, alpha=0.05)["effect"].to_pylist()) == {CURE}
    assert set(compare_recipes(own, base, [], controlled=True, alpha=0.05)["effect"].to_pylist()) == {LARGER}
    assert {CURE, SMALLER, LARGER, NONE_SHOWN, NO_GAP} == set(EFFECTS)


@pytest.mark.usefixtures("no_power")
@pytest.mark.parametrize(
    ("gaps", "drawn"),
    [
        ((0.0, 0.0, None), {}),  # nothing planted, nothing cured
        ((0.0, 0.0, 0.0), {}),
        ((8.0, 8.0, None), {}),  # a gap that stays
        ((8.0, 8.0, 8.0), {"seeds": 3, "of_seeds": 8.0}),
        ((15.0, -15.0, None), {}),  # one that turns round
        ((15.0, 5.0, 5.0), {}),  # more training does as much
        ((30.0, 10.0, 10.0), {"measures": 12}),
        ((30.0, 15.0, None), {"measures": 12}),  # half is left, and a little more than half
        ((15.0, 9.0, None), {"of_seeds": 4.0}),
        ((30.0, 10.0, 10.0), {"measures": 12, "seeds": 3, "of_seeds": 8.0}),
    ],
)
def test_what_is_no_cure_is_hardly_ever_called_one(
    gaps: tuple[float, float, float | None], drawn: dict[str, Any]
) -> None:
    """At most 5% of tables hold a cure; bounds of the test: three standard errors."""
    assert rate(CURE, gaps, seed=3, **drawn) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)


@pytest.mark.usefixtures("no_power")
@pytest.mark.parametrize(("seeds", "of_seeds"), [(5, 2.0), (5, 8.0), (3, 8.0), (2, 8.0)])
def test_a_method_that_makes_answers_alike_cures_nothing_where_nothing_is_wrong(seeds: int, of_seeds: float) -> None:
    """Its differences are nearly 0 in every seed, the base's vary about 0: smaller by chance alone, and no cure."""
    random, found = np.random.default_rng(5), 0
    for _ in range(REPEATS):
        base = tables(draw(random, 0.0, seeds=seeds, of_seeds=of_seeds))
        own = tables(random.normal(0, 0.05, (seeds, MEASURES)), 0.05)
        effects: Sequence[str] = compare_recipes(base, own, [], controlled=True, alpha=0.05)["effect"].to_pylist()
        found += CURE in effects
    assert found / REPEATS <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)


@pytest.mark.usefixtures("no_power")
@pytest.mark.parametrize(
    ("gap", "error", "measures", "least"), [(15.0, 0.3, 12, 0.1), (10.0, 0.3, 6, 0.05), (85.0, 1.2, 1, 0.05)]
)
def test_seeds_that_scatter_round_nothing_are_no_cure_where_half_is_left(
    gap: float, error: float, measures: int, least: float
) -> None:
    """Their absolute differences are half-normal: Student's t alone calls more of them a cure than `least` of tables."""
    random, found, by_t = np.random.default_rng(6), 0, 0
    scatter = gap / 2 / np.sqrt(2 / np.pi)
    for _ in range(REPEATS):
        base = tables(gap + random.normal(0, 0.3, (SEEDS, measures)) + random.normal(0, error, measures), error)
        drawn = random.normal(0, scatter, (SEEDS, measures)) + random.normal(0, error, measures)
        rows = compare_recipes(base, tables(drawn, error), [], controlled=True, alpha=0.05)
        found += CURE in rows["effect"].to_pylist()
        by_t += scipy.stats.ttest_1samp(np.abs(drawn), gap / 2, alternative="less").pvalue.min() < 0.05 / measures
    assert found / REPEATS <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPEATS)
    assert by_t / REPEATS > least


def test_seeds_that_scatter_narrowly_round_nothing_are_a_cure() -> None:
    base = np.full((5, 1), 20.0) + np.arange(5)[:, None] / 10
    own = np.array([[1.0], [-1.5], [0.5], [-0.5], [1.0]])
    rows = compare_recipes(tables(base, 0.3), tables(own, 0.3), [], controlled=True, alpha=0.05)
    assert rows["effect"].to_pylist() == [CURE]


@pytest.mark.parametrize(("of_base", "of_method", "of_control"), [(1, 1, 1), (5, 5, 4), (4, 5, 5)])
def test_too_few_seeds_are_refused(of_base: int, of_method: int, of_control: int) -> None:
    base, own, other = (tables(np.ones((count, 1))) for count in (of_base, of_method, of_control))
    with pytest.raises(FairnessError, match=f"expected two seeds or more of a method, .* found {of_method} and"):
        compare_recipes(base, own, [Control("mle", other)], controlled=True, alpha=0.05)


@pytest.mark.usefixtures("no_power")
def test_a_cure_is_found() -> None:
    """Power: gaps of 15 points of which 2 are left, beside a control that leaves them all."""
    assert rate(CURE, (15.0, 2.0, 15.0), seed=4) > 0.95
