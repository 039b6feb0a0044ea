"""Texts by authors of two groups: their formats, what is refused, and how they are split and skewed."""

import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.corpora.classifiers.authored_corpus import AuthoredCorpus
from fairness_pipeline.corpora.classifiers.authored_grammar import AuthoredGrammarFile
from fairness_pipeline.corpora.classifiers.authored_texts import (
    AuthoredShares,
    AuthoredText,
    added,
    balanced,
    parts_of,
    read_authored,
    skewed,
)
from fairness_pipeline.corpora.classifiers.dialects import DialectModel
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load, validate

GROUPS = {"a": {"name": "men", "values": ["m"]}, "b": {"name": "women", "values": ["w"]}}


def corpus(**fields: Any) -> AuthoredCorpus:
    document = {"task": "t", "attribute": "g", "groups": GROUPS, "licence": "none", "citation": "none", **fields}
    return validate(AuthoredCorpus, document, Path("corpus.yaml"))


def table(folder: Path, text: str, name: str = "texts.csv", **options: Any) -> tuple[AuthoredCorpus, Path]:
    (folder / name).write_text(text, encoding="utf-8")
    return corpus(files=[{"path": name, **options}]), folder


def test_a_users_own_table(tmp_path: Path) -> None:
    text = "text,label,group\n good  &amp; new ,1,m\nbad,0,w\n,1,m\nbad,0,w\nboth,1,m\nboth,0,m\n"
    texts, left_out = read_authored(*table(tmp_path, text))
    assert texts == [AuthoredText("good & new", 1, "a"), AuthoredText("bad", 0, "b")]
    assert left_out == {"empty": 1, "the same text again": 2, "under two labels or groups": 1}


def test_columns_labels_numbers_and_a_separator_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(
        "WHO|AGE|SAID|MOOD\n1|20|café|joy\n2|51|non|sad\n3|35|huh\n4|9|eh|joy\n".encode("latin-1")
    )
    specification = corpus(
        files=[
            {
                "path": "x.csv", "separator": "|", "encoding": "latin-1", "skip_malformed": True,
                "columns": {"text": "SAID", "label": "MOOD", "group": "AGE", "author": "WHO"},
            }
        ],
        labels={"positive": ["joy"], "negative": ["sad"]},
        groups={"a": {"name": "young", "between": [18, 34]}, "b": {"name": "old", "between": [35, 99]}, "ignored": ["9"]},
    )  # fmt: skip
    texts, left_out = read_authored(specification, tmp_path)
    assert texts == [AuthoredText("café", 1, "a", "1"), AuthoredText("non", 0, "b", "2")]
    assert left_out == {"with too many or too few cells": 1, "of no group": 1}


def test_a_label_that_is_not_mapped_is_named_with_how_often_and_how_to_map_it(tmp_path: Path) -> None:
    text = "text,label,group\na,1,m\nb,2,m\nc,2,w\nd,3,w\ne,0,w\n"
    with pytest.raises(
        FairnessError,
        match=r"texts.csv, line 3: label '2' is not mapped; 2 unmapped values: '2' \(2\), '3' \(1\).*labels.ignored",
    ):
        read_authored(*table(tmp_path, text))
    with pytest.raises(
        FairnessError, match=r"line 2: group 'x' is not mapped; 1 unmapped value: 'x' \(1\).*groups.a.values"
    ):
        read_authored(*table(tmp_path, "text,label,group\na,1,x\n"))
    specification, folder = table(tmp_path, text)
    texts, left_out = read_authored(
        specification.model_copy(update={"labels": specification.labels.model_copy(update={"ignored": ("*",)})}), folder
    )
    assert len(texts) == 2 and left_out == {"of another label": 3}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("text,label\na,1\n", "expected a column 'group'"),
        ("text,label,group\na,1\n", "line 2: expected 3 columns, found 2"),
        ('text,label,group\n"a,1,m\n', "not valid CSV"),
    ],
)
def test_an_unreadable_table_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(FairnessError, match=reason):
        read_authored(*table(tmp_path, text))


def test_a_mention_is_the_label_and_leaves_the_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,g\n@anna how are you,m\nhow is it,w\n", encoding="utf-8")
    specification = corpus(files=[{"path": "t.csv", "columns": {"label": None, "group": "g"}}], mention=True)
    assert read_authored(specification, tmp_path)[0] == [
        AuthoredText("how are you", 1, "a"),
        AuthoredText("how is it", 0, "b"),
    ]


def test_words_by_number_lose_their_padding(tmp_path: Path) -> None:
    specification, folder = table(tmp_path, "text,label,group\n0 0 17 4 0 2,1,m\n0 9,0,w\n", padding="0")
    assert read_authored(specification, folder)[0][0].text == "17 4 0 2"


def test_four_cells_as_demog_text_removal_writes_them(tmp_path: Path) -> None:
    (tmp_path / "vocab").write_text("so\nhappy\nsad\n", encoding="utf-8")
    for name, line in (("pos_pos", "0 1"), ("pos_neg", "1"), ("neg_pos", "0 2"), ("neg_neg", "2")):
        (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    specification = corpus(cells={"folder": "."}, groups={"a": {"name": "white"}, "b": {"name": "black"}})
    expected = [("so happy", 1, "b"), ("happy", 1, "a"), ("so sad", 0, "b"), ("sad", 0, "a")]
    assert [tuple(text)[:3] for text in read_authored(specification, tmp_path)[0]] == expected
    (tmp_path / "neg_neg").write_text("7\n", encoding="utf-8")
    with pytest.raises(FairnessError, match=r"neg_neg, line 1: expected numbers of words, 0 to 2 .*found '7'"):
        read_authored(specification, tmp_path)


def test_chat_rooms_and_a_table_in_a_zip(tmp_path: Path) -> None:
    room = '<Session><Posts><Post class="ynQuestion" user="U1">you ok?</Post><Post class="System">JOIN</Post>'
    room += '<Post class="Statement">yes</Post></Posts></Session>'
    with zipfile.ZipFile(tmp_path / "nps.zip", "w") as archive:
        archive.writestr("nps_chat/10-19-teens_2posts.xml", room)
    specification = corpus(
        chat_rooms={"path": "nps.zip"},
        labels={"positive": ["ynQuestion"], "negative": ["Statement"], "ignored": ["*"]},
        groups={"a": {"name": "teens", "values": ["teens"]}, "b": {"name": "others", "values": ["40s"]}},
    )
    assert read_authored(specification, tmp_path) == (
        [AuthoredText("you ok?", 1, "a", "U1"), AuthoredText("yes", 0, "a")],
        {"of another label": 1},
    )
    with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as archive:
        archive.writestr("t.csv", "text,label,group\nhi,1,m\nho,0,m\n")
    assert read_authored(corpus(files=[{"path": "t.csv.zip"}]), tmp_path)[0] == [
        AuthoredText("hi", 1, "a"),
        AuthoredText("ho", 0, "a"),
    ]
    (tmp_path / "broken.csv.zip").write_bytes(b"PK no")
    with pytest.raises(FairnessError, match="the zip data is broken"):
        read_authored(corpus(files=[{"path": "broken.csv.zip"}]), tmp_path)


def test_contradictions_of_a_corpus_are_refused() -> None:
    for fields, reason in (
        ({"files": [{"path": "x.csv"}], "chat_rooms": {"path": "y.zip"}}, "expected one of"),
        ({"files": [{"path": "x.csv"}], "groups": {"a": {"name": "a"}, "b": {"name": "b"}}}, "needs 'values'"),
        ({"files": [{"path": "x.csv", "columns": {"label": None}}]}, "'columns.label' is missing"),
        ({"files": [{"path": "x.csv"}], "labels": {"positive": ["1"], "negative": ["1"]}}, "a label is in"),
        (
            {
                "files": [{"path": "x.csv"}],
                "groups": {"a": {"name": "a", "between": [18, 34]}, "b": {"name": "b", "between": [30, 99]}},
            },
            "overlap",
        ),
    ):
        with pytest.raises(FairnessError, match=reason):
            corpus(**fields)


def drawn(count: int = 4000, authors: int | None = None) -> list[AuthoredText]:
    random = np.random.default_rng(3)
    return [
        AuthoredText(f"text {i}", int(random.integers(2)), "ab"[random.integers(2)],
                     str(i % authors) if authors else None)
        for i in range(count)
    ]  # fmt: skip


def cells(texts: pa.Table, split: str, ids: set[str] | None = None) -> Counter:
    return Counter(
        (row["label"], row["author_group"])
        for row in texts.to_pylist()
        if row["split"] == split and row["balanced"] and (ids is None or row["text_id"] in ids)
    )


def test_every_split_has_as_many_of_each_label_and_group() -> None:
    texts = balanced(drawn(), "c", AuthoredShares(), 10_000, seed=1)
    for split, share in (("train", 0.7), ("valid", 0.1), ("test", 0.2)):
        counts = cells(texts, split)
        assert len(set(counts.values())) == 1 and sum(counts.values()) == pytest.approx(4000 * share, rel=0.15)
    assert texts.equals(balanced(drawn(), "c", AuthoredShares(), 10_000, seed=1))
    few = balanced(drawn(), "c", AuthoredShares(), 100, seed=1)
    assert cells(few, "train") == Counter({(y, z): 70 for y in (0, 1) for z in "ab"})


def test_an_authors_texts_are_in_one_split() -> None:
    rows = balanced(drawn(authors=60), "c", AuthoredShares(), 10_000, seed=1).to_pylist()
    assert all(len({row["split"] for row in rows if row["author_id"] == str(i)}) <= 1 for i in range(60))


def test_a_cell_without_texts_is_named_with_all_counts() -> None:
    texts = [text for text in drawn(400) if (text.label, text.group) != (1, "b")]
    with pytest.raises(FairnessError, match=r"corpus 'c': no positive text of group b .*positive of group b: 0"):
        balanced(texts, "c", AuthoredShares(), 100, seed=1)
    with pytest.raises(FairnessError, match="negative of group a: 0.*negative of group b: 0"):
        balanced([text for text in drawn(400) if text.label], "c", AuthoredShares(), 100, seed=1)


def test_the_cause_of_an_empty_cell_is_named(tmp_path: Path) -> None:
    specification, folder = table(tmp_path, "text,label,group\n")
    with pytest.raises(FairnessError, match=r"texts.csv: expected rows, found none"):
        read_authored(specification, folder)
    specification, folder = table(tmp_path, "text,label,group\na,joy,m\n")
    wrong = specification.model_copy(
        update={"labels": specification.labels.model_copy(update={"positive": ("Joy",), "ignored": ("*",)})}
    )
    with pytest.raises(FairnessError, match=r"no row has the label 'Joy'; labels found: 'joy' \(1\)"):
        read_authored(wrong, folder)
    with pytest.raises(FairnessError, match=r"negative of group b: 0; left out, empty: 7"):
        balanced([], "c", AuthoredShares(), 100, seed=1, left_out={"empty": 7})


def test_all_texts_may_be_in_the_test_split() -> None:
    texts = balanced(drawn(400), "c", AuthoredShares(train=0, valid=0, test=1), 10_000, seed=1)
    assert set(texts["split"].to_pylist()) == {"test"} and len(set(cells(texts, "test").values())) == 1
    assert texts.num_rows == 400  # none is lost, whatever the labels' and groups' numbers


def test_of_more_groups_the_first_is_learned_against_all_others() -> None:
    """A group without positive texts is tested, but is in no balanced set."""
    random = np.random.default_rng(4)
    texts = [AuthoredText(f"text {i}", int(random.integers(2)) if i % 4 < 3 else 0, "abcd"[i % 4]) for i in range(4000)]
    table = balanced(texts, "c", AuthoredShares(), 10_000, seed=1)
    learned = Counter(
        (row["label"], row["author_group"] == "a") for row in table.to_pylist() if row["split"] == "train"
    )
    assert len(learned) == 4 and len(set(learned.values())) == 1
    assert {group for _, group in cells(table, "test")} == set("abc")
    tested = [row for row in table.to_pylist() if row["split"] == "test"]
    assert len(tested) == pytest.approx(800, rel=0.1) and any(row["author_group"] == "d" for row in tested)
    assert not any(row["balanced"] for row in tested if row["author_group"] == "d")


def test_skewed_sets_are_balanced_overall_and_skewed_within_groups() -> None:
    texts = balanced(drawn(), "c", AuthoredShares(), 10_000, seed=1)
    sets = skewed(texts, ["4:1", "1:1", "1:4"]).to_pylist()
    sizes = set()
    for rate in ("4:1", "1:1", "1:4"):
        ids = {row["text_id"] for row in sets if (row["balance_rate"], row["split"]) == (rate, "train")}
        counts = cells(texts, "train", ids)
        positive, negative = parts_of(rate)
        assert counts[1, "a"] / counts[0, "a"] == pytest.approx(positive / negative, rel=0.02)
        assert counts[1, "a"] == counts[0, "b"] and counts[0, "a"] == counts[1, "b"]
        sizes.add(len(ids) // 10)
    assert len(sizes) == 1  # the sets of all rates have one size
    taken = skewed(texts, ["4:1"])
    more = set(added(texts, taken, "train"))
    ids = {row["text_id"] for row in taken.to_pylist() if row["split"] == "train"}
    assert not more & ids and len(set(cells(texts, "train", ids | more).values())) == 1
    for rate in ("4", "0:1", "a:b"):
        with pytest.raises(FairnessError, match=r"expected positive:negative .* as '4:1'"):
            parts_of(rate)
    with pytest.raises(FairnessError, match=r"balance rate 1000:1: the split 'train' has .* too few"):
        skewed(texts, ["1000:1"])


def test_the_sample_hides_no_label_in_the_spelling_and_half_a_style_tells_nothing() -> None:
    grammar = load(AuthoredGrammarFile, data_file("grammars/authored_sample.yaml"))
    cues = {spelling for _, spelling in grammar.spellings}

    def shares(grammar: AuthoredGrammarFile) -> dict[tuple[int, str], float]:
        rows = list(grammar.texts(8000, 1))
        return {
            (label, group): float(
                np.mean([bool(cues & set(r.text.split())) for r in rows if (r.label, r.group) == (label, group)])
            )
            for label in (0, 1)
            for group in "ab"
        }

    planted = shares(grammar)
    assert planted[1, "b"] - planted[1, "a"] > 0.6 and abs(planted[1, "b"] - planted[0, "b"]) < 0.04
    unstyled = shares(grammar.model_copy(update={"styled": 0.5}))
    assert max(unstyled.values()) - min(unstyled.values()) < 0.06


def test_dialects_by_hand(tmp_path: Path) -> None:
    """One word: p(k | w) is proportional to (count + 1) / total of k; two words influence each other."""
    (tmp_path / "counts.txt").write_text("9 0 0 0\n0 0 0 19\n0 9 9 0\n", encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("9\tfinna\n19\tindeed\n18\tla\n", encoding="utf-8")
    model = DialectModel(tmp_path / "counts.txt", tmp_path / "vocab.txt")
    likelihood = np.array([10 / 9, 1 / 9, 1 / 9, 1 / 19])
    shares = model.shares("finna")
    assert shares is not None and shares == pytest.approx(
        likelihood / likelihood.sum()
    )  # q is p(w|k) with equal priors
    assert model.group("finna", 0.7) == "b" and model.group("indeed indeed", 0.7) == "a"
    assert model.shares("who knows these few words") is None and model.group("finna indeed", 0.8) is None
    assert model.shares("finna a b c d e f g") is None  # under a fifth of the words is known
    (tmp_path / "counts.txt").write_text("1 2 3\n", encoding="utf-8")
    with pytest.raises(FairnessError, match=r"counts.txt, line 1: expected 4 numbers"):
        DialectModel(tmp_path / "counts.txt", tmp_path / "vocab.txt")


@pytest.mark.verify
@pytest.mark.parametrize(
    "name",
    [
        "mtc_gender",
        "mtc_race",
        "isear_gender",
        "wassa_gender",
        "crowdflower_mention",
        "nps_chat_age",
    ],
)
def test_the_real_corpora_are_read(name: str, corpora: Path) -> None:
    path = data_file(f"corpora/{name}.yaml")
    specification = load(AuthoredCorpus, path)
    texts, _ = read_authored(specification, path.parent)
    counts = cells(balanced(texts, name, AuthoredShares(), specification.maximum, 1), "test")
    assert len(counts) == 4 and min(counts.values()) >= 50
