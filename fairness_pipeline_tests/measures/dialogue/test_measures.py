import pickle
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.measures.dialogue.attribute_words import MEASURE as ATTRIBUTE_WORDS
from fairness_pipeline.measures.dialogue.attribute_words import AttributeWordScorer
from fairness_pipeline.measures.dialogue.diversity import index_responses, indexed, measure_diversity
from fairness_pipeline.measures.dialogue.judgement import Controls, judged
from fairness_pipeline.measures.dialogue.measure import (
    SIDES,
    Measure,
    Outcome,
    SignificanceSettings,
    deciding,
    neutral_reading,
    score,
    sides,
)
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.measures.dialogue.sentiment import SentimentScorer
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.dialogue.text import collapse_punctuation, collapsed
from fairness_pipeline.models.folders import model_folder
from fairness_pipeline.project.project import load_dimension


def texts(*responses: str) -> pa.Table:
    return pa.table({"text": pa.array(responses, pa.string())})


def responses(*pairs: tuple[str, str]) -> pa.Table:
    rows = [(i, side, text) for i, pair in enumerate(pairs) for side, text in zip("ab", pair, strict=True)]
    return pa.table({name: [row[k] for row in rows] for k, name in enumerate(("pair_id", "side", "response"))})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no!!! why?? ok...", "no! why? ok."),
        ("no ! ! ! why", "no ! why"),
        ("a,,b''c\"\"d**", "a,b'c\"d*"),
        ("?!?!", "?!?!"),  # not the same mark repeated
        ("aaa -- ((x))", "aaa -- ((x))"),
    ],
)
def test_repeated_punctuation(text: str, expected: str) -> None:
    assert collapse_punctuation(text) == expected


@given(st.lists(st.text(st.sampled_from(list("ab,.!?*'\" \u00a0\u2003\x0b\x1d\x85\u3000\n-")), max_size=8), max_size=6))
@settings(max_examples=300, deadline=None)
def test_a_column_is_collapsed_as_each_text_is(texts: list[str]) -> None:
    assert collapsed(pa.chunked_array([pa.array(texts, pa.string())])).to_pylist() == [
        collapse_punctuation(t) for t in texts
    ]


def test_attribute_words_by_hand() -> None:
    scorer = AttributeWordScorer(load_dimension("gender").attribute_words)
    counted = scorer(
        texts(
            "my office, her offices and the engineers",  # 2 offices by lemma, 1 engineer
            "Weddings and wives: the in-law",  # wedding, wife, in-law
            "my mother's house, my mom'll see",  # mother, house, mom
            "nothing",
        )
    )
    assert counted["career"].to_pylist() == [3, 0, 0, 0]
    assert counted["family"].to_pylist() == [0, 3, 3, 0]


def test_words_that_lemmatise_away_still_count() -> None:
    scorer = AttributeWordScorer(load_dimension("dialect").attribute_words)
    assert scorer(texts("what an ass", "ASS !", "as if"))["unpleasant"].to_pylist() == [1, 1, 0]


def test_wildcards_and_phrases() -> None:
    scorer = AttributeWordScorer({"x": ("criminal*", "drug dealer*", "less intelligent", "hook-nose")})
    counted = scorer(
        texts(
            "criminals and criminality",
            "a drug dealer, drug dealers",
            "less intelligent people",
            "hook-nose",
            "hook nose less",
        )
    )
    assert counted["x"].to_pylist() == [2, 2, 1, 1, 0]
    scorer = AttributeWordScorer({"x": ("lazy", "lazy sheik*")})
    assert scorer(texts("a lazy sheik, lazy sheiks, lazy"))["x"].to_pylist() == [3]  # a phrase's words count once


def test_long_form() -> None:
    counts = {"career": [1, 2], "family": [0, 3], "career_masked": [1, 1], "family_masked": [0, 2]}
    assert ATTRIBUTE_WORDS.shaped(pa.table({"pair_id": [0, 0], "side": ["a", "b"], **counts})).to_pylist() == [
        {"pair_id": 0, "side": "a", "attribute": "career", "count": 1, "count_masked": 1},
        {"pair_id": 0, "side": "b", "attribute": "career", "count": 2, "count_masked": 1},
        {"pair_id": 0, "side": "a", "attribute": "family", "count": 0, "count_masked": 0},
        {"pair_id": 0, "side": "b", "attribute": "family", "count": 3, "count_masked": 2},
    ]


def test_sentiment_is_vaders() -> None:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    lines = ["I love it, what a wonderful happy day!!!", "terrible tragic disaster, so sad", "a table", "", "good"]
    scored = SentimentScorer()(texts(*lines))
    analyzer = SentimentIntensityAnalyzer()
    expected = [analyzer.polarity_scores(collapse_punctuation(line))["compound"] for line in lines]
    assert scored["compound"].to_pylist() == expected
    assert scored["positive"].to_pylist() == [value > 0.8 for value in expected] == [True, False, False, False, False]
    assert scored["negative"].to_pylist() == [value < -0.8 for value in expected] == [False, True, False, False, False]


def test_politeness_equals_the_packages_answer() -> None:
    from profanity_check import predict_prob

    lines = ["you are a stupid idiot", "have a lovely day", "go to hell"]
    scored = PolitenessScorer()(texts(*lines))
    assert scored["offensive"].to_pylist() == [True, False, True]
    odd = ["Hell, HELL and hell-fire!", "the of and", "naïve\u00a0café, don't", "", " a\tΟΔΟΣ_1 x ", "idiot " * 300]
    probabilities = PolitenessScorer()(texts(*lines, *odd))["offensive_probability"].to_pylist()
    assert probabilities == predict_prob(lines + odd).tolist()
    assert PolitenessScorer(threshold=0.999999999)(texts(*lines))["offensive"].to_pylist() == [False, False, False]


def small_classifier(folder: Path, labels: list[str]) -> str:
    """Saves a Hugging Face classifier with random weights, and returns its folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

        folder.mkdir()
        (folder / "vocab.txt").write_text(
            "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "you", "idiot", "day"])
        )
        config = BertConfig(
            vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
            id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)},
        )  # fmt: skip
        BertForSequenceClassification(config).save_pretrained(folder)
        BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return str(folder)


@pytest.mark.filterwarnings("ignore")
def test_a_hugging_face_classifier_by_folder(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    name = small_classifier(tmp_path / "model", ["not_offensive", "offensive"])
    lines = ["you idiot", "day", "you you you day"]
    tokenizer, model = (
        AutoTokenizer.from_pretrained(name),
        AutoModelForSequenceClassification.from_pretrained(name).eval(),
    )
    with torch.inference_mode():
        expected = [
            torch.softmax(model(**tokenizer(line, return_tensors="pt")).logits, -1)[0, 1].item() for line in lines
        ]
    scored = PolitenessScorer(name)(texts(*lines))["offensive_probability"].to_pylist()
    assert scored == pytest.approx(expected, abs=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_classifier_that_cannot_serve_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FairnessError, match="offence_classifier: the model in .*empty cannot be loaded"):
        PolitenessScorer(str(tmp_path / "empty"))(texts("x"))
    name = small_classifier(tmp_path / "topics", ["sports", "news"])
    with pytest.raises(
        FairnessError, match=r"has labels \['sports', 'news'\]; expected exactly one that means offensive"
    ):
        PolitenessScorer(name)(texts("x"))


@pytest.mark.filterwarnings("ignore")
def test_a_label_can_be_chosen_and_a_folder_has_a_version(tmp_path: Path) -> None:
    several = small_classifier(tmp_path / "several", ["toxic", "severe_toxic"])
    with pytest.raises(FairnessError, match="name it with measures.offence_label"):
        PolitenessScorer(several)(texts("x"))
    first, second = (
        PolitenessScorer(several, label=label)(texts("x"))["offensive_probability"][0].as_py()
        for label in ("toxic", "severe_toxic")
    )
    assert first + second == pytest.approx(1.0, abs=1e-5)
    version = model_folder(several)
    (tmp_path / "several" / "config.json").write_text("{}")
    assert version != model_folder(several)
    assert model_folder("some/id") is None


def test_distinct_responses_are_scored_once_and_in_place() -> None:
    scored_texts: list[str] = []

    def scorer(table: pa.Table) -> pa.Table:
        scored_texts.extend(table["text"].to_pylist())
        return pa.table({"length": [len(text) for text in table["text"].to_pylist()]})

    scored = score(responses(("aa", "b"), ("aa", "aa"), ("my mom", "b")), scorer, load_dimension("gender"))
    assert sorted(scored_texts) == ["aa", "b", "my _", "my mom"]
    assert scored.column_names == ["pair_id", "side", "length", "length_masked"]
    assert scored["length"].to_pylist() == [2, 1, 2, 2, 6, 1]
    assert scored["length_masked"].to_pylist() == [2, 1, 2, 2, 4, 1]


def test_sides_that_are_not_of_the_same_pairs_are_refused() -> None:
    table = responses(("a", "b"), ("c", "d")).append_column("x", pa.array([1.0, 2.0, 3.0, 4.0]))
    assert [side.tolist() for side in sides(table, "x")] == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(FairnessError, match="x: expected both sides of every pair, found 2 a, 1 b"):
        sides(table.slice(0, 3), "x")
    with pytest.raises(FairnessError, match="x: expected numbers, found NaN"):
        sides(table.set_column(3, "x", pa.array([1.0, 2.0, float("nan"), 4.0])), "x")


def test_scorers_are_picklable_and_row_by_row() -> None:
    lines = ["you idiot", "I love it, wonderful, great and happy", "a wedding in the office"]
    for scorer in (
        PolitenessScorer(),
        SentimentScorer(),
        AttributeWordScorer(load_dimension("gender").attribute_words),
    ):
        together = scorer(texts(*lines))
        copy = pickle.loads(pickle.dumps(scorer))
        assert pa.concat_tables([copy(texts(line)) for line in lines]).to_pylist() == together.to_pylist()


def test_diversity_table_by_hand() -> None:
    """Side a: `i see . i see .` and `no .`; side b: `no .` twice."""
    table = measure_diversity(responses(("I see. i see.", "no ."), ("no .", "no .")))
    a, b = table.to_pylist()
    assert (a["words"], b["words"]) == (8, 4)
    assert a["distinct_1"] == 4 / 8  # i see . no
    assert a["distinct_2"] == 4 / 8  # i-see see-. .-i no-.
    assert (b["distinct_1"], b["distinct_2"], b["diversity"]) == (2 / 4, 1 / 4, 3 / 8)


def test_index_follows_the_pairs_in_any_order() -> None:
    table = responses(("x", "y"), ("z", "x"))
    shuffled = table.take([3, 0, 2, 1])
    sides = index_responses(shuffled)
    distinct = shuffled["response"].unique().to_pylist()
    assert [distinct[i] for i in sides.a] == ["x", "z"]
    assert [distinct[i] for i in sides.b] == ["y", "x"]


def test_a_measure_without_a_neutral_reading() -> None:
    """Its table has no masked columns, and the plain responses decide."""
    plain = schema(SIDES, loud=(pa.bool_(), "whether it ends in !"))
    shouting = Measure(
        table="shouting", description="d", schema=plain, outcomes={"loud": Outcome("Loud", "loud", "{high} {low}")},
        scorer=lambda settings, dimension: lambda texts: pa.table({"loud": pc.ends_with(texts["text"], "!")}),
    )  # fmt: skip
    responses = pa.table(
        {
            "pair_id": np.repeat(np.arange(200), 2),
            "side": ["a", "b"] * 200,
            "response": ["he shouts!", "she speaks"] * 200,
        }
    )
    gender = load_dimension("gender")
    table = shouting.measure(responses, shouting.scoring(MeasureSettings(), gender))
    assert table.schema.names == plain.names
    assert list(shouting.readings(table)) == ["loud"]
    neutral = neutral_reading(responses, gender)
    significance = SignificanceSettings()
    controls = Controls(shouting.readings(table), partial(indexed, responses, neutral, significance), 10)
    rows = judged(shouting.compare(table, controls.readings, significance, seed=1), 0.05, controls)
    assert [(row.measure, row.verdict, row.difference) for row in rows] == [("loud", "biased", 100)]
    assert deciding({"loud": 1}, "loud") == 1
    assert deciding({"loud": 1, "loud_masked": 2}, "loud") == 2
