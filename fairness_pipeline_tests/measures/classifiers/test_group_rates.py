"""Rates by group: by hand, against fairlearn, and the level, power and coverage of their tests in simulations."""

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.measures.classifiers.group_rates import (
    RATES,
    GroupRatesSettings,
    Predictions,
    compare_error_rates,
    compare_methods,
    difference,
    measure_performance,
    rates,
)
from fairness_pipeline.measures.classifiers.many_groups import compare_many_groups
from fairness_pipeline.models.classifiers.prediction_files import CLASSIFIER_PREDICTIONS
from fairness_pipeline.workspace.published import PublishedRate


def table(
    predictions: np.ndarray, labels: np.ndarray, groups: np.ndarray, authors: np.ndarray | None = None
) -> pa.Table:
    """A table of predictions from an array (seeds, texts) of predictions or probabilities."""
    seeds, count = predictions.shape
    author_ids = np.arange(count) if authors is None else authors
    return pa.table(
        {
            "text_id": [f"t{i}" for i in range(count)] * seeds,
            "label": np.tile(labels, seeds),
            "author_group": ["abcdefgh"[group] for group in groups] * seeds,
            "author_id": [str(author) for author in author_ids] * seeds,
            "balanced": [True] * count * seeds,
            "probability": predictions.astype(float).ravel(),
            "prediction": (predictions >= 0.5).astype(np.int64).ravel(),
            "seed": np.repeat(np.arange(1, seeds + 1), count),
        },
        schema=CLASSIFIER_PREDICTIONS,
    )


def cells(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and groups of `size` texts in each of the four cells."""
    return np.repeat([0, 1, 0, 1], size), np.repeat([0, 0, 1, 1], size)


def judged(predictions: pa.Table, **settings) -> dict[str, dict]:
    rows = compare_error_rates(predictions, GroupRatesSettings(**settings), {}).to_pylist()
    return {row["measure"]: row for row in rows}


def test_rates_by_a_hand_made_confusion_table() -> None:
    """Group a: 1 of 4 negatives called positive, 1 of 4 positives called negative; group b: 3 of 4, and 0 of 4."""
    labels, groups = cells(4)
    predicted = np.array([[1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1]])
    predictions = table(predicted, labels, groups)
    rows = judged(predictions)
    assert [(rows[measure]["value_a"], rows[measure]["value_b"]) for measure in RATES] == [
        (25, 75),
        (25, 0),
        (50, 87.5),
    ]
    values = {row["metric"]: row["value"] for row in measure_performance(predictions, {}).to_pylist()}
    assert values == pytest.approx(
        {"accuracy": 100 * 11 / 16, "f1": 100 * 14 / 19, "fped": 50, "fned": 25, "dpd": 37.5}
    )
    assert values["dpd"] == (values["fped"] + values["fned"]) / 2  # labels are balanced, gaps opposed


def test_gaps_of_one_sign_cancel_in_dpd() -> None:
    labels, groups = cells(4)
    predicted = np.array([[1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]])  # group a has errors of both kinds, b none
    rows = judged(table(predicted, labels, groups))
    assert rows["fp_rate"]["difference"] == rows["fn_rate"]["difference"] == 50 and rows["dp_rate"]["difference"] == 0


def test_the_rates_are_fairlearns() -> None:
    from fairlearn.metrics import (
        MetricFrame,
        demographic_parity_difference,
        false_negative_rate,
        false_positive_rate,
        selection_rate,
    )

    random = np.random.default_rng(1)
    labels, groups = cells(125)
    predicted = (random.random((1, 500)) < 0.3 + 0.3 * labels + 0.1 * groups).astype(int)
    predictions = table(predicted, labels, groups)
    frame = MetricFrame(
        metrics={"fp_rate": false_positive_rate, "fn_rate": false_negative_rate, "dp_rate": selection_rate},
        y_true=labels, y_pred=predicted[0], sensitive_features=groups,
    )  # fmt: skip
    ours = Predictions.of(predictions)
    for measure in RATES:
        assert rates(ours, measure)[0] == pytest.approx(frame.by_group[measure].to_numpy())
    (dpd,) = (row["value"] for row in measure_performance(predictions, {}).to_pylist() if row["metric"] == "dpd")
    assert dpd == pytest.approx(100 * demographic_parity_difference(labels, predicted[0], sensitive_features=groups))
    kept = (labels == 0) | (random.random(500) < 0.3)  # with fewer positive texts the rate is as if labels were 1:1
    ours = Predictions.of(table(predicted[:, kept], labels[kept], groups[kept]))
    for group in (0, 1):
        in_group = groups[kept] == group
        weights = np.where(
            labels[kept][in_group] == 1, (labels[kept][in_group] == 0).sum() / labels[kept][in_group].sum(), 1.0
        )
        rate = selection_rate(labels[kept][in_group], predicted[0, kept][in_group], sample_weight=weights)
        assert rates(ours, "dp_rate")[0, group] == pytest.approx(rate)


def test_the_error_is_that_of_a_bootstrap_by_group() -> None:
    """Texts are drawn again within their cell of label and group, 4,000 times."""
    random = np.random.default_rng(2)
    labels, groups = cells(400)
    predicted = (random.random((1, 1600)) < 0.25 + 0.4 * labels + 0.1 * groups).astype(int)
    original = Predictions.of(table(predicted, labels, groups))
    for measure in RATES:
        gaps = []
        for _ in range(4000):
            indices = np.concatenate(
                [
                    random.choice(np.where((labels == label) & (groups == group))[0], 400)
                    for group in (0, 1)
                    for label in (0, 1)
                ]
            )
            resampled = Predictions(predicted[:, indices], labels[indices], groups[indices], np.arange(1600))
            a, b = rates(resampled, measure)[0]
            gaps.append(a - b)
        assert difference(original, measure).error == pytest.approx(np.std(gaps), rel=0.06)


def simulated(
    random,
    runs: int,
    seeds: int,
    gap: float,
    between: float,
    size: int = 120,
    per_author: int = 1,
    spread: float = 0.15,
):
    """Yields the DPR's row of each run: each text has a propensity, each seed its own gap around `gap`."""
    labels, groups = cells(size)
    authors = np.arange(4 * size) // per_author
    for _ in range(runs):
        propensity = np.clip(0.2 + 0.5 * labels + random.normal(0, spread, 4 * size // per_author)[authors], 0.02, 0.98)
        gaps = gap + random.normal(0, between, seeds)
        chance = np.clip(propensity[None] + np.where(groups == 0, 0.5, -0.5)[None] * gaps[:, None], 0, 1)
        predicted = (random.random((1, 4 * size)) < chance).astype(int)  # a text is easy or hard for all seeds
        yield judged(table(predicted, labels, groups, authors))["dp_rate"]


@pytest.mark.parametrize(("seeds", "between", "per_author"), [(1, 0.0, 1), (1, 0.0, 6), (5, 0.0, 1), (5, 0.04, 1)])
@pytest.mark.verify
def test_false_alarms_at_the_nominal_rate(seeds: int, between: float, per_author: int) -> None:
    """Nothing is planted; some texts of an author move together, and some seeds differ."""
    rows = list(simulated(np.random.default_rng(3), 400, seeds, 0.0, between, per_author=per_author))
    alarms = np.mean([row["p_paired"] < 0.05 for row in rows])
    assert alarms <= 0.078  # 0.05 and 2.5 standard errors
    coverage = np.mean([row["ci_low"] <= 0 <= row["ci_high"] for row in rows])
    assert coverage >= 0.92


def test_a_planted_gap_is_detected_with_power_and_covered() -> None:
    rows = list(simulated(np.random.default_rng(4), 200, 3, 0.2, 0.02, spread=0.03))  # few probabilities outside 0 to 1
    assert np.mean([row["verdict"] == "biased" for row in rows]) > 0.9
    assert np.mean([row["ci_low"] <= 20 <= row["ci_high"] for row in rows]) >= 0.92


def test_no_error_among_few_texts_is_not_shown_to_be_fair() -> None:
    labels, groups = cells(20)
    rows = judged(table(labels[None], labels, groups))
    assert all(row["verdict"] == "inconclusive" and row["ci_high"] > 1 for row in rows.values())
    labels, groups = cells(20_000)
    predicted = labels.copy()
    predicted[::10] = 1 - predicted[::10]
    assert {row["verdict"] for row in judged(table(predicted[None], labels, groups)).values()} == {"fair"}


def test_with_published_values_beside() -> None:
    labels, groups = cells(50)
    printed = {"fp_rate": PublishedRate(46.97, 23.38)}
    rows = compare_error_rates(table(labels[None], labels, groups), GroupRatesSettings(), printed).to_pylist()
    assert (rows[0]["published_value_a"], rows[0]["published_value_b"]) == (46.97, 23.38)


def effects(random, gap_before: float, gap_after: float, seeds: int = 3, size: int = 300) -> dict[str, dict]:
    labels, groups = cells(size)
    tables = []
    difficulty = random.random(4 * size)
    for gap in (gap_before, gap_after):
        chance = 0.3 + 0.4 * labels + np.where(groups == 0, 0.5, -0.5) * gap
        noise = random.normal(0, 0.1, (seeds, 4 * size))
        tables.append(table(((difficulty[None] + noise) < chance[None]).astype(int), labels, groups))
    verdicts = pa.Table.from_pylist([{"measure": name, "verdict": "biased", "margin": 2.0} for name in RATES])
    return {row["measure"]: row for row in compare_methods(*tables, (verdicts, verdicts), 0.05).to_pylist()}


def test_a_cure_is_called_one_and_nothing_is_not() -> None:
    random = np.random.default_rng(5)
    cured = effects(random, 0.3, 0.05)
    assert {row["effect"] for row in cured.values()} == {"smaller gap"}
    assert {row["level"] for row in cured.values()} == {"evens it out"}
    for row in cured.values():
        assert row["value_a_after"] - row["value_b_after"] == pytest.approx(row["difference_after"])
        assert row["share_left"] == pytest.approx(abs(row["difference_after"] / row["difference_before"]))
    assert cured["dp_rate"]["ci_low"] < -25 + 8 and cured["dp_rate"]["change"] == pytest.approx(-25, abs=5)
    alarms = [row["effect"] != "no change shown" for _ in range(60) for row in effects(random, 0.3, 0.3).values()]
    assert np.mean(alarms) <= 0.08


def by_authors(random, sizes: tuple[list[int], list[int]], spread: float) -> dict[str, dict]:
    """The rows of one training; each author has a rate of their own, and writes texts of both labels."""
    labels, groups, authors, chance = [], [], [], []
    for group, sizes_of_group in enumerate(sizes):
        for number, size in enumerate(sizes_of_group):
            rate = np.clip(0.4 + random.normal(0, spread), 0.02, 0.98)
            labels += [0, 1] * (size // 2)
            groups += [group] * (2 * (size // 2))
            authors += [100 * group + number] * (2 * (size // 2))
            chance += [rate] * (2 * (size // 2))
    predicted = (random.random((1, len(labels))) < np.array(chance)).astype(int)
    return judged(table(predicted, np.array(labels), np.array(groups), np.array(authors)))


@pytest.mark.parametrize(
    "sizes",
    [([80, 60, 60], [2] * 100), ([100] + [10] * 9, [100] + [10] * 9), ([4] * 50, [4] * 50), ([100, 100], [4] * 50)],
    ids=["three against a hundred", "one writes half", "equal", "two against fifty"],
)
@pytest.mark.verify
def test_false_alarms_with_few_and_unequal_authors(sizes: tuple[list[int], list[int]]) -> None:
    random = np.random.default_rng(7)
    rows = [by_authors(random, sizes, 0.15) for _ in range(300)]
    for measure in RATES:
        assert np.mean([row[measure]["p_paired"] < 0.05 for row in rows]) <= 0.082  # 0.05 and 2.5 standard errors


def test_nothing_is_known_where_one_author_wrote_a_cell() -> None:
    row = by_authors(np.random.default_rng(1), ([100], [2] * 50), 0.1)["dp_rate"]
    assert row["p_paired"] == 1 and row["ci_low"] == -100 and row["verdict"] == "inconclusive"
    assert row["authors_a"] == 1 and row["authors_b"] == 50 and row["paired_test"] == "t over authors"


@pytest.mark.parametrize("seeds", [2, 3])
@pytest.mark.verify
def test_false_alarms_with_few_seeds_that_differ(seeds: int) -> None:
    """The seeds' variance is small by chance in some draws; it must not be taken as known."""
    rows = list(simulated(np.random.default_rng(8), 400, seeds, 0.0, 0.1, size=200, spread=0.1))
    assert np.mean([row["p_paired"] < 0.05 for row in rows]) <= 0.078


def test_one_training_shows_no_change() -> None:
    """Two trainings of one method differ, too; one training of each cannot show a method's effect."""
    rows = effects(np.random.default_rng(9), 0.4, 0.0, seeds=1)
    assert {row["effect"] for row in rows.values()} == {"no change shown"}
    assert {row["test"] for row in rows.values()} == {"not told from another seed: one training"}


def many(seed: int, planted: float, base: float = 0.05, sizes: tuple[int, ...] = (2000, 600, 300, 150)) -> pa.Table:
    """Texts of four groups of different sizes and shares of labels; group b has more false positives, by `planted`."""
    random = np.random.default_rng([seed, 29])
    groups = np.repeat(np.arange(len(sizes)), sizes)
    labels = (random.random(len(groups)) < np.array([0.5, 0.2, 0.7, 0.4])[groups]).astype(np.int64)
    chance = np.where(labels == 1, 0.9, base + planted * (groups == 1))
    return table((random.random((1, len(groups))) < chance).astype(float), labels, groups)


NAMED = ("White", "Black", "Latine", "Asian")


@pytest.mark.verify
def test_four_groups_of_different_sizes_keep_the_level() -> None:
    """Rates of 1%, where t tests of single groups reject in 13 to 94% of draws."""
    alarms = 0
    for seed in range(60):
        rows = compare_many_groups(many(seed, 0.0, 0.01), GroupRatesSettings(), NAMED).to_pylist()
        alarms += any(row["p_paired"] < 0.05 for row in rows if row["measure"] == "fp_rate")
    assert alarms <= 8  # 5% of 60, and three standard errors


@pytest.mark.verify
def test_of_four_groups_the_one_that_differs_is_named() -> None:
    hits, false_alarms = 0, 0
    for seed in range(5):
        rows = compare_many_groups(many(seed, 0.1), GroupRatesSettings(), NAMED).to_pylist()
        against_others = {
            row["group"]: row["verdict"]
            for row in rows
            if row["measure"].startswith("fp_rate: ") and row["contrast"] == "others"
        }
        hits += against_others["Black"] == "biased"
        false_alarms += sum(verdict == "biased" for group, verdict in against_others.items() if group != "Black")
    # A quarter of the texts is by Black authors; White authors would differ from the others if these included them.
    rows = compare_many_groups(many(0, 0.1, sizes=(4000, 1500, 400, 300)), GroupRatesSettings(), NAMED).to_pylist()
    against_others = {
        row["group"]: row for row in rows if row["measure"].startswith("fp_rate: ") and row["contrast"] == "others"
    }
    assert against_others["Black"]["verdict"] == "biased" != against_others["White"]["verdict"]
    assert hits == 5 and false_alarms <= 2  # White authors are compared with others without Black ones
    by_measure = {row["measure"]: row for row in rows}
    pair = by_measure["dp_rate: White − Black"]
    assert pair["value_a"] == pytest.approx(50, abs=5) and pair["value_b"] == pytest.approx(
        52.5, abs=5
    )  # as if labels were 1:1


def test_opposite_differences_of_unbalanced_labels_do_not_hide_dpr() -> None:
    """One group of three has 3 points more false positives and 20 fewer true ones; four texts in five are negative."""
    rejections = 0
    for seed in range(6):
        random = np.random.default_rng([seed, 31])
        groups = np.repeat([0, 1, 2], 700)
        labels = (random.random(2100) < 0.2).astype(np.int64)
        in_last_group = groups == 2
        chance = np.where(labels == 1, 0.7 - 0.2 * in_last_group, 0.2 + 0.03 * in_last_group)
        rows = compare_many_groups(
            table((random.random((1, 2100)) < chance).astype(float), labels, groups),
            GroupRatesSettings(),
            ("a", "b", "c"),
        ).to_pylist()
        rejections += next(row for row in rows if row["measure"] == "dp_rate")["p_paired"] < 0.05
    assert rejections >= 4


@pytest.mark.verify
@pytest.mark.parametrize("sizes", [(3000, 400), (500, 60)])
def test_rare_rates_of_groups_of_different_sizes_keep_the_level(sizes: tuple[int, int]) -> None:
    """Misses of 3 and 10% among few positive texts, where t alone rejects in 12 and 10% of draws."""
    rate, alarms = 0.03 if sizes[0] == 3000 else 0.1, []
    for seed in range(200):
        random = np.random.default_rng([seed, 7])
        groups = np.repeat([0, 1], sizes)
        labels = (random.random(len(groups)) < np.where(groups == 0, 0.5, 0.3)).astype(int)
        predicted = (random.random(len(groups)) < np.where(labels == 1, 1 - rate, rate)).astype(float)[None]
        rows = judged(table(predicted, labels, groups))
        alarms.append([rows[measure]["p_paired"] < 0.05 for measure in RATES])
    assert (np.mean(alarms, axis=0) <= 0.095).all()  # 5%, and three standard errors
