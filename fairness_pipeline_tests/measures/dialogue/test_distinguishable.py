"""Distinguishable answers: what is read of an answer, what is named, and what the verdicts say."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fairness_pipeline as fp
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.masking import masked
from fairness_pipeline.measures.dialogue import distinguishable, text_features
from fairness_pipeline.measures.dialogue.breakdown import Words
from fairness_pipeline.measures.dialogue.distinguishable import Distinguished, distinguish
from fairness_pipeline.measures.dialogue.registry import is_part
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline_tests.lineup.any_difference import HARMS, harm
from fairness_pipeline_tests.lineup.dialogue import Asked

GENDER = load_dimension("gender").masked


def column(texts: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.string())])


def found(asked: Asked, rate: float, name: str = "police") -> tuple[Distinguished, np.ndarray, list[list[str]]]:
    a, b = harm(HARMS[name], rate)(asked)
    told, scores = distinguish(
        (asked.pairs["context_a"], asked.pairs["context_b"]), column(a), column(b), asked.words, GENDER, seed=1
    )
    return told, scores, [a, b]


def test_an_answer_is_read_without_the_groups_words() -> None:
    texts = masked(pa.array(["The uncle, my aunt saw a girl!", "Ask her mother his sister now."]), GENDER).to_pylist()
    words, codes, owners = text_features._words(texts)
    read = [[words[code] for code in codes[owners == text]] for text in range(2)]
    assert read == [["_", "my", "_", "saw", "_", "!"], ["ask", "_", "now"]]


def test_what_carries_the_difference_is_named_as_counted_by_hand() -> None:
    asked = Asked("gender", 3, 400)
    told, scores, (a, b) = found(asked, 0.15)
    assert told.p < 0.01 and told.p_beyond_length < 0.05
    names = [own.text for own in told.carriers]
    assert any("inform" in name for name in names) and any("police" in name for name in names)
    for own in told.carriers:
        padded = [
            [f" {text.lower().replace('.', '').replace(',', '').replace('?', ' ?')} " for text in side]
            for side in (a, b)
        ]
        shares = [100 * np.mean([f" {own.text} " in text for text in side]) for side in padded]
        assert (own.share_a, own.share_b) == pytest.approx(tuple(shares))
        assert own.side == ("b" if own.share_b > own.share_a else "a")
        assert own.words <= own.of_words <= told.words
        assert set(own.text.split()) <= set(own.sentence.lower().rstrip(".?").replace(",", "").split()) | {"?"}
        for pair in own.pairs:
            assert f" {own.text} " in padded["ab".index(own.side)][pair]
    assert told.told_apart == pytest.approx(100 * (scores[1] > scores[0]).mean() + 50 * (scores[1] == scores[0]).mean())
    assert told.told_apart > 55
    assert Distinguished.of(told.figures) == told


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, scores, _ = found(Asked("gender", 5, 300), 0.2)
    monkeypatch.setattr(distinguishable, "_BLOCK", 70)
    parts, in_parts, _ = found(Asked("gender", 5, 300), 0.2)
    assert parts == whole
    np.testing.assert_allclose(in_parts, scores)


def test_few_words_can_tell_nothing() -> None:
    asked = Asked("gender", 2, 400)
    few = Words(["he / she"] * 5, asked.words.pairs, asked.words.words % 5)
    a, b = harm(HARMS["police"], 0.5)(asked)
    told, _ = distinguish(None, column(a), column(b), few, GENDER, seed=1)
    assert told.p == told.p_beyond_length == 1.0 and not told.carriers
    row = distinguishable.comparison(told)
    assert "5 exchanged words are too few to tell; 8 at least" in row.note


def test_answers_of_ones_own_are_told_apart() -> None:
    """`fp.compare`: any two lists, with clusters; what is fair beside it is so on its measure only."""
    asked = Asked("gender", 4, 1200)
    a, b = harm(HARMS["grave contempt"], 0.2)(asked)
    groups = [asked.words.names[place] for place in asked.words.clusterings[0]]
    table = fp.compare(a, b, groups=groups).set_index("measure")
    assert table.loc["distinguishable", "verdict"] == "differs"
    fair = table[(table["verdict"] == "fair") & ~table.index.map(is_part)]
    assert len(fair) and fair["note"].str.contains("on this measure only").all()
    unknown = fp.compare(a, b, groups=[hash(group) for group in groups]).set_index("measure")
    assert unknown.loc["distinguishable", "verdict"] == "differs, length not excluded"
    assert "distinguishable" not in set(fp.compare(a, b)["measure"])


def test_the_same_answers_are_no_finding() -> None:
    asked = Asked("gender", 6, 400)
    same = asked.lot(["Fine.", "Well, well.", "Go on!"])
    told, _ = distinguish(
        (asked.pairs["context_a"], asked.pairs["context_b"]), column(same), column(same), asked.words, GENDER, seed=1
    )
    assert (told.p, told.told_apart, told.carriers) == (1.0, 50.0, ())


def test_words_that_share_a_feature_are_told_apart_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two words in a feature of one hash: what most answers have is named, and only that is counted."""
    for module in (distinguishable, text_features):
        monkeypatch.setattr(module, "WIDTH", 7)
    asked = Asked("gender", 3, 400)
    told, _, (_, b) = found(asked, 0.9)
    single = [own for own in told.carriers if own.side == "b" and own.text.isalpha()]
    assert single
    for carrier in single:
        held = [carrier.text in text.lower().replace(".", "").replace("?", "").split() for text in b]
        assert carrier.share_b == pytest.approx(100 * np.mean(held))


def test_the_longer_context_is_that_with_all_exchanged_words() -> None:
    """`he` and `she` beside the noun count too; a word whose contexts lean both ways says nothing."""
    a = column(["My uncle said he heard he left.", "My uncle left.", "An actor.", "He met him.", "A nephew"])
    b = column(["My aunt said she heard she left.", "My aunt left.", "An actress.", "She met her.", "The niece of"])
    clusters = np.array([0, 0, 1, 2, 3])
    directions = distinguishable._context_directions(a, b, clusters)
    np.testing.assert_array_equal(directions, [np.nan, 1, 1, 1])


def test_whole_shares_pictures_and_groups_that_are_none() -> None:
    groups = [f"g{place % 12} / hh{place % 12}" for place in range(96)]
    told = fp.compare(["Fine."] * 96, ["Police \U0001f644."] * 96, groups=groups).set_index("measure")
    assert told.loc["distinguishable", "value_b"] == 100.0
    pictures = fp.compare(["Fine \U0001f60a."] * 96, ["Fine \U0001f644."] * 96, groups=groups).set_index("measure")
    assert pictures.loc["distinguishable", "p_paired"] < 0.01
    for wrong in ([pd.NA] * 96, [["uncle", "aunt"]] * 96):
        with pytest.raises(FairnessError, match="groups: expected a"):
            fp.compare(["Fine."] * 96, ["Fine."] * 96, groups=wrong)
    carrier = distinguishable.Carrier("police", "b", 0.0, 100.0, 12, 12, 0.001, "", ())
    assert distinguishable.told_by(Distinguished(96, 12, 100.0, 0.001, 0.001, (carrier,))) == '"police" (b 100%, a 0%)'
