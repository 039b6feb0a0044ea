import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.dialogue.imported import matching, read_responses, write_pairs
from fairness_pipeline.models.dialogue.responding import RESPONSES, respond

PAIRS = pa.table({"pair_id": [0, 1], "context_a": ['he, "said"', "his\nhat"], "context_b": ['she, "said"', "her\nhat"]})
HEADER = "pair_id,side,response\n"
ROWS = ["0,a,one", "0,b,two", "1,a,three", "1,b,four"]


def exported(form: str) -> list[dict[str, object]]:
    stream = io.StringIO()
    write_pairs({"gender": PAIRS}, form, stream)
    text = stream.getvalue()
    if form == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("form", [".csv", ".jsonl"])
def test_exported_pairs_come_back_with_answers(tmp_path: Path, form: str) -> None:
    """Answers in a file give the same table as the same answers made here."""
    rows = exported(form)
    assert [(int(row["pair_id"]), row["side"], row["context"]) for row in rows] == [
        (0, "a", 'he, "said"'), (0, "b", 'she, "said"'), (1, "a", "his\nhat"), (1, "b", "her\nhat"),
    ]  # fmt: skip
    for row in rows:
        row["response"] = row["context"].upper()
    rows.reverse()
    path = tmp_path / f"answers{form}"
    if form == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    imported = read_responses(path, PAIRS, "gender")
    assert imported.schema == RESPONSES
    answered = respond(PAIRS, lambda t: pa.table({"response": [x.upper() for x in t["text"].to_pylist()]}), tmp_path)
    assert imported.equals(answered.table)
    compressed = tmp_path / f"answers{form}.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_responses(compressed, PAIRS, "gender").equals(imported)


def test_contexts_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    """An apostrophe is put before them, and may have been removed when they come back."""
    texts = ["@USER hi", "=1+1", "'=x", "-3", "plain"]
    pairs = pa.table({"pair_id": range(5), "context_a": texts, "context_b": [f"{text} b" for text in texts]})
    stream = io.StringIO()
    assert write_pairs({"gender": pairs}, ".csv", stream) == 7
    rows = list(csv.DictReader(io.StringIO(stream.getvalue())))
    exported_contexts = [row["context"] for row in rows if row["side"] == "a"]
    assert exported_contexts == ["'@USER hi", "'=1+1", "''=x", "-3", "plain"]
    for removed in (False, True):
        with (tmp_path / "answers.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            for row in rows:
                context = row["context"].removeprefix("'") if removed else row["context"]
                writer.writerow({**row, "context": context, "response": "'-1 is an answer"})
        imported = read_responses(tmp_path / "answers.csv", pairs, "gender")
        assert imported.filter(pc.equal(imported["side"], "a"))["context"].to_pylist() == texts
        assert set(imported["response"].to_pylist()) == {"'-1 is an answer"}  # this apostrophe is the model's


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (ROWS[:3], "of 4 responses in gender, 1 missing, the first that of pair 1, side b"),
        ([*ROWS, "0,a,again"], "line 6: pair 0, side a, was answered before: line 2"),
        ([*ROWS, "7,a,x"], "line 6: pair 7 is not among the 2 pairs asked for"),
        (["0,a,one", "0,c,x"], "line 3: side: expected a or b, found 'c'"),
        (["x,a,one"], "line 2: pair_id: expected a whole number, found 'x'"),
        (["0,a, "], "line 2: pair 0, side a: expected a response, found ' '"),
        (["0,a"], r"line 2: expected 3 columns, found 2"),
        (['0,a,"x'], "line 2: not valid CSV"),
    ],
)
def test_wrong_files_are_refused_by_line(tmp_path: Path, lines: list[str], expected: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(HEADER + "\n".join(lines) + "\n")
    with pytest.raises(FairnessError, match="r.csv.*" + expected):
        read_responses(path, PAIRS, "gender")


def test_other_wrong_files(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for content, expected in (
        ("", "found an empty file"),
        ("pair_id;side;response\n0;a;x\n", r"line 2: expected 'pair_id', found \['pair_id;side;response'\]"),
        ("pair_id,side,context,response\n0,a,other,x\n", "line 2: the context of pair 0, side a, is not the one asked"),
    ):
        path.write_text(content)
        with pytest.raises(FairnessError, match=expected):
            read_responses(path, PAIRS, "gender")
    with pytest.raises(FairnessError, match=r"r.txt: expected a file that ends in .csv or .jsonl"):
        read_responses(tmp_path / "r.txt", PAIRS, "gender")
    (tmp_path / "r.jsonl").write_text('{"pair_id": true, "side": "a", "response": "x"}\n')
    with pytest.raises(FairnessError, match="line 1: pair_id: expected a whole number, found True"):
        read_responses(tmp_path / "r.jsonl", PAIRS, "gender")
    (tmp_path / "r.jsonl").write_text('{"pair_id": 0, "side": "a", "response": 3}\n')
    with pytest.raises(FairnessError, match="line 1: pair 0, side a: expected a response, found 3"):
        read_responses(tmp_path / "r.jsonl", PAIRS, "gender")


def test_responses_to_other_pairs_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(HEADER + "\n".join(ROWS) + "\n")
    responses = read_responses(path, PAIRS, "gender")
    assert matching(responses, PAIRS) is responses
    for changed in (PAIRS.slice(0, 1), PAIRS.set_column(1, "context_a", [["x", "y"]])):
        with pytest.raises(FairnessError, match="the pairs changed since the responses were imported"):
            matching(responses, changed)
