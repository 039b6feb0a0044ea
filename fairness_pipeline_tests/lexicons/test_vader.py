"""Every score equals the library's to the last bit: on real text, on each of its rules, and on hard generated text."""

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vaderSentiment import vaderSentiment as library

from fairness_pipeline.foundation.text_files import read_lines
from fairness_pipeline.lexicons.vader import Vader

VADER, ANALYZER = Vader(), library.SentimentIntensityAnalyzer()
PHRASES = [*library.SPECIAL_CASES, *(phrase for phrase in library.BOOSTER_DICT if " " in phrase)]
WORDS = [
    *library.NEGATE, *library.BOOSTER_DICT, *" ".join(PHRASES).split(), *PHRASES, "no", "or", "nor", "so", "this",
    "never", "without", "doubt", "least", "at", "very", "but", "can't", "ain'tn't", "table", "bus", "good", "love",
    "awful", "hate", "great", "shit", "kill", "yeah", ":)", ":(", "d:", "<3", "😀", "💔", "👎🏽", "ß", "İ", "!", "?!?", "",
]  # fmt: skip


def expected(texts: list[str]) -> list[float]:
    return [ANALYZER.polarity_scores(text)["compound"] for text in texts]


WORD = st.one_of(
    st.sampled_from(WORDS), st.sampled_from(sorted(ANALYZER.lexicon)), st.sampled_from(sorted(ANALYZER.emojis))
)
SHAPE = st.sampled_from([str, str, str.upper, str.title, '"{}"'.format, "{}!!".format, "...{},".format, "{}?".format])
TOKEN = st.builds(lambda shape, word: shape(word), SHAPE, WORD)
TEXT = st.lists(st.tuples(TOKEN, st.sampled_from([" ", " ", " ", "", "\n", "\u00a0", "  "])), max_size=14).map(
    lambda parts: "".join(word + space for word, space in parts)
)


@settings(max_examples=300, deadline=None)
@given(TEXT)
def test_text_made_of_words_that_the_rules_use(text: str) -> None:
    assert VADER.compound([text]) == expected([text])


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    assert VADER.compound([text]) == expected([text])


def test_each_phrase_and_each_modifier_before_and_after_a_word() -> None:
    texts = [
        f"{word} {value}" for word in WORDS for value in ("good", "so awful", "the LOVE", "a very big hate", "bad ass")
    ]
    texts += [f"good {word} awful {word}" for word in WORDS] + [f"I {word} love it BUT {word} hate" for word in WORDS]
    assert VADER.compound(texts) == expected(texts)
    assert len(set(VADER.compound(texts))) > 200


def real_texts(maximum: int) -> list[str]:
    if "FAIRNESS_CORPORA" not in os.environ:
        pytest.skip("FAIRNESS_CORPORA is not set: there is no real text")
    files = sorted((Path(os.environ["FAIRNESS_CORPORA"]) / "dialogues").glob("*.tsv.gz"))
    texts = [text for path in files for _, line in read_lines(path) for text in line.split("\t") if " " in text]
    return texts[:: max(1, len(texts) // maximum)][:maximum]


@pytest.mark.verify
def test_real_texts() -> None:
    texts = real_texts(20_000)
    assert VADER.compound(texts) == expected(texts)


@pytest.mark.verify
def test_two_hundred_thousand_real_texts() -> None:
    texts = real_texts(200_000)
    assert VADER.compound(texts) == expected(texts)


def test_it_can_be_pickled() -> None:
    VADER.compound(["good"])
    assert pickle.loads(pickle.dumps(VADER)).compound(["not good"]) == expected(["not good"])
