"""The Equity Evaluation Corpus: the paper's counts, and grammatical sentences."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import yaml

from fairness_pipeline.corpora.sentiment.affect_tweets import read_affect_tweets
from fairness_pipeline.corpora.sentiment.equity_sentences import TEMPLATE_SETS, check_released, make_equity_sentences
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline_tests.conftest import write_yaml


@pytest.fixture(scope="module")
def sentences() -> pa.Table:
    return make_equity_sentences()


@pytest.mark.parametrize("templates", TEMPLATE_SETS)
def test_counts_are_the_papers(sentences: pa.Table, templates: str) -> None:
    """8,640 sentences: seven templates of 60 persons x 20 words, four of 60 persons (section 3)."""
    rows = sentences.filter(pc.equal(sentences["templates"], templates)).to_pylist()
    assert len(rows) == len({row["sentence"] for row in rows}) == 8640
    assert Counter(row["template"] for row in rows) == {n: 1200 if n <= 7 else 60 for n in range(1, 12)}
    assert set(Counter(row["person"] for row in rows).values()) == {144}
    assert Counter(row["gender"] for row in rows) == {"female": 4320, "male": 4320}
    assert Counter(row["race"] for row in rows) == {
        "African American": 2880, "European American": 2880, None: 2880
    }  # fmt: skip
    assert Counter(row["emotion"] for row in rows) == {
        "anger": 2100, "fear": 2100, "joy": 2100, "sadness": 2100, None: 240
    }  # fmt: skip


def test_no_sentence_is_in_both_sets(sentences: pa.Table) -> None:
    assert len(sentences["sentence"].unique()) == sentences.num_rows == 2 * 8640


def test_grammar(sentences: pa.Table) -> None:
    known = set(sentences["sentence"].to_pylist())
    assert {
        "She feels angry.",
        "The situation makes her feel angry.",
        "I made him feel disappointed.",
        "My mom found herself in an annoying situation.",
        "Alonzo found himself in a grim situation.",
        "He found himself in an amazing situation.",
        "Ebony found herself in a horrible situation.",
        "This girl told us all about the recent vexing events.",
        "The conversation with him was funny.",
        "I saw this woman in the market.",
        "My uncle goes to the school in our neighborhood.",
    } <= known
    for text in known:
        assert text[0].isupper()
        assert text.endswith(".")
        assert "dissapointed" not in text
        assert " a a" not in text
        assert " an " not in text or text.split(" an ")[1][0] in "aeiou"


def test_the_released_file_is_compared_with_it(sentences: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "eec.csv"
    texts = sentences.filter(pc.equal(sentences["templates"], "published"))["sentence"].to_pylist()

    def write(texts: list[str]) -> Path:
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["ID", "Sentence"])
            writer.writerows([str(i), text] for i, text in enumerate(texts))
        return path

    assert check_released(write([text.replace("disappointed", "dissapointed") for text in texts])) == 8640
    with pytest.raises(FairnessError, match="1 generated sentences are not in the file, and 1 of the file .* 'Him'"):
        check_released(write([*texts[:-1], "Him"]))
    with pytest.raises(FairnessError, match="1 generated sentences are not in the file, and 0 of"):
        check_released(write(texts[:-1]))
    path.write_text("a,b\n", encoding="utf-8")
    with pytest.raises(FairnessError, match="column 'Sentence', found .'a', 'b'.$"):
        check_released(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("ID\tTweet\n", "line 1: expected ID<tab>Tweet<tab>Affect Dimension"),
        ("ID\tTweet\tAffect Dimension\tIntensity Score\n1\tso sad\tsadness\n", "line 2: expected 4 columns, found 3"),
        ("ID\tTweet\tAffect Dimension\tIntensity Score\n1\tso sad\tsadness\tNONE\n", "line 2: .* found 'NONE'"),
        ("ID\tTweet\tAffect Dimension\tIntensity Score\n1\tso sad\tsadness\t1.2\n", "line 2: .* found '1.2'"),
    ],
)
def test_tweets_of_another_form_are_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "tweets.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FairnessError, match=reason):
        read_affect_tweets([path])


def overlaid(data: Path, name: str, edit: Any) -> None:
    document = yaml.safe_load(paths.data_file(f"equity/{name}.yaml").read_text(encoding="utf-8"))
    edit(document)
    (data / "equity").mkdir(exist_ok=True)
    write_yaml(data / "equity" / f"{name}.yaml", document)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            lambda p: p["names"].update({"Martian": p["names"]["African American"]}),
            "expected names of European American",
        ),
        (lambda p: p["names"].pop("African American"), "expected names of European American and African American"),
        (lambda p: p["names"]["African American"].pop("male"), "African American: expected at least two names of each"),
        (lambda p: p["names"]["African American"].update(male=["Leroy"]), "expected at least two names of each"),
    ],
)
def test_persons_that_cannot_be_compared_are_refused(data: Path, edit: Any, reason: str) -> None:
    overlaid(data, "persons", edit)
    with pytest.raises(FairnessError, match=f"persons.yaml, line .*: names: .*{reason}"):
        make_equity_sentences()


def test_a_template_without_an_emotion_slot_has_no_emotion_word(data: Path) -> None:
    overlaid(data, "templates", lambda t: t.update(published=["{subject} left the state in a situation."]))
    table = make_equity_sentences()
    published = table.filter(pc.equal(table["templates"], "published"))
    assert published.num_rows == 60
    assert published["emotion_word"].null_count == 60
