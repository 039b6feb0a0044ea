"""The one rule of controls: they overrule a shown difference only by showing something themselves."""

import numpy as np
import pytest
import scipy

from fairness_pipeline.measures.classifiers.group_rates import FP
from fairness_pipeline.statistics.controls import TOO_SMALL, control_doubts, p_as_large, p_smaller, too_small
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.verdicts import on_content
from fairness_pipeline_tests.lineup.classifiers import controlled


@pytest.mark.parametrize("sign", [1, -1])
def test_p_is_that_of_students_t_in_either_direction(sign: int) -> None:
    excess = Estimate(-6.0 * sign, 2.0, 9.0)
    assert p_smaller(10.0 * sign, excess) == pytest.approx(scipy.stats.t.sf(3.0, 9))
    assert p_smaller(-10.0 * sign, excess) == 1.0  # the gap is larger than predicted
    assert p_as_large(10.0 * sign, Estimate(4.0 * sign, 2.0, 9.0)) == pytest.approx(scipy.stats.t.sf(2.0, 9))


def test_what_is_a_little_smaller_is_still_there() -> None:
    assert p_smaller(10.0, Estimate(-4.9, 0.01)) == 1.0
    assert p_smaller(10.0, Estimate(-5.1, 0.01)) < 1e-9
    assert p_smaller(0.0, Estimate(-5.0, 0.01)) == 1.0


def test_the_finding_of_57_points_stays() -> None:
    """+56.8 points (40.7 to 72.9); the control, 27 texts, +63.3 (p 0.09): it shows neither."""
    error = 63.3 / scipy.stats.norm.isf(0.045)
    assert p_smaller(56.8, Estimate(63.3 - 56.8, error)) == 1.0
    row = {"note": f"one thing; {too_small('27 texts')}"}
    assert [doubt.said for doubt in control_doubts(row)] == [f"{TOO_SMALL} (27 texts)"]
    assert control_doubts({"note": None}) == control_doubts({"note": ""}) == []


def test_the_reading_that_decides() -> None:
    assert on_content("biased", "fair") == "artefact"  # shown to be small
    assert on_content("biased", "inconclusive", p_whole=0.02, p_control=0.2) == "biased"
    assert on_content("biased", "inconclusive", p_whole=0.03, p_control=0.2) == "inconclusive"  # two chances
    assert on_content("biased", "inconclusive", p_whole=0.001, p_control=0.04) == "artefact"


@pytest.mark.parametrize("size", [20, 60, 200, 2000])
@pytest.mark.verify
def test_a_control_that_shows_nothing_overrules_nothing(size: int) -> None:
    """A gap of 40 points that no word of the label makes (of 49 with a true gap of 30 points, 35 were overruled)."""
    verdicts = [controlled(True, size, draw)[FP] for draw in range(20)]
    assert verdicts.count("biased") >= 19, verdicts


def test_a_control_that_is_large_enough_overrules() -> None:
    verdicts = [controlled(False, 2000, draw)[FP] for draw in range(20)]
    assert verdicts.count("artefact") >= 18, verdicts  # the control may show a gap by chance


def test_the_controls_own_test_holds_its_level() -> None:
    """Groups that are merely inferred again, less reliably: the predicted gap remains; 5% call it smaller."""
    random = np.random.default_rng(5)
    overruled, draws = 0, 400
    for _ in range(draws):
        difference = random.normal(10, 3)
        remaining = random.normal(7, 4)
        excess = Estimate(remaining - 0.7 * difference, float(np.hypot(4, 0.7 * 3)))
        overruled += p_smaller(0.7 * difference, excess) < 0.05
    assert overruled / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5
