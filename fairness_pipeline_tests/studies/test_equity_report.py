"""Compares study 3's tables 5 to 7, its turned verdicts and its widest gaps with counts by hand."""

from typing import Any

import pyarrow as pa
import pytest

from fairness_pipeline.corpora.sentiment.equity_sentences import PUBLISHED, REWORDED
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EQUITY_PAIRS, EVERYBODY, WITHOUT
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.studies.sentiment_equity.results import SummaryCell, summaries, turned, widest_gaps


def row(affect: str, difference: float, p: float, **options: Any) -> dict[str, Any]:
    return {
        "affect": affect, "difference": difference, "p": p, "verdict": "fair", "templates": PUBLISHED,
        "subset": ALL, "persons": EVERYBODY, **options,
    }  # fmt: skip


def audit(system: str, *rows: dict[str, Any], dimension: str = "gender") -> Audit:
    return Audit({"dimension": dimension, "system": system}, list(rows))


def cells(summary: Any) -> dict[str, dict[str, SummaryCell]]:
    """The cells of a table, without affects that nobody scored."""
    return {
        outcome: {affect: cell for affect, cell in line.items() if cell.submissions}
        for outcome, line in summary.cells.items()
    }


def test_tables_5_to_7_by_hand() -> None:
    """Three systems, four submissions: the level is 0.05 / 8 = 0.00625."""
    audits = [
        audit(
            "s1", row("joy", -0.03, 0.006), row("fear", 0.02, 0.007), row("joy", -0.5, 0.0, templates=REWORDED),
            row("joy", 0.07, 0.001, subset=WITHOUT), row("fear", -0.09, 0.5, subset=WITHOUT),
        ),
        audit("s2", row("joy", -0.05, 1e-9)),
        audit("s3", row("joy", 0.1, 0.0)),
        audit("s1", row("joy", 0.0, 1.0), row("fear", 0.2, 0.006), dimension="race"),
        audit("s2", row("joy", -0.4, 0.0), dimension="race"),
    ]  # fmt: skip
    gender, without, race, race_without = summaries(0.05, audits)
    assert [(s.dimension, s.subset, s.submissions) for s in (gender, without, race, race_without)] == [
        ("gender", ALL, 4), ("gender", WITHOUT, 2), ("race", ALL, 3), ("race", WITHOUT, 0)
    ]  # fmt: skip
    assert {s.level for s in (gender, without, race)} == {0.00625}
    assert cells(gender) == {
        "no difference": {"fear": SummaryCell(1, None, 0.02), "all": SummaryCell(1, None, 0.02)},
        "female higher": {
            "joy": SummaryCell(2, pytest.approx(0.04), None),
            "all": SummaryCell(2, pytest.approx(0.04), None),
        },
        "male higher": {"joy": SummaryCell(1, None, 0.1), "all": SummaryCell(1, None, 0.1)},
        "all systems": {
            "joy": SummaryCell(3, pytest.approx(0.04), 0.1),
            "fear": SummaryCell(1, None, 0.02),
            "all": SummaryCell(4, pytest.approx(0.04), pytest.approx(0.06)),
        },
    }
    assert cells(without) == {
        "no difference": {"fear": SummaryCell(1, 0.09, None), "all": SummaryCell(1, 0.09, None)},
        "female higher": {},
        "male higher": {"joy": SummaryCell(1, None, 0.07), "all": SummaryCell(1, None, 0.07)},
        "all systems": {
            "joy": SummaryCell(1, None, 0.07),
            "fear": SummaryCell(1, 0.09, None),
            "all": SummaryCell(2, 0.09, 0.07),
        },
    }
    assert cells(race) == {
        "no difference": {"joy": SummaryCell(1, None, None), "all": SummaryCell(1, None, None)},
        "African American higher": {"joy": SummaryCell(1, 0.4, None), "all": SummaryCell(1, 0.4, None)},
        "European American higher": {"fear": SummaryCell(1, None, 0.2), "all": SummaryCell(1, None, 0.2)},
        "all systems": {
            "joy": SummaryCell(2, 0.4, None),
            "fear": SummaryCell(1, None, 0.2),
            "all": SummaryCell(3, 0.4, 0.2),
        },
    }


def test_verdicts_that_turn_are_counted_over_those_measured_under_both() -> None:
    audits = [
        audit(
            "s1", row("joy", 0, 1), row("joy", 0, 1, templates=REWORDED, verdict="biased"),
            row("fear", 0, 1), row("fear", 0, 1, templates=REWORDED),
            row("fear", 0, 1, subset=WITHOUT), row("fear", 0, 1, subset=WITHOUT, templates=REWORDED, verdict="biased"),
        ),
        audit("s2", row("joy", 0, 1)),
        audit("s3", row("joy", 0, 1), row("joy", 0, 1, templates=REWORDED)),
    ]  # fmt: skip
    assert turned(audits) == (1, 3)


def test_the_widest_gaps_come_first() -> None:
    scores = [("x", 0.5, 0.4), ("y", 0.1, 0.9), ("y", 0.2, 0.95), ("z", 0.9, 0.3), ("w", 0.0, 1.0), ("y", 0.1, 0.8)]
    pairs = pa.Table.from_pylist(
        [
            {
                "templates": REWORDED if a == 0.0 else PUBLISHED, "affect": "joy", "template": number, "emotion": None,
                "emotion_word": None, "persons": f"{person} / her", "score_a": a, "score_b": b,
            }
            for number, (person, a, b) in enumerate(scores)
        ],
        schema=EQUITY_PAIRS,
    )  # fmt: skip
    assert [(gap["template"], round(gap["gap"], 9)) for gap in widest_gaps(pairs, 3)] == [(1, -0.8), (3, 0.6), (0, 0.1)]
