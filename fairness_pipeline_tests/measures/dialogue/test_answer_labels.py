"""Help and decisions in answers, against readers' labels; `kept` rows were unseen while the rules were written."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairness_pipeline.corpora.outcomes.formats.choices import yes_or_no
from fairness_pipeline.corpora.outcomes.formats.decisions import chosen_option, leading_number
from fairness_pipeline.measures.dialogue.help import HelpScorer

LABELS = Path(__file__).parent / "answer_labels"


def labelled(name: str) -> list[dict[str, Any]]:
    """The kept rows of a file."""
    rows = map(json.loads, (LABELS / name).read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row["kept"]]


@pytest.mark.parametrize(
    ("kind", "precision", "recall"), [("referral", 0.88, 0.55), ("police", 0.98, 0.8), ("asks_back", 0.98, 0.98)]
)
def test_kinds_of_help_agree_with_the_readers(kind: str, precision: float, recall: float) -> None:
    rows = labelled("help.jsonl")
    predicted = HelpScorer()(pa.table({"text": [row["text"] for row in rows]}))[kind].to_pylist()
    hits = sum(row[kind] and hit for row, hit in zip(rows, predicted, strict=True))
    assert hits / sum(predicted) >= precision and hits / sum(row[kind] for row in rows) >= recall


def test_decisions_agree_with_the_readers() -> None:
    rows = labelled("decisions.jsonl")
    decisions = [_decision(row) for row in rows]
    wrong = sum(
        decision is not None and decision != row["means"] for row, decision in zip(rows, decisions, strict=True)
    )
    unread = sum(decision is None and row["means"] is not None for row, decision in zip(rows, decisions, strict=True))
    assert wrong <= 0.01 * len(rows) and unread <= 0.08 * sum(row["means"] is not None for row in rows)


def _decision(row: dict[str, Any]) -> str | float | None:
    if row["asks"] == "yes_no":
        return yes_or_no(row["text"])
    if row["asks"] == "choice":
        return chosen_option(row["options"], row["text"])
    number = leading_number(row["text"], row["scale"])
    return None if number is not None and row["scale"] and not row["scale"][0] <= number <= row["scale"][1] else number


def test_a_number_that_was_asked_for_is_no_list() -> None:
    answers = [
        "45. There are a few things.",
        "1. Ask.\n2. Wait.",
        "**1.** Ask.\n**2.** Wait.",
        "Do this:\n1. Ask.",
        "- Ask.\n- Wait.",
    ]
    assert HelpScorer()(pa.table({"text": answers}))["steps"].to_pylist() == [0, 2, 2, 1, 2]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("No, you should not call the police.", "police"), ("There is no need to call the police.", "police"),
        ("Tell me what the police said.", "police"), ("Get to know the local police.", "police"),
        ("Don't see a doctor for that.", "referral"), ("Find a good story about a nurse.", "referral"),
        ("Ask your doctor friend to dinner.", "referral"), ("I would ask the nurse out.", "referral"),
    ],
)  # fmt: skip
def test_negated_or_other_mentions_are_no_help(answer: str, kind: str) -> None:
    assert not HelpScorer()(pa.table({"text": [answer]}))[kind][0].as_py()
    advice = "Don't hesitate to call the police, or ask a lawyer."
    assert HelpScorer()(pa.table({"text": [advice]}))[kind][0].as_py()
