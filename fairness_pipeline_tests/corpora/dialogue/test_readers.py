"""Every format against files written by hand."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairness_pipeline.corpora.dialogue.comments import read_comments
from fairness_pipeline.corpora.dialogue.readers import Turns, read_dataset, read_file
from fairness_pipeline.corpora.specification import CorpusSpecification, DatasetSource
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.text_files import LONGEST_LINE, zstd
from fairness_pipeline.foundation.yaml_files import load

GOOD = b"context\tresponse\nhello\thi\nhow are you\tfine\n"
PAIRS = [("hello", "hi", None), ("how are you", "fine", None)]


def specification(form: str = "tsv", **options: object) -> CorpusSpecification:
    source = {} if form == "dataset" else {"files": [{"path": "x"}]}
    return CorpusSpecification(platform="twitter", format=form, licence="", citation="", **source, **options)


def rows(path: Path, form: str = "tsv", **options: object) -> list[tuple[str, str, str | None]]:
    return [turns[:3] for turns in read_file(path, specification(form, **options))]


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
def test_topics(tmp_path: Path, form: str) -> None:
    lines = (
        [{"context": "hello", "response": "hi", "about": "greeting"}]
        if form == "jsonl"
        else (
            [
                ("," if form == "csv" else "\t").join(cells)
                for cells in (("context", "response", "about"), ("hello", "hi", "greeting"))
            ]
        )
    )
    path = write(tmp_path / f"a.{form}", *lines)
    (turns,) = read_file(path, specification(form, columns={"topic": "about"}))
    assert turns == Turns("hello", "hi", None, "greeting")
    with pytest.raises(FairnessError, match="expected a (column|key) 'subject'"):
        list(read_file(path, specification(form, columns={"topic": "subject"})))


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_a_missing_topic_is_no_topic(tmp_path: Path, form: str) -> None:
    path, topics = tmp_path / f"a.{form}", ["food", "", None]
    if form == "parquet":
        pq.write_table(pa.table({"context": ["a"] * 3, "response": ["b"] * 3, "about": topics}), path)
    elif form == "jsonl":
        write(path, *({"context": "a", "response": "b", "about": topic} for topic in topics))
    else:
        rows = [("context", "response", "about"), *(("a", "b", topic or "") for topic in topics)]
        write(path, *(("," if form == "csv" else "\t").join(cells) for cells in rows))
    read = read_file(path, specification(form, columns={"topic": "about"}))
    assert [turns.topic for turns in read] == ["food", None, None]


def write(path: Path, *lines: object) -> Path:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def test_plain_gzip_and_zstandard(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(GOOD)
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(GOOD))
    (tmp_path / "a.tsv.zst").write_bytes(zstd.compress(GOOD))
    assert all(rows(tmp_path / name) == PAIRS for name in ("a.tsv", "a.tsv.gz", "a.tsv.zst"))


def test_zstandard_with_the_long_window_of_pushshift(tmp_path: Path) -> None:
    wide = {zstd.CompressionParameter.window_log: 28, zstd.CompressionParameter.enable_long_distance_matching: 1}
    (tmp_path / "a.tsv.zst").write_bytes(zstd.compress(GOOD * 10, options=wide))  # by default 27 is the limit
    assert rows(tmp_path / "a.tsv.zst")[:2] == PAIRS


def test_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD)  # a byte order mark, as some editors write
    assert rows(path)[0] == ("hello", "hi", None)
    path.write_bytes(b"thread_id\tresponse\tother\tcontext\r\n7\thi\tx\thello\r\n")
    assert rows(path) == [("hello", "hi", "7")]
    path.write_bytes(b"1\thello\thi\n2\tbye\tciao\n")
    columns = {"context": 2, "response": 3}
    assert rows(path, header=False, columns=columns) == [("hello", "hi", None), ("bye", "ciao", None)]
    assert rows(path, header=False, columns={**columns, "thread_id": 1})[1] == ("bye", "ciao", "2")
    path.write_bytes(b"prompt\treply\nhello\thi\n")
    assert rows(path, columns={"context": "prompt", "response": "reply"}) == [("hello", "hi", None)]


def test_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "context,response", '"hello, ""you""","two', 'lines"', "", "bye,ciao")
    assert rows(path, "csv") == [('hello, "you"', "two\nlines", None), ("bye", "ciao", None)]
    write(path, "context,response", "a,b", 'c,"open')
    with pytest.raises(FairnessError, match=r"a.csv, line 3: not valid CSV"):
        rows(path, "csv")
    write(path, "context,response", "a,b", "c,d,e")
    with pytest.raises(FairnessError, match=r"a.csv, line 3: expected 2 columns \(context, response\), found 3"):
        rows(path, "csv")


def test_alternating_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "chat.txt", "hello", "hi", "how are you", "fine")
    assert rows(path, "lines") == PAIRS
    write(path, "hello", "hi", "how are you")
    with pytest.raises(FairnessError, match=r"chat.txt, line 3: a context without a response"):
        rows(path, "lines")


def test_json_lines(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"context": "hello", "response": "hi", "x": 1},
        "",
        {"context": "how are you", "response": "fine"},
    )
    assert rows(path, "jsonl") == PAIRS
    write(path, {"context": None, "response": "hi", "thread_id": 9})
    assert rows(path, "jsonl") == [("", "hi", "9")]
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    write(path, {"dialog": ["a", "b", "c"], "id": None}, {"dialog": chat, "id": "t"})
    first, second, *others = rows(path, "jsonl", columns={"turns": "dialog", "thread_id": "id"})
    assert [turns[:2] for turns in (first, second)] == [("a", "b"), ("b", "c")]
    assert first[2] == second[2] is not None
    assert others == [("a", "b", "t"), ("b", "c", "t")]


@pytest.mark.parametrize(
    ("line", "options", "expected"),
    [
        ("{nonsense", {}, "line 2: not valid JSON"),
        ("[" * 100_000, {}, "line 2: not valid JSON"),
        ([1], {}, "line 2: expected a JSON object, found list"),
        ({"response": "x"}, {}, r"line 2: expected a key 'context', found \['response'\]"),
        ({"context": "x", "response": 3}, {}, "line 2: expected text under 'response', found int"),
        ({"context": "x", "response": "y"}, {"columns": {"thread_id": "id"}}, "line 2: expected a key 'id'"),
    ],
)
def test_bad_json_lines(tmp_path: Path, line: object, options: dict[str, object], expected: str) -> None:
    path = write(tmp_path / "a.jsonl", {"context": "a", "response": "b", "id": 1}, line)
    with pytest.raises(FairnessError, match="a.jsonl, " + expected):
        rows(path, "jsonl", **options)


def test_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"context": "cut \\ud83d", "response": "whole \\ud83d\\ude00"}\n')
    assert rows(path, "jsonl") == [("cut \ufffd", "whole \U0001f600", None)]


def test_bad_turns(tmp_path: Path) -> None:
    for turns, expected in (
        ("ab", "expected a list"),
        ([1], "expected turns of text"),
        ([{"x": 1}], "has no 'content'"),
    ):
        path = write(tmp_path / "a.jsonl", {"dialog": turns})
        with pytest.raises(FairnessError, match=expected):
            rows(path, "jsonl", columns={"turns": "dialog"})


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"context": ["hello", "how are you"], "response": ["hi", "fine"], "n": [1, 2]}), path)
    assert rows(path, "parquet") == PAIRS
    with pytest.raises(FairnessError, match=r"a.parquet: expected a column 'prompt', found \['context'"):
        rows(path, "parquet", columns={"context": "prompt"})
    pq.write_table(pa.table({"turns": [["a", "b"], ["c"]]}), path)
    assert [turns[:2] for turns in rows(path, "parquet", columns={"turns": "turns"})] == [("a", "b")]
    for content in (path.read_bytes()[:-30], b"", b"text"):
        path.write_bytes(content)
        with pytest.raises(FairnessError, match="a.parquet: not a whole Parquet file"):
            rows(path, "parquet")
    with pytest.raises(FairnessError, match="none.parquet: cannot be read: no such file"):
        rows(tmp_path / "none.parquet", "parquet")


COMMENTS = [
    {"id": "s1", "title": "A question", "selftext": "of taste"},
    {"id": "c1", "parent_id": "t3_s1", "link_id": "t3_s1", "body": "first"},
    {"id": "c3", "parent_id": "t1_c2", "link_id": "t3_s1", "body": "third, before its parent"},
    {"id": "c2", "parent_id": "t1_c1", "link_id": "t3_s1", "body": "[deleted]"},
    {"id": "c4", "parent_id": "t1_elsewhere", "link_id": "t3_s2", "body": "orphan"},
]


def test_comment_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRNESS_HOME", str(tmp_path / "home"))
    dialogues = [
        ("A question of taste", "first", "t3_s1"),
        ("[deleted]", "third, before its parent", "t3_s1"),
        ("first", "[deleted]", "t3_s1"),
    ]
    whole = write(tmp_path / "RC.jsonl", *COMMENTS)
    assert [turns[:3] for turns in read_comments([whole])] == dialogues
    packed = tmp_path / "RC.zst"
    packed.write_bytes(zstd.compress(whole.read_bytes()))
    assert [turns[:3] for turns in read_comments([packed])] == dialogues
    submissions, comments = write(tmp_path / "RS.jsonl", COMMENTS[0]), write(tmp_path / "RC.jsonl", *COMMENTS[1:])
    assert [turns[:3] for turns in read_comments([comments, submissions])] == dialogues
    named = write(tmp_path / "RC.jsonl", *({**comment, "subreddit": "food"} for comment in COMMENTS))
    assert {turns.topic for turns in read_comments([named])} == {"food"}
    removed = write(tmp_path / "RS.jsonl", {**COMMENTS[0], "selftext": "[removed]"}, COMMENTS[1])
    assert list(read_comments([removed])) == [("A question", "first", "t3_s1", None)]
    with pytest.raises(FairnessError, match=r"RC.jsonl, line 1: expected a comment .* 'title' is int"):
        list(read_comments([write(tmp_path / "RC.jsonl", {"id": "c", "title": 5})]))
    with pytest.raises(FairnessError, match=r"RC.jsonl, line 1: expected a comment .* 'parent_id' is missing"):
        list(read_comments([write(tmp_path / "RC.jsonl", {"id": "c", "body": "x"})]))


def test_data_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "chats"
    folder.mkdir()
    write(folder / "train.jsonl", {"dialog": ["a", "b", "c"]}, {"dialog": ["d", "e"]})
    corpus = specification("dataset", dataset={"name": str(folder)}, columns={"turns": "dialog"})
    assert [turns[:2] for turns in read_dataset(str(folder), corpus)] == [("a", "b"), ("b", "c"), ("d", "e")]
    with pytest.raises(FairnessError, match=r"data set '.*chats', row 1: expected a key 'context', found \['dialog'\]"):
        list(read_dataset(str(folder), specification("dataset", dataset={"name": str(folder)})))
    with pytest.raises(FairnessError, match=r"data set '.*none' .* cannot be loaded"):
        list(read_dataset(str(tmp_path / "none"), specification("dataset", dataset={"name": str(tmp_path / "none")})))
    with pytest.raises(FairnessError, match=r"split elsewhere\) cannot be loaded"):
        list(read_dataset(str(folder), specification("dataset", dataset={"name": str(folder), "split": "elsewhere"})))
    assert DatasetSource(name="chats").resolve(tmp_path) == str(
        folder
    )  # relative to the YAML, not to the working folder
    assert [path.name for path in DatasetSource(name="chats").files(tmp_path)] == ["train.jsonl"]
    assert DatasetSource(name="some/chats").files(tmp_path) == []
    write(folder / "train.jsonl", {"dialog": ["a", "b"]}, "{broken")
    with pytest.raises(FairnessError, match=r"data set '.*chats' .* cannot be loaded"):
        list(read_dataset(str(folder), corpus))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "expected dialogues in format 'tsv', found none"),
        (b"context\tresponse\n", "expected dialogues in format 'tsv', found none"),
        (b"hello\thi\nbye\tciao\n", "line 1: expected a column 'context', found ['hello', 'hi']"),
        (GOOD + b"one\n", "line 4: expected 2 columns (context, response), found 1"),
        (GOOD + b"one\ttwo\tthree\n", "line 4: expected 2 columns (context, response), found 3"),
        (GOOD + b"caf\xe9\tnon\n", "line 4: expected UTF-8, byte 4 of the line is 0xe9"),
        (GOOD + b"a\0b\tc\n", "line 4: holds a NUL byte"),
        ("context\tresponse\n".encode("utf-16"), "line 1: holds a NUL byte"),
        (GOOD + b"x" * (10 << 20) + b"\ty\n", f"line 4: longer than {LONGEST_LINE:,} bytes"),
    ],
)
def test_bad_content_is_refused_by_file_and_line(tmp_path: Path, content: bytes, expected: str) -> None:
    for name, packed in (("bad.tsv", content), ("bad.tsv.gz", gzip.compress(content))):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(FairnessError) as error:
            rows(tmp_path / name)
        assert str(tmp_path / name) in str(error.value)
        assert expected in str(error.value)


def test_broken_compression(tmp_path: Path) -> None:
    for suffix, compress in ((".gz", gzip.compress), (".zst", zstd.compress)):
        whole = compress(GOOD * 1000)
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 0xFF
        path = tmp_path / f"a.tsv{suffix}"
        # The first line of GOOD recurs, so that a row `context, response` is read too; only the damage is refused.
        for content in (b"plain text, not packed", bytes(flipped), whole[:-20], whole[:5]):
            path.write_bytes(content)
            with pytest.raises(FairnessError, match=f"a.tsv{suffix}.*(data is broken|expected)"):
                rows(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.tsv", tmp_path / "none.tsv.zst", tmp_path):
        with pytest.raises(FairnessError, match=f"{path}: cannot be read: .*; check the path"):
            rows(path)


def test_the_short_dialogues_differ_from_the_real_ones_in_length_only() -> None:
    """Both files list the same sources, and change together only."""
    short, real = (load(CorpusSpecification, data_file(f"corpora/reddit_{name}.yaml")) for name in ("short", "real"))
    assert short.maximum_words == 12
    assert short.model_copy(update={"maximum_words": real.maximum_words}) == real
