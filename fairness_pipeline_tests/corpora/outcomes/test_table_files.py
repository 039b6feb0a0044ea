"""Tables of any tool: every format gives the same rows, and forty malformed tables are refused by line and column."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from fairness_pipeline.corpora.outcomes import table_files
from fairness_pipeline.corpora.outcomes.specification import OutcomeTable, key_of
from fairness_pipeline.corpora.outcomes.table_files import column_names, place_of, read_table
from fairness_pipeline.corpora.outcomes.trials import read_trials
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import validate

ROWS: list[dict[str, Any]] = [
    {"q": "one, \"two\"", "who": "a", "y": 1, "x": 0.25, "ok": True, "why": None},
    {"q": "one, \"two\"", "who": "b", "y": 0, "x": -1.5, "ok": False, "why": "né\nzwei"},
    {"q": "three", "who": "a", "y": 1, "x": 1e-7, "ok": True, "why": "c"},
]  # fmt: skip


def _written(folder: Path, form: str) -> Path:
    path = folder / f"table{form}"
    table = pa.Table.from_pylist(ROWS)
    if form == ".parquet":
        pa.parquet.write_table(table, path)
    elif form == ".feather":
        pa.feather.write_feather(table, str(path), compression="uncompressed")
    elif form == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    elif form.startswith(".jsonl"):
        text = "".join(json.dumps(row) + "\n\n" for row in ROWS)
        path.write_bytes(gzip.compress(text.encode()) if form.endswith(".gz") else text.encode())
    else:
        text = 'q,who,y,x,ok,why\n"one, ""two""",a,1,0.25,true,\n"one, ""two""",b,0,-1.5,false,"né\nzwei"\nthree,a,1,1e-07,true,c\n'
        path.write_bytes(gzip.compress(text.encode()) if form.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("form", [".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet", ".feather", ".arrow"])
def test_every_format_gives_the_same(tmp_path: Path, form: str) -> None:
    path = _written(tmp_path, form)
    table = read_table(path)
    assert list(column_names(path)) == table.column_names == list(ROWS[0])
    assert [row["why"] for row in table.to_pylist()] == [None, "né\nzwei", "c"]
    spec = validate(
        OutcomeTable,
        {"file": {"path": path.name}, "item": "q", "group": ["who"],
         "outcomes": {"y": {"kind": "yes_no"}, "x": {"kind": "number"}, "ok": {"kind": "yes_no"}}},
        path,
    )  # fmt: skip
    trials = read_trials(table, spec, path)
    assert trials.values["x"].tolist() == [0.25, -1.5, 1e-7]
    assert trials.values["ok"].tolist() == trials.values["y"].tolist() == [1, 0, 1]
    assert [trials.groups["who"].names[code] for code in trials.groups["who"].code] == ["a", "b", "a"]
    place = {".csv": "line 5", ".jsonl": "line 5"}.get(path.name.removeprefix("table").removesuffix(".gz"), "row 3")
    assert place_of(path, 2) == place


@pytest.mark.parametrize(("form", "mark"), [(".csv", ","), (".tsv", "\t")])
def test_blank_lines_are_skipped(tmp_path: Path, form: str, mark: str) -> None:
    path = tmp_path / f"table{form}"
    path.write_text("\nq,who\n\n1,a\n\n2,b\n".replace(",", mark))
    assert column_names(path) == ("q", "who")
    assert read_table(path).to_pylist() == [{"q": "1", "who": "a"}, {"q": "2", "who": "b"}]
    assert place_of(path, 1) == "line 6"


def test_nested_objects_have_names_with_dots(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"doc": {"id": 1, "who": "a"}, "resps": [[0.5]]}\n{"doc": {"id": 2}, "late": true}\n')
    assert read_table(path).to_pylist() == [
        {"doc.id": "1", "doc.who": "a", "resps": "[[0.5]]", "late": None},
        {"doc.id": "2", "doc.who": None, "resps": None, "late": "true"},
    ]


GOOD = "item,who,y,n\n1,a,1,0.5\n1,b,0,2\n2,a,1,1\n2,b,1,3\n"
PLAIN: dict[str, Any] = {"item": "item", "group": ["who"], "outcomes": {"y": {"kind": "yes_no"}}}
NUMBER: dict[str, Any] = {**PLAIN, "outcomes": {"n": {"kind": "number"}}}
MALFORMED: list[tuple[str, bytes | str, dict[str, Any], str]] = [
    ("table.csv", "", PLAIN, "expected the names of the columns in the first line, found an empty file"),
    ("table.csv", "item,who,y\n", PLAIN, "expected rows below the names of the columns, found none"),
    ("table.csv", GOOD.replace("2,a,1,1", "2,a,1"), PLAIN, "line 4: expected 4 columns, found 3"),
    ("table.csv", GOOD.replace("2,a,1,1", "2,a,1,1,9"), PLAIN, "line 4: expected 4 columns, found 5"),
    ("table.csv", GOOD.replace(",n\n", ",y\n"), PLAIN, "line 1: column 'y' is listed twice; rename one"),
    ("table.csv", GOOD.replace(",n\n", ",\n"), PLAIN, "line 1: column 4 has no name; name it"),
    ("table.csv", GOOD.replace(",", ";"), PLAIN, "line 1: one column 'item;who;y;n'; separated by ';'? Expected commas"),
    ("table.tsv", GOOD, PLAIN, "line 1: one column 'item,who,y,n'; separated by ','? Expected tabs (.tsv)"),
    ("table.csv", GOOD.replace("2,a", "2,\"a"), PLAIN, "line 4: not valid CSV"),
    ("table.csv", GOOD.encode().replace(b"1,b", b"1,\xff"), PLAIN, "line 3: expected UTF-8"),
    ("table.csv", GOOD.encode("utf-16"), PLAIN, "line 1: holds a NUL byte"),
    ("table.csv.gz", b"not packed", PLAIN, "gzip data is broken"),
    ("table.csv.gz", gzip.compress(GOOD.encode())[:-9], PLAIN, "gzip data is broken"),
    ("table.xlsx", b"PK", PLAIN, "expected a table that ends in .csv"),
    ("table.parquet.gz", b"PAR1", PLAIN, "expected a table that ends in .csv"),
    ("table.parquet", b"not parquet", PLAIN, "cannot be read as Parquet"),
    ("table.arrow", b"not arrow", PLAIN, "cannot be read as Arrow"),
    ("table.jsonl", '{"item": 1}\n{"item": 2\n', PLAIN, "line 2: not valid JSON"),
    ("table.jsonl", '{"item": 1}\n[1, 2]\n', PLAIN, "line 2: expected a JSON object, found list"),
    ("table.csv", GOOD.replace("who", "group"), PLAIN, "group: there is no column 'who'; columns: item, group, y, n"),
    ("table.csv", GOOD.replace("item,", "id,"), PLAIN, "item: there is no column 'item'"),
    ("table.csv", GOOD, {**PLAIN, "outcomes": {"z": {"kind": "yes_no"}}}, "outcomes.z: there is no column 'z'"),
    ("table.csv", GOOD.replace("2,a", ",a"), PLAIN, "line 4: column 'item' (item) is empty; fill it, or leave the row out"),
    ("table.csv", GOOD.replace("1,b,0", "1,b,maybe"), PLAIN, "line 3: column 'y': expected 1 or 0, yes or no (or name the values that count: positive), found 'maybe'"),
    ("table.csv", GOOD.replace("1,b,0", "1,b,0.7"), PLAIN, "line 3: column 'y': expected 1 or 0, yes or no"),
    ("table.csv", GOOD.replace(",2\n", ",two\n"), NUMBER, "line 3: column 'n': expected a number, found 'two'"),
    ("table.csv", GOOD.replace(",2\n", ",inf\n"), NUMBER, "line 3: column 'n': expected a number, found 'inf'"),
    ("table.csv", GOOD.replace(",2\n", ",\"1,5\"\n"), NUMBER, "line 3: column 'n': expected a number, found '1,5'"),
    ("table.csv", GOOD.replace(",2\n", ",-2\n"), {**PLAIN, "outcomes": {"n": {"kind": "count"}}}, "line 2: column 'n': expected a count: a whole number of 0 or more, found 0.5"),
    ("table.csv", GOOD, {**PLAIN, "outcomes": {"n": {"kind": "rank"}}}, "line 2: column 'n': expected a place: 1 or more, half places for ties, found 0.5"),
    ("table.csv", GOOD, {**PLAIN, "outcomes": {"n": {"kind": "preference"}}}, "line 3: column 'n': expected a number from 0 to 1, found 2"),
    ("table.csv", GOOD, {**PLAIN, "outcomes": {"y": {"kind": "yes_no", "positive": ["hired"]}}}, "outcomes.y.positive: column 'y' has no value 'hired'; it has '1', '0'"),
    ("table.csv", GOOD.replace(",b,", ",a,"), PLAIN, "group: column 'who' has 1 known group (a); a comparison needs at least two"),
    ("table.csv", GOOD.replace(",b,", ",unknown,"), PLAIN, "group: column 'who' has 1 known group"),
    ("table.csv", GOOD, {**PLAIN, "where": {"who": "c"}}, "no row is left with who = c; check the values"),
    ("table.csv", GOOD, {**PLAIN, "condition": "n", "conditions": {"plain": "plain"}}, "conditions: column 'n' has no value 'plain'; it has '0.5'"),
    ("table.csv", GOOD, {**PLAIN, "draw": "y"}, ""),
    ("table.csv", GOOD.replace("2,b,1", "1,b,0"), {**PLAIN, "draw": "y"}, "line 5: the same trial as line 3 (draw '0'); number repeated trials, or name a condition"),
    ("table.csv", GOOD, {**PLAIN, "cluster": "n"}, "line 3: item '1' is in cluster '2' here, and in '0.5' before; clusters hold whole items"),
    ("table.csv", GOOD, {**PLAIN, "item": None, "name": "item"}, "line 3: name '1' is in group ('who') 'b' here, and in 'a' before; a name stands for one"),
    ("table.csv", GOOD, {**PLAIN, "outcomes": {"n": {"kind": "number", "positive": ["1"]}}}, "'positive' is for outcomes of kind yes_no"),
    ("table.csv", GOOD, {**PLAIN, "outcomes": {}}, "outcomes"),
    ("table.csv", GOOD, {**PLAIN, "cluster": "who"}, "column 'who' has two roles; give it one"),
    ("table.csv", GOOD, {**PLAIN, "baseline": "x"}, "'baseline': 'x' is none of the conditions (none)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "columns", "expected"), MALFORMED, ids=[str(number) for number in range(len(MALFORMED))]
)
def test_malformed_tables(
    tmp_path: Path, name: str, content: bytes | str, columns: dict[str, Any], expected: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read() -> None:
        spec = validate(OutcomeTable, {"file": {"path": name}, **columns}, path)
        read_trials(read_table(path), spec, path)

    if not expected:
        read()
        return
    with pytest.raises(FairnessError) as error:
        read()
    assert expected in str(error.value)
    assert str(path) in str(error.value)


def test_forty_are_tried() -> None:
    assert len(MALFORMED) >= 40


def test_a_table_that_is_too_large_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    path.write_text(GOOD)
    monkeypatch.setattr(table_files, "MOST_ROWS", 3)
    with pytest.raises(FairnessError, match="more than 3 rows, which are held in memory as numbers"):
        read_table(path)


def test_rows_of_other_conditions_and_missing_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("item,who,run,y\n1,a,x,1\n1,b,x,NA\n1,a,z,0\n1,b,y,nan\n1,a,y,0\n1,?,y,1\n")
    spec = validate(
        OutcomeTable,
        {"file": {"path": "t"}, "item": "item", "group": ["who"], "condition": "run", "conditions": {"second": "y", "first": "x"},
         "baseline": "first", "unknown": ["?"], "outcomes": {"y": {"kind": "yes_no"}}},
        path,
    )  # fmt: skip
    trials = read_trials(read_table(path), spec, path)
    assert trials.condition.names == ("first", "second")  # the baseline first
    assert trials.condition.code.tolist() == [0, 0, 1, 1, 1]
    np.testing.assert_array_equal(trials.values["y"], [1, np.nan, np.nan, 0, 1])
    assert trials.groups["who"].code.tolist() == [0, 1, 1, 0, -1]
    assert (trials.rows, len(trials)) == (6, 5)


def test_keys() -> None:
    assert [key_of(text) for text in ("GPT 4.1", "2", "ÄÖ", "a b")] == ["gpt-4.1", "c2", "none", "a-b"]
