"""How the variants of Debiased-Chat are compared."""

import pytest

from fairness_pipeline_tests.verify.debiased_chat_study import after_as_many, at_equal_perplexity, shared

PLACEBO = [1.0, 1.1, 1.2], [0.4, 0.3, 0.2]


def test_one_that_only_forgets_faster_is_no_better() -> None:
    """It closes more in as many iterations, and as much at equal perplexity."""
    faster = [1.0, 1.2, 1.4], [0.4, 0.2, 0.0]
    assert at_equal_perplexity(faster, PLACEBO) == pytest.approx(0)
    assert shared(faster, PLACEBO) == pytest.approx(0.5)
    assert after_as_many(faster, PLACEBO) == pytest.approx(0.1 - 0.25)


def test_one_that_closes_more_for_its_perplexity_is_better() -> None:
    better = [1.0, 1.1, 1.2], [0.4, 0.2, 0.0]
    assert at_equal_perplexity(better, PLACEBO) == pytest.approx(-0.1, abs=1e-3)
    assert shared(better, PLACEBO) == 1


def test_what_never_was_equally_perplexed_is_not_compared() -> None:
    assert at_equal_perplexity(([2.0, 2.1], [0.4, 0.3]), PLACEBO) is None
    assert shared(([2.0, 2.1], [0.4, 0.3]), PLACEBO) == 0
