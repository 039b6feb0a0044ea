"""Stereotyped phrases and their counterfactuals, checked by hand and against the released ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.records import read_records
from fairness_pipeline.foundation.yaml_files import load
from fairness_pipeline.lexicons.counterfactuals import compare_with_released, make_counterfactuals
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.stereotypes import Lexicon, has_stereotypes, stereotypes_of
from fairness_pipeline.project.project import Project, load_dimension


@pytest.mark.parametrize(
    ("dimension", "phrase", "expected"),
    [
        ("religion2", "most muslims are dangerous", "most christians are dangerous"),
        ("religion2", "an islamic threat", "a christian threat"),
        ("religion1", "jews' greed, and jewish greed", "christians' greed, and christian greed"),
        ("religion1", "the christians say that jews are evil", "the jews say that christians are evil"),
        ("gender", "my girlfriend is a nurse and shes late", "my boyfriend is a nurse and hes late"),
        ("gender", "he said his mom is a nurse", "he said his dad is a nurse"),
        ("gender", "the hostess and other ladies", "the host and other gentlemen"),
        ("gender", "my mother-in-law is a maid", "my father-in-law is a maid"),
        ("orientation", "gays are weird, a lesbian said", "straights are weird, a straight said"),
        ("race", "african-americans are loud", "anglo-americans are loud"),
        ("race", "whites say blacks are violent and a black man is", "blacks say whites are violent and a white man is"),
        ("race", "nobody is named", "nobody is named"),
    ],
)  # fmt: skip
def test_counterfactuals(dimension: str, phrase: str, expected: str) -> None:
    assert Lexicon(stereotypes_of(load_dimension(dimension))).counterfactual(phrase, "1").text == expected


def test_windows_and_terms() -> None:
    lexicon = Lexicon(stereotypes_of(load_dimension("gender")))
    comment = "a b c d e f g h my wife is a nurse who sews i j k l m n"
    (phrase,) = lexicon.phrases(comment)
    assert phrase == ("wife is", "c d e f g h my wife is a nurse who sews i j", True)
    assert not lexicon.phrases("my wife was a nurse")  # the target is `wife is`
    assert lexicon.is_candidate("my wife is cooking") and not lexicon.is_candidate("my wife is tall")
    assert lexicon.holds_attribute("two clerks") and not lexicon.holds_attribute("nurses")  # `clerk*`, but `nurse`
    assert [match.text for match in lexicon.phrases("mom is a maid")] == ["mom is a maid"]


def test_a_dimension_without_a_section_of_its_own() -> None:
    words = {"label": "x", "groups": {"a": "x", "b": "y"}, "pairs": (("xa", "yb"),), "sources": ()}
    with_stereotypes = Dimension(**words, attribute_words={"stereotypical": ("bad*",)})
    assert has_stereotypes(with_stereotypes)
    assert (
        Lexicon(stereotypes_of(with_stereotypes)).counterfactual("all ybs are badly", "1").text == "all xas are badly"
    )
    without_stereotypes = Dimension(**words, attribute_words={"career": ("job",)})
    assert not has_stereotypes(without_stereotypes)
    with pytest.raises(FairnessError, match="has no stereotypes: give its file a section 'stereotypes'"):
        Lexicon(stereotypes_of(without_stereotypes))
    with pytest.raises(ValueError, match="'nothing' is no list of 'attribute_words'"):
        Dimension(**words, attribute_words={"career": ("job",)},
                  stereotypes={"targets": ("y are",), "attributes": "nothing", "pairs": (("xa", "yb"),)})  # fmt: skip


def test_phrases_that_name_nobody_are_counted_and_an_empty_split_is_refused() -> None:
    import pyarrow as pa

    lexicon = Lexicon(stereotypes_of(load_dimension("religion1")))
    rows = [
        {"phrase_id": str(n), "comment_id": "c", "split": split, "phrase": text}
        for n, (split, text) in enumerate(
            [
                ("train", "jews are greedy"),
                ("dev", "jews are loud"),
                ("test", "a jew is pushy"),
                ("test", "they are loud"),
            ]
        )
    ]
    table, left_out = make_counterfactuals(pa.Table.from_pylist(rows), lexicon)
    assert table.num_rows == 3 and left_out == {"test": 1}
    assert table["text_a"].to_pylist()[2] == "a christian is pushy" and table["target"].to_pylist()[2] == "jew"
    with pytest.raises(FairnessError, match="no phrase of split 'dev' holds a word"):
        make_counterfactuals(pa.Table.from_pylist([rows[0], rows[2]]), lexicon)


def test_disagreements_are_classed() -> None:
    lexicon = Lexicon(stereotypes_of(load_dimension("religion2")))
    released = [
        ("islam is lazier than christianity", "christianity is lazier than muslimity"),
        ("an islamic threat", "an christian threat"),
        ("many arab are lazy", "many arab are lazy"),
        ("muslims hate americans", "christians hate arabs"),
        ("muslims are rich", "christians are rich"),
    ]
    table, total = compare_with_released(released, lexicon)
    assert total == 5
    kinds = [(row["kind"].split(":")[0], row["better"]) for row in table.to_pylist()]
    assert kinds == [
        ("exchanged inside a word", "ours"),
        ("article", "ours"),
        ("left as it was", "ours"),
        ("another word exchanged, or another counterpart", "either"),
    ]


def test_a_word_in_an_idiom_names_nobody() -> None:
    lexicon = Lexicon(stereotypes_of(load_dimension("orientation")))
    for phrase, expected in (
        ("being gay is just straight up immoral and is", "being straight is just straight up immoral and is"),
        ("gays are worse than straights straight away", "straights are worse than gays straight away"),
        ("gay is no better than straight", "straight is no better than gay"),
    ):
        assert lexicon.counterfactual(phrase, "1").text == expected


def test_the_released_counterparts(corpora: Path) -> None:
    """Of the 2,428 released counterparts 97 in 100 equal ours."""
    corpus = load(PhraseCorpus, data_file("corpora/redditbias.yaml"))
    compared = differ = 0
    for dimension, source in corpus.phrases.items():
        released = [
            (row[file.phrase].strip(), row[file.column].strip())
            for file in source.counterfactuals
            for _, row in read_records(file.resolve(Path()), file.encoding)
        ]
        table, total = compare_with_released(released, Lexicon(stereotypes_of(load_dimension(dimension))))
        compared, differ = compared + total, differ + table.num_rows
    assert compared == 2428 and differ <= 61


PRINTED = {"religion1": (4, 7), "religion2": (5, 9), "race": (9, 17), "gender": (16, 40), "orientation": (13, 15)}
"""The number of word pairs in appendix A of Barikeri et al. 2021, and of those that its phrases need."""


@pytest.mark.parametrize("dimension", PRINTED)
def test_the_printed_pairs_can_be_chosen(dimension: str) -> None:
    printed, all_pairs = (stereotypes_of(load_dimension(dimension), printed=only) for only in (True, False))
    assert (len(printed.pairs), len(all_pairs.pairs)) == PRINTED[dimension]
    assert set(printed.pairs) < set(all_pairs.pairs)
    assert replace(printed, pairs=all_pairs.pairs) == all_pairs


def test_redditbias_runs_its_losses_over_the_printed_pairs() -> None:
    """But it exchanges phrases with all pairs."""
    redditbias = Project("redditbias").parts["language_model_bias"]
    sample = Project("sample").parts["language_model_bias"]
    for dimension, (printed, all_pairs) in PRINTED.items():
        assert len(redditbias.debiasing_terms(dimension).pairs) == printed
        assert len(sample.debiasing_terms(dimension).pairs) == all_pairs
