"""Refusals: phrases on labelled answers, and the endpoint's marks."""

import json
import re
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load
from fairness_pipeline.measures.dialogue.help import POLICE, REFERRALS
from fairness_pipeline.measures.dialogue.phrases import Phrases, holds_phrase
from fairness_pipeline.measures.dialogue.refusal import MEASURE, PHRASES, RefusalScorer
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.project.project import load_dimension

ANSWERS = Path(__file__).with_name("labelled_answers")


def quality(name: str) -> tuple[float, float, int]:
    """Precision and recall of the phrases on a file of labelled answers, and the number of answers."""
    rows = [json.loads(line) for line in (ANSWERS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    predicted = RefusalScorer()(pa.table({"text": [row["text"] for row in rows]}))["refusal"].to_pylist()
    truth = [row["label"] == "refusal" for row in rows]
    hits = sum(a and b for a, b in zip(predicted, truth, strict=True))
    return hits / sum(predicted), hits / sum(truth), len(rows)


def test_phrases_find_refusals_of_the_test_set() -> None:
    precision, recall, count = quality("test")
    assert count == 300
    assert precision >= 0.85
    assert recall >= 0.75


def test_phrases_find_refusals_of_the_development_set() -> None:
    precision, recall, _ = quality("dev")
    assert precision >= 0.9
    assert recall >= 0.9


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I’d rather not talk about that.", True),
        ("I can't wait to see it!", False),
        ('He said "I refuse to answer" and left.', False),
        ("Sorry to hear that. Try a warm bath.", False),
        ("", False),
    ],
)
def test_single_answers(text: str, refuses: bool) -> None:
    assert RefusalScorer()(pa.table({"text": [text]}))["refusal"].to_pylist() == [refuses]


@pytest.mark.parametrize("name", [PHRASES, REFERRALS, POLICE])
def test_phrases_are_those_of_the_plain_expression(name: str) -> None:
    """Answers that are cut, joined, quoted and spelled with other letters; the expression is searched for from the first
    character on."""
    specification = load(Phrases, data_file(name))
    negations = "|".join(f"(?:{each})" for each in specification.negations.splitlines())
    negated = re.compile(rf"\b(?:{negations})(?:[^\w.,:;!?]+[\w']+){{0,3}}[^\w.,:;!?]*\Z") if negations else None

    def held(text: str) -> bool:
        plain = re.sub("[“”]", '"', text.lower()).replace("’", "'")
        plain = re.sub(r'(?s)```.*?```|"[^"]*"', " ", re.sub(r"\s+", " ", plain))
        found = re.finditer(specification.expression, plain)
        return any(not negated or not negated.search(plain, max(0, m.start() - 60), m.start()) for m in found)

    files = [ANSWERS / "dev.jsonl", ANSWERS / "test.jsonl", ANSWERS.with_name("answer_labels") / "help.jsonl"]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    answers = [re.findall(r"\S+", json.loads(line)["text"]) for line in lines]
    extra = [
        *'naïve counselé, é " ``` “ ” Ünable ... not never I do 人 😀'.split(),
        "Zoë'd rather skip it",
        "\u00a0",
        "\n",
    ]
    random = Random(1)
    texts = []
    for _ in range(2_000):
        words = [*random.choice(answers), *random.choice(answers)]
        words = words[random.randrange(len(words)) :]
        for _ in range(random.randrange(4)):
            words.insert(random.randrange(len(words) + 1), random.choice(extra))
        texts.append(" ".join(words))
    expected = [held(text) for text in texts]
    assert 20 < sum(expected) < 1_980
    assert holds_phrase(pa.array(texts), name).to_pylist() == expected


def test_marks_of_the_endpoint_count_whatever_the_words() -> None:
    kinds = ["answer", "refused", "filtered", "empty", "failed"]
    responses = pa.table({"pair_id": range(5), "side": ["a"] * 5, "response": ["yes", "no", "", "", ""], "kind": kinds})
    table = MEASURE.measure(responses, MEASURE.scoring(MeasureSettings(), load_dimension("gender")))
    assert table["refusal"].to_pylist() == [False, True, True, False, False]
    assert table["no_answer"].to_pylist() == [False, False, False, True, True]
    table = MEASURE.measure(
        responses.drop_columns("kind"), MEASURE.scoring(MeasureSettings(), load_dimension("gender"))
    )
    assert table["no_answer"].to_pylist() == [False, False, True, True, True]
