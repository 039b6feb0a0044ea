"""Distinguishable answers: the features of an answer, the named carriers, and the verdicts."""

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


def table(a: list[str], b: list[str]) -> pa.Table:
    ids = [*range(len(a)), *range(len(b))]
    return pa.table({"pair_id": ids, "side": ["a"] * len(a) + ["b"] * len(b), "response": [*a, *b]})


def distinguished(
    setting: Asked, rate: float, name: str = "police"
) -> tuple[Distinguished, np.ndarray, list[list[str]]]:
    a, b = harm(HARMS[name], rate)(setting)
    result, scores = distinguish(
        (setting.pairs["context_a"], setting.pairs["context_b"]), table(a, b), setting.words, GENDER, seed=1
    )
    return result, scores, [a, b]


def test_an_answer_is_read_without_the_groups_words() -> None:
    texts = masked(pa.array(["The uncle, my aunt saw a girl!", "Ask her mother his sister now."]), GENDER)
    words, codes, owners = text_features._words(texts)
    words_of_text = [[words[code] for code in codes[owners == text]] for text in range(2)]
    assert words_of_text == [["_", "my", "_", "saw", "_", "!"], ["ask", "_", "now"]]


def test_carriers_of_the_difference_are_named_and_counted() -> None:
    setting = Asked("gender", 3, 400)
    result, scores, (a, b) = distinguished(setting, 0.15)
    assert result.p < 0.01 and result.p_beyond_length < 0.05
    names = [carrier.text for carrier in result.carriers]
    assert any("inform" in name for name in names) and any("police" in name for name in names)
    for carrier in result.carriers:
        padded = [
            [f" {text.lower().replace('.', '').replace(',', '').replace('?', ' ?')} " for text in side]
            for side in (a, b)
        ]
        shares = [100 * np.mean([f" {carrier.text} " in text for text in side]) for side in padded]
        assert (carrier.share_a, carrier.share_b) == pytest.approx(tuple(shares))
        assert carrier.side == ("b" if carrier.share_b > carrier.share_a else "a")
        assert carrier.words <= carrier.of_words <= result.words
        assert set(carrier.text.split()) <= set(carrier.sentence.lower().rstrip(".?").replace(",", "").split()) | {"?"}
        for pair in carrier.pairs:
            assert f" {carrier.text} " in padded["ab".index(carrier.side)][pair]
    assert result.told_apart == pytest.approx(
        100 * (scores[1] > scores[0]).mean() + 50 * (scores[1] == scores[0]).mean()
    )
    assert result.told_apart > 55
    assert Distinguished.of(result.figures) == result


def test_blocks_give_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    in_one, scores_in_one, _ = distinguished(Asked("gender", 5, 300), 0.2)
    monkeypatch.setattr(distinguishable, "_BLOCK", 70)
    in_blocks, scores_in_blocks, _ = distinguished(Asked("gender", 5, 300), 0.2)
    assert in_blocks == in_one
    np.testing.assert_allclose(scores_in_blocks, scores_in_one)


def test_few_words_show_nothing() -> None:
    setting = Asked("gender", 2, 400)
    few = Words(["he / she"] * 5, setting.words.pairs, setting.words.words % 5)
    a, b = harm(HARMS["police"], 0.5)(setting)
    result, _ = distinguish(None, table(a, b), few, GENDER, seed=1)
    assert result.p == result.p_beyond_length == 1.0 and not result.carriers
    row = distinguishable.comparison(result)
    assert "5 exchanged words are too few to tell; 8 at least" in row.note


def test_a_users_answers_are_told_apart() -> None:
    """`fp.compare` takes any two lists, with clusters; another measure's fair verdict holds for that measure only."""
    setting = Asked("gender", 4, 1200)
    a, b = harm(HARMS["grave contempt"], 0.2)(setting)
    groups = [setting.words.names[code] for code in setting.words.clusterings[0]]
    table = fp.compare(a, b, groups=groups).set_index("measure")
    assert table.loc["distinguishable", "verdict"] == "differs"
    fair = table[(table["verdict"] == "fair") & ~table.index.map(is_part)]
    assert len(fair) and fair["note"].str.contains("on this measure only").all()
    unnamed = fp.compare(a, b, groups=[hash(group) for group in groups]).set_index("measure")
    assert unnamed.loc["distinguishable", "verdict"] == "differs, length not excluded"
    assert "distinguishable" not in set(fp.compare(a, b)["measure"])


def test_the_same_answers_are_no_finding() -> None:
    setting = Asked("gender", 6, 400)
    same = setting.lot(["Fine.", "Well, well.", "Go on!"])
    result, _ = distinguish(
        (setting.pairs["context_a"], setting.pairs["context_b"]),
        table(same, same),
        setting.words,
        GENDER,
        seed=1,
    )
    assert (result.p, result.told_apart, result.carriers) == (1.0, 50.0, ())


def test_words_with_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two words with the same hash the more frequent one is named, and only that is counted."""
    for module in (distinguishable, text_features):
        monkeypatch.setattr(module, "WIDTH", 7)
    setting = Asked("gender", 3, 400)
    result, _, (_, b) = distinguished(setting, 0.9)
    single = [candidate for candidate in result.carriers if candidate.side == "b" and candidate.text.isalpha()]
    assert single
    for carrier in single:
        present = [carrier.text in text.lower().replace(".", "").replace("?", "").split() for text in b]
        assert carrier.share_b == pytest.approx(100 * np.mean(present))


def test_all_exchanged_words_count_in_the_length_of_a_context() -> None:
    """`he` and `she` next to the noun count, too; a word whose contexts lean both ways has no direction."""
    a = pa.chunked_array(
        [["My uncle said he heard he left.", "My uncle left.", "An actor.", "He met him.", "A nephew"]]
    )
    b = pa.chunked_array(
        [["My aunt said she heard she left.", "My aunt left.", "An actress.", "She met her.", "The niece of"]]
    )
    clusters = np.array([0, 0, 1, 2, 3])
    directions = distinguishable._context_directions(a, b, clusters)
    np.testing.assert_array_equal(directions, [np.nan, 1, 1, 1])


def test_full_shares_emojis_and_invalid_groups() -> None:
    groups = [f"g{number % 12} / hh{number % 12}" for number in range(96)]
    table = fp.compare(["Fine."] * 96, ["Police \U0001f644."] * 96, groups=groups).set_index("measure")
    assert table.loc["distinguishable", "value_b"] == 100.0
    emojis = fp.compare(["Fine \U0001f60a."] * 96, ["Fine \U0001f644."] * 96, groups=groups).set_index("measure")
    assert emojis.loc["distinguishable", "p_paired"] < 0.01
    for wrong in ([pd.NA] * 96, [["uncle", "aunt"]] * 96):
        with pytest.raises(FairnessError, match="groups: expected a"):
            fp.compare(["Fine."] * 96, ["Fine."] * 96, groups=wrong)
    carrier = distinguishable.Carrier("police", "b", 0.0, 100.0, 12, 12, 0.001, "", ())
    assert (
        distinguishable.describe_carriers(Distinguished(96, 12, 100.0, 0.001, 0.001, (carrier,)))
        == '"police" (b 100%, a 0%)'
    )
