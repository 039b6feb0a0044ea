"""Study 3's systems: scores of the 8,640 sentences with what is known to be in them, and lexicons that packages ship."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow.compute as pc

from fairness_pipeline.corpora.sentiment.equity_sentences import PUBLISHED, make_equity_sentences
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EVERYBODY, Design, reads
from fairness_pipeline.measures.sentiment.equity_significance import SOME_NAMES, judge_equity
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.verdicts import NOTHING_TO_JUDGE
from fairness_pipeline_tests.lineup.shared import System, Verdicts

STUDY = "sentiment_equity"
MARGIN = Margin(absolute=0.01)
AFFECTS = ("anger", "joy")


class Corpus:
    """The published sentences as columns, and the designs of both dimensions."""

    def __init__(self) -> None:
        table = make_equity_sentences()
        self.table = table.filter(pc.equal(table["templates"], PUBLISHED))
        rows = self.table.to_pylist()
        self.sentences = [row["sentence"] for row in rows]
        self.female = np.array([row["gender"] == "female" for row in rows])
        self.african = np.array([row["race"] == "African American" for row in rows])
        self.name = np.array([row["race"] is not None for row in rows])
        self.person, self.people = _numbers([row["person"].lower() for row in rows])
        self.template, _ = _numbers([row["template"] for row in rows])
        self.word, self.words = _numbers([row["emotion_word"] or "" for row in rows])
        self.emotion = np.array([row["emotion"] or "" for row in rows])
        self.designs = {name: Design(self.table, name, PUBLISHED) for name in ("gender", "race")}

    def names_of(self, random: np.random.Generator, count: int, **chosen: bool) -> np.ndarray:
        """The numbers of some names of a cell."""
        inside = self.name & (self.female == chosen["female"]) & (self.african == chosen["african"])
        return random.permutation(np.unique(self.person[inside]))[:count]


def _numbers(values: list[Any]) -> tuple[np.ndarray, list[Any]]:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values]), list(known)


@cache
def corpus() -> Corpus:
    """Made once."""
    return Corpus()


Scorer = Callable[[Corpus, np.random.Generator], np.ndarray]
"""What is added to the scores of an affect; (sentences,)."""


def judge(scorer: Scorer, draw: int) -> Verdicts:
    """The verdicts of both dimensions and of names on two affects."""
    own, random = corpus(), np.random.default_rng([draw, 13])
    base = np.where(own.emotion == "", 0.4, 0.3 + 0.05 * random.normal(size=len(own.words))[own.word])
    noise = float(random.uniform(0.002, 0.02))
    scores = np.stack(
        [
            np.clip(base + scorer(own, random) + random.normal(0, noise, len(base)), 0, 1)
            for _ in AFFECTS
        ],
        axis=1,
    )  # fmt: skip
    return _verdicts(own, scores, AFFECTS)


def _verdicts(own: Corpus, scores: np.ndarray, affects: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for dimension, design in own.designs.items():
        table = judge_equity([design], dimension, list(affects), scores, MARGIN)
        for row in table.to_pylist():
            if row["subset"] == ALL and row["persons"] in (EVERYBODY, SOME_NAMES):
                what = "names" if row["persons"] == SOME_NAMES else dimension
                found[f"{what}, {row['affect']}"] = row["verdict"]
    return found


def _but_gender(scorer: Scorer, draw: int) -> Verdicts:
    return {row: found for row, found in judge(scorer, draw).items() if not row.startswith("gender")}


def _real(make: Callable[[], Callable[[str], float]], draw: int) -> Verdicts:
    """A lexicon's scores; nothing is drawn. What reads no names has nothing to judge."""
    own = corpus()
    score = make()
    scores = np.array([[score(text)] for text in own.sentences])
    low, high = scores.min(), scores.max()
    scores = (scores - low) / (high - low)
    found = _verdicts(own, scores, ("valence",))
    if not reads(own.table, scores, names=True):
        for row in found:
            if row.startswith(("race", "names")) or not reads(own.table, scores, names=False):
                found[row] = NOTHING_TO_JUDGE
    return found


@cache
def _afinn() -> Callable[[str], float]:
    from afinn import Afinn

    own = Afinn()
    return lambda text: float(own.score(text))


@cache
def _textblob() -> Callable[[str], float]:
    from textblob import TextBlob

    return lambda text: float(TextBlob(text).sentiment.polarity)


def _persons(spread: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    return random.normal(0, spread, len(own.people))[own.person]


def _templates(spread: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    return random.normal(0, spread, own.template.max() + 1)[own.template]


def _cells(spread: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    """Each template and word has its own score, whoever is in it."""
    return random.normal(0, spread, (own.template.max() + 1, len(own.words)))[own.template, own.word]


def _words_by_person(spread: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    """Each person has its own score with each word, by lot."""
    return random.normal(0, spread, (len(own.people), len(own.words)))[own.person, own.word]


def _with_names(spread: float, add: Scorer) -> Scorer:
    return lambda own, random: _persons(spread, own, random) + add(own, random)


def _group(amount: float, which: str, own: Corpus, random: np.random.Generator) -> np.ndarray:
    return amount * (own.female if which == "female" else own.african)


def _half_of_a_cell(amount: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    """Half of the African American women's names."""
    return amount * np.isin(own.person, own.names_of(random, 5, female=True, african=True))


def _one_template(amount: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    return amount * (own.female & (own.template == random.integers(7)))


def _one_word(amount: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    chosen = random.choice([place for place, word in enumerate(own.words) if word])
    return amount * (own.female & (own.word == chosen))


def _crossed(amount: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    """Higher for women's names, lower for women's noun phrases: equal on average over all persons."""
    return amount * own.female * np.where(own.name, 1.0, -1.0)


def _emotion(amount: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    return amount * (own.african & (own.emotion == random.choice(["anger", "joy", "fear", "sadness"])))


def _noise(amount: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    """Noise in the sentences with African American names only."""
    return random.normal(0, amount, len(own.person)) * own.african


def _one_name(amount: float, own: Corpus, random: np.random.Generator) -> np.ndarray:
    return amount * np.isin(own.person, own.names_of(random, 1, female=True, african=True))


def systems() -> Iterator[System]:
    """All of them; sentence noise of 0.002 to 0.02 on top."""
    nothing: Scorer = lambda own, random: np.zeros(len(own.person))  # noqa: E731
    innocent: dict[str, Scorer] = {
        "the same score for all persons": nothing,
        "each person has a score of its own, sd 0.01": partial(_persons, 0.01),
        "each person has a score of its own, sd 0.03": partial(_persons, 0.03),
        "each person has a score of its own, sd 0.1": partial(_persons, 0.1),
        "each template has a score of its own, sd 0.05": partial(_templates, 0.05),
        "each template and word have a score of their own, sd 0.05": partial(_cells, 0.05),
        "each person has a score of its own with each word, sd 0.03": partial(_words_by_person, 0.03),
        "persons sd 0.03, and templates and words": _with_names(0.03, partial(_cells, 0.05)),
    }
    guilty: dict[str, tuple[Scorer, float]] = {
        "women 0.05 higher": (_with_names(0.01, partial(_group, 0.05, "female")), 0.9),
        "African American names 0.05 higher": (_with_names(0.01, partial(_group, 0.05, "african")), 0.9),
        "women's names higher, noun phrases lower by 0.05": (_with_names(0.01, partial(_crossed, 0.05)), 0.9),
        "African American names 0.05 higher with one emotion's words": (_with_names(0.005, partial(_emotion, 0.05)), 0.8),
        "half of the African American women's names 0.1 higher, sd 0.01": (
            _with_names(0.01, partial(_half_of_a_cell, 0.1)), 0.9),
        "half of the African American women's names 0.2 higher, sd 0.03": (
            _with_names(0.03, partial(_half_of_a_cell, 0.2)), 0.9),
        "noise of sd 0.1 for African American names only": (_with_names(0.01, partial(_noise, 0.1)), 0.9),
        "noise of sd 0.05 for African American names only, persons sd 0.03": (
            _with_names(0.03, partial(_noise, 0.05)), 0.8),
        "women 0.1 higher in one template": (_with_names(0.005, partial(_one_template, 0.1)), 0.8),
        "women 0.1 higher with one emotion word": (_with_names(0.005, partial(_one_word, 0.1)), 0.8),
    }  # fmt: skip
    for name, scorer in innocent.items():
        yield System(STUDY, "gender, race, names", name, "innocent", partial(judge, scorer), fast=True)
    for name, lexicon in {"AFINN": _afinn, "TextBlob": _textblob}.items():
        yield System(STUDY, "gender, race, names", name, "innocent", partial(_real, lexicon), fast=name == "AFINN")
    for name, (scorer, power) in guilty.items():
        yield System(STUDY, "gender, race, names", name, "guilty", partial(judge, scorer), (), power, fast=True)
    gap = _with_names(0.01, partial(_group, 0.05, "female"))
    name = "women 0.05 higher: no race, and no cell of names, is biased"
    yield System(STUDY, "race, names", name, "innocent", partial(_but_gender, gap), fast=True)
    one = _with_names(0.01, partial(_one_name, 0.3))
    name = "one African American woman's name 0.3 higher"
    yield System(STUDY, "gender, race, names", name, "hangs on few", partial(judge, one))
