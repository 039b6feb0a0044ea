"""A fast part of the line-up: a draw or two of each system that costs little; the whole is `make verify`'s."""

import numpy as np
import pytest

from fairness_pipeline.project.study import STUDIES
from fairness_pipeline_tests.lineup import power
from fairness_pipeline_tests.lineup.everybody import systems
from fairness_pipeline_tests.lineup.shared import Outcome, System, outcome, wrong

FAST = [system for system in systems() if system.fast]
DRAWS = 2


@pytest.mark.parametrize("system", FAST, ids=lambda system: system.key)
def test_the_rules_tell_innocent_from_guilty(system: System) -> None:
    sure = system.name == "AFINN" or (system.truth == "guilty" and system.power > 0.8)
    draws = [system.judge(draw) for draw in range(1 if sure else DRAWS)]
    found = outcome(system, draws)
    if system.truth == "guilty":
        assert found.found >= (1 if system.power > 0.8 else 1 / 2), found
    else:  # of two draws at 5% or less both are biased in one row in 0.25%
        assert found.biased <= 1 / 2, found


def test_every_study_has_eight_of_either_kind_at_least() -> None:
    counted: dict[tuple[str, str], set[str]] = {}
    for system in systems():
        counted.setdefault((system.study, system.truth), set()).add(system.name)
    least = {key: len(names) for key, names in counted.items() if key[1] in ("innocent", "guilty")}
    # A language model is innocent or guilty in few ways, but is so in five dimensions.
    assert all(count >= (4 if study == "language_model_bias" else 8) for (study, _), count in least.items()), least
    assert len({study for study, _ in least}) == len(STUDIES)


def test_an_outcome_that_is_wrong_is_told() -> None:
    system = FAST[0]
    innocent = System(system.study, "", "", "innocent", system.judge)
    guilty = System(system.study, "", "", "guilty", system.judge, power=0.9)
    assert "biased in 50%" in str(wrong(innocent, Outcome(20, 0.5, 0.5, 0.5, {})))
    assert "found in 50%" in str(wrong(guilty, Outcome(20, 0.5, 0.5, 0.5, {})))
    assert wrong(innocent, Outcome(20, 0.05, 0.1, 0.05, {})) is None and wrong(guilty, Outcome(20, 1, 1, 1, {})) is None


def test_power_is_what_the_page_says() -> None:
    big, small = power.CASES[0], power.CASES[-2]
    assert power.power(400, big, draws=20)[0] > 0.9
    assert power.power(400, small, draws=40)[0] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
