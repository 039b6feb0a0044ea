from collections import defaultdict
from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairness_pipeline.corpora.cleaning import clean
from fairness_pipeline.corpora.dialogue.dialogues import SCHEMA, SHARED_TURN, read_dialogues, source_files
from fairness_pipeline.corpora.specification import CorpusFile, CorpusSpecification
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project

SPLITS = {"train": 0.5, "valid": 0.1, "test": 0.1, "audit": 0.3}


def specification(*paths: str, **options: object) -> CorpusSpecification:
    files = [{"path": path} for path in paths]
    return CorpusSpecification(platform="twitter", format="tsv", files=files, licence="", citation="", **options)


def read(folder: Path, text: str, **options: object):
    (folder / "a.tsv").write_text("context\tresponse\n" + text, encoding="utf-8")
    return read_dialogues("key", specification("a.tsv", **options), folder, SPLITS, seed=1)


def test_cleaning() -> None:
    assert clean("  hi\u00a0 @Some_One  see https://t.co/x?y=1, www.a.b ok ") == "hi @user see __url__ __url__ ok"
    assert clean("mail a@b.c") == "mail a@b.c"
    assert [clean(turn) for turn in ("[deleted]", " [Removed] ", "[ Removed by Reddit ]")] == ["", "", ""]
    assert clean("it says [deleted]") == "it says [deleted]"
    assert clean("@a @b\t@c no, @d &amp; &lt;script&gt;") == "@user no, @user & <script>"


def test_empty_and_duplicate_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    reading = read(tmp_path, "a\tb\n \tb\na\t \na  \tb\nb\ta\n@me\thi\n@you\thi\n")
    assert reading.table.schema == SCHEMA
    assert list(zip(reading.table["context"].to_pylist(), reading.table["response"].to_pylist(), strict=True)) == [
        ("a", "b"),
        ("b", "a"),
        ("@user", "hi"),
    ]
    assert (reading.rows_read, reading.left_out) == (7, {"empty_or_deleted": 2, "duplicate": 2})


def test_what_is_left_out(tmp_path: Path) -> None:
    text = "a\t[deleted]\n[Removed]\tb\nfoo bar\tok\none two three\tok\nsee http://x.y\tok\n/u/me hi\tu/a u/b yes\n"
    reading = read(tmp_path, text, maximum_words=2, drop_urls=True, replace={"foo": "fu", "ok": "yes"})
    assert reading.left_out == {"empty_or_deleted": 2, "too_long": 1, "holds_a_url": 1}
    rows = zip(reading.table["context"].to_pylist(), reading.table["response"].to_pylist(), strict=True)
    assert list(rows) == [("fu bar", "yes"), ("@user hi", "@user yes")]


def test_ids_do_not_depend_on_order_or_company(tmp_path: Path) -> None:
    first = read(tmp_path, "a\tb\nc\td\n").table
    second = read(tmp_path, "x\ty\nc\td\na\tb\n").table
    ids = dict(zip(second["context"].to_pylist(), second["dialogue_id"].to_pylist(), strict=True))
    assert first["dialogue_id"].to_pylist() == [ids["a"], ids["c"]]


LONG = "x" * SHARED_TURN
turns = st.sampled_from(["a", "b", "short", LONG, LONG + "1", LONG + "2", LONG.upper(), LONG + "3", LONG + "4"])


@given(st.lists(st.tuples(turns, turns), min_size=1, max_size=30), st.integers(0, 5))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_thread_on_two_sides_of_a_split(tmp_path: Path, pairs: list[tuple[str, str]], seed: int) -> None:
    (tmp_path / "a.tsv").write_text("\n".join("\t".join(pair) for pair in pairs) + "\n", encoding="utf-8")
    table = read_dialogues(
        "k", specification("a.tsv", header=False, columns={"context": 1, "response": 2}), tmp_path, SPLITS, seed
    ).table
    splits = defaultdict(set)
    for row in table.to_pylist():
        for turn in (row["context"], row["response"]):
            if len(turn) >= SHARED_TURN:
                splits[turn.lower()].add((row["split"], row["thread_id"]))
    assert all(len(places) == 1 for places in splits.values())


def test_short_turns_do_not_join_threads(tmp_path: Path) -> None:
    table = read(tmp_path, "yes\tno\nno\tyes\nyes\tmaybe\n").table
    assert len(set(table["thread_id"].to_pylist())) == 3


def test_a_thread_id_in_the_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"context\tresponse\tthread_id\n{LONG}\ta\t1\n{LONG}\tb\t2\nc\td\t1\n", encoding="utf-8")
    table = read_dialogues("k", specification("a.tsv"), tmp_path, SPLITS, 1).table
    first, second, third = table["thread_id"].to_pylist()
    assert first == third != second


def test_blank_thread_ids_are_unknown_and_a_thread_may_span_files(tmp_path: Path) -> None:
    text = "context\tresponse\tthread_id\na{0}\tb\t\nc{0}\td\t\ne{0}\tf\t7\n"
    for name in ("1", "2"):
        (tmp_path / f"{name}.tsv").write_text(text.format(name), encoding="utf-8")
    table = read_dialogues("k", specification("1.tsv", "2.tsv"), tmp_path, SPLITS, 1).table
    threads = dict(zip(table["context"].to_pylist(), table["thread_id"].to_pylist(), strict=True))
    assert len(set(threads.values())) == 5
    assert threads["e1"] == threads["e2"]


def test_a_corpus_without_a_dialogue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        FairnessError, match="'key' .* no dialogue is left of 2 rows; left out: 2 empty or deleted; look"
    ):
        read(tmp_path, " \tb\na\t \n")


def test_a_format_takes_one_kind_of_source() -> None:
    grammar = {"file": "g", "dialogues": 1, "seed": 1}
    for wrong in (
        {"format": "tsv"},
        {"format": "grammar"},
        {"format": "tsv", "files": [{"path": "x"}], "grammar": grammar},
        {"format": "grammar", "files": [{"path": "x"}], "grammar": grammar},
    ):
        with pytest.raises(ValueError, match="(needs|does not take) '(files|grammar)'"):
            CorpusSpecification(platform="twitter", licence="", citation="", **wrong)


def test_split_shares(tmp_path: Path) -> None:
    table = read(tmp_path, "".join(f"c{i}\tr{i}\n" for i in range(20000))).table
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table["split"]).to_pylist()}
    for split, share in SPLITS.items():
        assert abs(counts[split] / 20000 - share) < 4 * (share * (1 - share) / 20000) ** 0.5


def test_paths_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEWHERE", str(tmp_path))
    assert CorpusFile(path="${SOMEWHERE}/a.tsv").resolve(Path("/")) == tmp_path / "a.tsv"
    assert CorpusFile(path="a.tsv").resolve(tmp_path) == tmp_path / "a.tsv"
    monkeypatch.delenv("SOMEWHERE")
    with pytest.raises(FairnessError, match="the environment has no SOMEWHERE; set it"):
        CorpusFile(path="${SOMEWHERE}/a.tsv").resolve(tmp_path)


@pytest.mark.verify
def test_real_twitter_pairs(corpora: Path) -> None:
    """The 68,114 pairs that the corpus's page counts, with the checksums that the YAML pins."""
    source = Project("real").parts["dialogue_fairness"].corpora["twitter_real"]
    assert len(source_files(*source)) == 6
    reading = read_dialogues("twitter_real", *source, SPLITS, seed=1)
    assert reading.rows_read == 68_114
    assert reading.table.num_rows == reading.rows_read - sum(reading.left_out.values())
    assert reading.table.num_rows > 66_000
