"""Tests a fast part of the line-up: a draw or two of every sixth cheap system of a kind; `make verify` runs the whole."""

import numpy as np
import pytest

from fairness_pipeline.project.study import STUDIES
from fairness_pipeline_tests.lineup import power
from fairness_pipeline_tests.lineup.everybody import systems
from fairness_pipeline_tests.lineup.shared import Outcome, System, outcome, wrong

FAST = [system for system in systems() if system.fast]
DRAWS = 2


def a_sixth(fast: list[System]) -> list[System]:
    """Every sixth system of each study and truth, one at least."""
    kinds: dict[tuple[str, str], list[System]] = {}
    for system in fast:
        kinds.setdefault((system.study, system.truth), []).append(system)
    return [system for kind in kinds.values() for system in kind[::6]]


@pytest.mark.parametrize("system", a_sixth(FAST), ids=lambda system: system.key)
def test_the_rules_distinguish_innocent_from_guilty(system: System) -> None:
    sure = system.name == "AFINN" or (system.truth == "guilty" and system.power > 0.8)
    draws = [system.judge(draw) for draw in range(1 if sure else DRAWS)]
    result = outcome(system, draws)
    if system.truth == "guilty":
        assert result.found >= (1 if system.power > 0.8 else 1 / 2), result
    else:  # at a rate of 5%, both draws are biased in the same row with a probability of 0.25%
        assert result.biased <= 1 / 2, result


def test_every_study_has_at_least_eight_innocent_and_guilty_systems() -> None:
    names_by_kind: dict[tuple[str, str], set[str]] = {}
    for system in systems():
        names_by_kind.setdefault((system.study, system.truth), set()).add(system.name)
    counts = {key: len(names) for key, names in names_by_kind.items() if key[1] in ("innocent", "guilty")}
    # A language model can be innocent or guilty in few ways, but in five dimensions.
    assert all(count >= (4 if study == "language_model_bias" else 8) for (study, _), count in counts.items()), counts
    assert len({study for study, _ in counts}) == len(STUDIES)


def test_a_wrong_outcome_is_reported() -> None:
    system = FAST[0]
    innocent = System(system.study, "", "", "innocent", system.judge)
    guilty = System(system.study, "", "", "guilty", system.judge, power=0.9)
    assert "biased in 50%" in str(wrong(innocent, Outcome(20, 0.5, 0.5, 0.5, {})))
    assert "found in 50%" in str(wrong(guilty, Outcome(20, 0.5, 0.5, 0.5, {})))
    assert wrong(innocent, Outcome(20, 0.05, 0.1, 0.05, {})) is None and wrong(guilty, Outcome(20, 1, 1, 1, {})) is None


def test_power_is_what_the_page_says() -> None:
    large_case, null_case = power.CASES[0], power.CASES[-2]
    assert power.power(400, large_case, draws=20)[0] > 0.9
    assert power.power(400, null_case, draws=40)[0] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)
