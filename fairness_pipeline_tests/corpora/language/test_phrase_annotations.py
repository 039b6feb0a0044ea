"""Reading and writing labels, and the annotators' agreement."""

import io
from pathlib import Path

import pyarrow as pa
import pytest

from fairness_pipeline.corpora.language.phrase_annotations import (
    PHRASE_ANNOTATIONS,
    agreement,
    majority,
    read_annotations,
    ties,
    write_template,
)
from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.corpora.language.phrase_splits import draw_splits, read_texts, released_splits
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load

HEAD = "phrase_id,comment,phrase,attribute_in_window,bias_sent,bias_phrase\n"


def write(folder: Path, *rows: str, head: str = HEAD) -> Path:
    path = folder / "labels.csv"
    path.write_text(head + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def test_all_ways_of_writing_a_label(tmp_path: Path) -> None:
    spellings = ["1", "1.0", "TRUE", "True", "0", "0.0", "false", "", "question"]
    rows = [f"c{n}#1,text,phrase {n},True,{label},{label}" for n, label in enumerate(spellings)]
    annotations = read_annotations(write(tmp_path, *rows), "ann", ignored=("question",))
    assert annotations.table["bias_phrase"].to_pylist() == [True] * 4 + [False] * 3 + [None] * 2
    assert annotations.ignored == {"question": 2}
    assert annotations.table["comment_id"].to_pylist()[0] == "c0"


@pytest.mark.parametrize(
    ("rows", "head", "message"),
    [
        (["a#1,t,p,True,1,maybe"], HEAD, "labels.csv, line 2: bias_phrase: expected 1 or 0, true or false, or nothing, found 'maybe'"),
        (["a#1,t,p,True,1,1", "a#1,t,p,True,1,1"], HEAD, "line 3: phrase_id 'a#1' stands on line 2 already"),
        (["b#1,t,p,True,1,1"], HEAD, "line 2: phrase_id 'b#1' is none of the phrases that were exported"),
        (["a#1,t,q,True,1,1"], HEAD, "line 2: phrase: expected that of 'a#1' as it was exported, 'p', found 'q'"),
        (["a#1,t,p,1"], "phrase_id,comment,phrase,bias_sent\n", r"line 2: expected a column 'bias_phrase', found \['phrase_id'"),
        (["a#1,t,p,True,1"], HEAD, "line 2: expected 6 columns, found 5"),
    ],
)  # fmt: skip
def test_malformed_annotations_are_refused_by_line(tmp_path: Path, rows: list[str], head: str, message: str) -> None:
    with pytest.raises(FairnessError, match=message):
        read_annotations(write(tmp_path, *rows, head=head), "ann", known={"a#1": "p"})


def test_the_template_is_read_back(tmp_path: Path) -> None:
    phrases = pa.table(
        {"phrase_id": ["c1#1"], "comment": ['he said "x, y"'], "phrase": ["x"], "attribute_in_window": [True]}
    )
    stream = io.StringIO()
    write_template(phrases, stream)
    (tmp_path / "t.csv").write_text(stream.getvalue(), encoding="utf-8")
    (row,) = read_annotations(tmp_path / "t.csv", "ann").table.to_pylist()
    assert row["comment"] == 'he said "x, y"' and row["bias_phrase"] is None


def test_a_phrase_that_a_spreadsheet_would_run_is_read_back_as_it_was(tmp_path: Path) -> None:
    phrase = {"phrase_id": "@c#1", "comment": "=cmd()", "phrase": "-they are", "attribute_in_window": True}
    stream = io.StringIO()
    write_template(pa.Table.from_pylist([phrase]), stream)
    (tmp_path / "t.csv").write_text(stream.getvalue(), encoding="utf-8")
    assert "'@c#1,'=cmd(),'-they are,True" in stream.getvalue()
    (row,) = read_annotations(tmp_path / "t.csv", "ann", known={"@c#1": "-they are"}).table.to_pylist()
    assert [row[name] for name in ("phrase_id", "comment", "phrase")] == ["@c#1", "=cmd()", "-they are"]


def labelled(*rows: tuple[str, str, bool | None]) -> pa.Table:
    """Annotations by phrase, annotator and label (of both levels); each phrase has its own comment."""
    return pa.Table.from_pylist(
        [
            {"phrase_id": p, "comment_id": p, "comment": p, "phrase": p, "annotator": a, "bias_sent": v, "bias_phrase": v}
            for p, a, v in rows
        ],
        schema=PHRASE_ANNOTATIONS,
    )  # fmt: skip


def test_alpha_by_hand() -> None:
    """Ten items, two annotators (Krippendorff 2011, section A): alpha of the nominal data is 0.095."""
    first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    rows = [
        (str(n), annotator, bool(v))
        for annotator, labels in (("1", first), ("2", second))
        for n, v in enumerate(labels)
    ]
    table = agreement(labelled(*rows, ("alone", "1", True)))
    assert table["items"].to_pylist() == [10, 10]
    assert table["alpha"].to_pylist()[0] == pytest.approx(0.095, abs=5e-4)
    assert agreement(labelled(("a", "1", True), ("b", "2", True))).num_rows == 0  # no item is shared


def test_a_comment_counts_once_however_many_phrases_it_has() -> None:
    """The annotators agree on nineteen comments, and disagree on one with thirty phrases."""
    rows = [
        {"phrase_id": f"c{c}#{p}", "comment_id": f"c{c}", "comment": "x", "phrase": f"{c} {p}", "annotator": annotator,
         "bias_sent": bool(c % 2) if c else annotator == "1", "bias_phrase": None}
        for c in range(20) for p in range(30 if c == 0 else 1) for annotator in ("1", "2")
    ]  # fmt: skip
    (row,) = agreement(pa.Table.from_pylist(rows, schema=PHRASE_ANNOTATIONS)).to_pylist()
    assert row["items"] == 20 and row["alpha"] > 0.85


def test_no_text_is_in_two_splits_nor_without_bias_where_somebody_saw_some() -> None:
    rows = [
        {"phrase_id": f"c{n}#1", "comment_id": f"c{n}", "comment": "x", "phrase": f"{'P' if n % 2 else 'p'}hrase  {n // 4}",
         "annotator": annotator, "bias_sent": False, "bias_phrase": label}
        for n in range(200)
        for annotator, label in (("1", n < 150), ("2", n < 150 or n == 170))
    ]  # fmt: skip
    table = draw_splits(pa.Table.from_pylist(rows, schema=PHRASE_ANNOTATIONS), 1, 50)
    texts = table["phrase"].to_pylist()
    assert len(set(texts)) == len(texts)
    without = [row["phrase"] for row in table.to_pylist() if row["split"] == "unbiased"]
    assert without and "phrase 42" not in without and "phrase 37" not in without


def test_the_majority_and_ties() -> None:
    rows = labelled(
        ("a", "1", True), ("a", "2", False), ("b", "1", True), ("b", "2", True), ("c", "1", None)
    ).to_pylist()
    assert majority(rows, "bias_phrase") == {"b": True}
    assert ties(rows, "bias_phrase") == 1


def test_phrases_of_a_comment_stay_in_one_split() -> None:
    rows = [
        {"phrase_id": f"c{n // 3}#{n % 3}", "comment_id": f"c{n // 3}", "comment": "x", "phrase": f"p{n}",
         "annotator": "1", "bias_sent": True, "bias_phrase": n % 10 != 0}
        for n in range(300)
    ]  # fmt: skip
    table = draw_splits(pa.Table.from_pylist(rows, schema=PHRASE_ANNOTATIONS), 1, 50)
    splits: dict[str, set[str]] = {}
    for row in table.to_pylist():
        if row["split"] != "unbiased":
            splits.setdefault(row["comment_id"], set()).add(row["split"])
    assert all(len(names) == 1 for names in splits.values())
    counts = [table["split"].to_pylist().count(name) for name in ("train", "dev", "test")]
    assert sum(counts) == 270 and counts[0] == pytest.approx(162, abs=8)
    with pytest.raises(FairnessError, match="1 comments hold a biased phrase, so a split would be empty"):
        draw_splits(labelled(("a", "1", True)), 1, 5)


def test_the_released_annotations_and_splits(corpora: Path) -> None:
    """The phrases and splits of table 3; annotators' remarks are not labels."""
    corpus = load(PhraseCorpus, data_file("corpora/redditbias.yaml"))
    printed = {"religion1": (1200, 720, 238, 238), "religion2": (1200, 720, 235, 236), "race": (1273, 763, 253, 254),
               "gender": (2028, 1521, 252, 253), "orientation": (1200, 720, 234, 235)}  # fmt: skip
    for dimension, source in corpus.phrases.items():
        (released,) = source.annotations
        path = released.resolve(Path())
        annotations = read_annotations(path, "1", encoding=released.encoding, ignored=corpus.ignored_labels)
        biased = annotations.table["bias_phrase"].to_pylist().count(True)
        splits = [len(read_texts(getattr(source, name), Path())) for name in ("train", "dev", "test")]
        assert (biased, *splits) == printed[dimension]
        table, figures = released_splits(source, Path(), annotations.table, 1, 100)
        assert figures["not annotated"] == 0
        assert table["split"].to_pylist().count("unbiased") == 100
        if dimension == "religion1":
            with pytest.raises(FairnessError, match="expected 1 or 0, true or false, or nothing, found 'biased\\?'"):
                read_annotations(path, "1", encoding=released.encoding, ignored=corpus.ignored_labels[1:])
