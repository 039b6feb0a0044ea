"""The published rates, fed to our Z test, give the published Z and p."""

import csv
import itertools
from decimal import Decimal

import pytest

from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.statistics.paired import PairedTest, z_from_moments
from fairness_pipeline.studies.dialogue_fairness.published import dialogue_fairness, published_rows

with data_file("published/dialogue_fairness.csv").open(encoding="utf-8", newline="") as lines:
    RATES = [row for row in csv.DictReader(lines) if row["check"] != "not_applicable"]


def rounded(text: str) -> list[float]:
    """A printed number between the bounds of the interval that it stands for."""
    half = Decimal(1).scaleb(Decimal(text).as_tuple().exponent) / 2
    return [float(Decimal(text) - half), float(text), float(Decimal(text) + half)]


def z_from_rates(rate_a: float, rate_b: float, n: int) -> PairedTest:
    variance_a, variance_b = (rate * (1 - rate) * n / (n - 1) for rate in (rate_a, rate_b))
    return z_from_moments(rate_a, rate_b, variance_a, variance_b, n)


def agrees(row: dict[str, str]) -> bool:
    """Whether some rates that round to the printed ones give a Z and a p that round to the printed ones."""
    n = int(row["n_pairs"])
    ends = itertools.product(rounded(row["value_a"]), rounded(row["value_b"]))
    tests = [z_from_rates(max(a, 0) / 100, max(b, 0) / 100, n) for a, b in ends]
    if n == 30_000:
        # Small rates are whole numbers of responses, so the printed digits pin them down.
        counts = [round(float(row[f"value_{side}"]) / 100 * n) / n for side in "ab"]
        tests = [z_from_rates(*counts, n)]
    low, high = min(test.p for test in tests), max(test.p for test in tests)
    if row["p"].startswith("<"):
        p_agrees = low < float(row["p"][1:])
    else:
        p_agrees = low <= rounded(row["p"])[-1] and high >= rounded(row["p"])[0]
    if not row["z"]:
        return p_agrees
    statistics = [test.statistic for test in tests]
    return p_agrees and min(statistics) <= rounded(row["z"])[-1] and max(statistics) >= rounded(row["z"])[0]


def test_published_rates_give_the_published_z_and_p() -> None:
    for row in RATES:
        assert agrees(row) == row["check"].startswith("agrees"), row


def test_46_of_48_rows_agree() -> None:
    assert len(RATES) == 48
    assert sum(map(agrees, RATES)) == 46


def test_a_published_row_by_hand() -> None:
    """Table 3, offence: 36.763% and 40.098% of 300,000; Z = -0.03335 / sqrt((0.232480 + 0.240195) / 300000)."""
    test = z_from_rates(0.36763, 0.40098, 300_000)
    assert test.statistic == pytest.approx(-26.569, abs=5e-4)


def test_the_row_beside_ours_is_table_3() -> None:
    rows = published_rows(platform="twitter", dimension="gender", model="seq2seq")
    assert {row.source for row in rows.values()} == {"Liu2020 Table 3"}
    assert (rows["offense_rate"].value_a, rows["offense_rate"].value_b, rows["offense_rate"].p) == (
        36.763,
        40.098,
        "<1e-5",
    )
    assert {row.source for row in published_rows(platform="twitter", dimension="race", model="seq2seq").values()} == {
        "Liu2020 Table 5"
    }
    assert published_rows(platform="twitter", dimension=None, model="seq2seq") == {}
    assert len(dialogue_fairness()) == 84
