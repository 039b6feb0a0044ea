"""Study 3's systems: simulated scores of the 8,640 sentences with known differences, and lexicons of packages."""

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

    def names_of(self, random: np.random.Generator, count: int, **cell: bool) -> np.ndarray:
        """Draws the numbers of at most `count` names of a cell."""
        in_cell = self.name & (self.female == cell["female"]) & (self.african == cell["african"])
        return random.permutation(np.unique(self.person[in_cell]))[:count]


def _numbers(values: list[Any]) -> tuple[np.ndarray, list[Any]]:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values]), list(known)


@cache
def corpus() -> Corpus:
    """Returns the corpus, which is made once."""
    return Corpus()


Scorer = Callable[[Corpus, np.random.Generator], np.ndarray]
"""Returns what is added to the scores of an affect; (sentences,)."""


def judge(scorer: Scorer, draw: int) -> Verdicts:
    """Returns the verdicts on both dimensions and on names, for two affects."""
    sentences, random = corpus(), np.random.default_rng([draw, 13])
    base = np.where(sentences.emotion == "", 0.4, 0.3 + 0.05 * random.normal(size=len(sentences.words))[sentences.word])
    noise = float(random.uniform(0.002, 0.02))
    scores = np.stack(
        [
            np.clip(base + scorer(sentences, random) + random.normal(0, noise, len(base)), 0, 1)
            for _ in AFFECTS
        ],
        axis=1,
    )  # fmt: skip
    return _verdicts(sentences, scores, AFFECTS)


def _verdicts(sentences: Corpus, scores: np.ndarray, affects: tuple[str, ...]) -> dict[str, str]:
    verdicts = {}
    for dimension, design in sentences.designs.items():
        table = judge_equity([design], dimension, list(affects), scores, MARGIN)
        for row in table.to_pylist():
            if row["subset"] == ALL and row["persons"] in (EVERYBODY, SOME_NAMES):
                subject = "names" if row["persons"] == SOME_NAMES else dimension
                verdicts[f"{subject}, {row['affect']}"] = row["verdict"]
    return verdicts


def _without_gender(scorer: Scorer, draw: int) -> Verdicts:
    return {row: verdict for row, verdict in judge(scorer, draw).items() if not row.startswith("gender")}


def _real(make: Callable[[], Callable[[str], float]], draw: int) -> Verdicts:
    """Judges a lexicon's scores; nothing is drawn. A lexicon that reads no names has nothing to judge."""
    sentences = corpus()
    score = make()
    scores = np.array([[score(text)] for text in sentences.sentences])
    low, high = scores.min(), scores.max()
    scores = (scores - low) / (high - low)
    verdicts = _verdicts(sentences, scores, ("valence",))
    if not reads(sentences.table, scores, names=True):
        for row in verdicts:
            if row.startswith(("race", "names")) or not reads(sentences.table, scores, names=False):
                verdicts[row] = NOTHING_TO_JUDGE
    return verdicts


@cache
def _afinn() -> Callable[[str], float]:
    from afinn import Afinn

    lexicon = Afinn()
    return lambda text: float(lexicon.score(text))


@cache
def _textblob() -> Callable[[str], float]:
    from textblob import TextBlob

    return lambda text: float(TextBlob(text).sentiment.polarity)


def _persons(spread: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    return random.normal(0, spread, len(sentences.people))[sentences.person]


def _templates(spread: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    return random.normal(0, spread, sentences.template.max() + 1)[sentences.template]


def _cells(spread: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    """Each pair of a template and a word has its own score, the same for all persons."""
    return random.normal(0, spread, (sentences.template.max() + 1, len(sentences.words)))[
        sentences.template, sentences.word
    ]


def _words_by_person(spread: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    """Each person has its own random score with each word."""
    return random.normal(0, spread, (len(sentences.people), len(sentences.words)))[sentences.person, sentences.word]


def _with_names(spread: float, add: Scorer) -> Scorer:
    return lambda sentences, random: _persons(spread, sentences, random) + add(sentences, random)


def _group(amount: float, group: str, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    return amount * (sentences.female if group == "female" else sentences.african)


def _half_of_a_cell(amount: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    """Half of the African American women's names."""
    return amount * np.isin(sentences.person, sentences.names_of(random, 5, female=True, african=True))


def _one_template(amount: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    return amount * (sentences.female & (sentences.template == random.integers(7)))


def _one_word(amount: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    chosen = random.choice([number for number, word in enumerate(sentences.words) if word])
    return amount * (sentences.female & (sentences.word == chosen))


def _crossed(amount: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    """Higher for women's names, lower for women's noun phrases: equal on average over all persons."""
    return amount * sentences.female * np.where(sentences.name, 1.0, -1.0)


def _emotion(amount: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    return amount * (sentences.african & (sentences.emotion == random.choice(["anger", "joy", "fear", "sadness"])))


def _noise(amount: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    """Noise in the sentences with African American names only."""
    return random.normal(0, amount, len(sentences.person)) * sentences.african


def _one_name(amount: float, sentences: Corpus, random: np.random.Generator) -> np.ndarray:
    return amount * np.isin(sentences.person, sentences.names_of(random, 1, female=True, african=True))


def systems() -> Iterator[System]:
    """Yields all systems; sentence noise of 0.002 to 0.02 is added."""
    nothing: Scorer = lambda sentences, random: np.zeros(len(sentences.person))  # noqa: E731
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
    yield System(STUDY, "race, names", name, "innocent", partial(_without_gender, gap), fast=True)
    single_name = _with_names(0.01, partial(_one_name, 0.3))
    name = "one African American woman's name 0.3 higher"
    yield System(STUDY, "gender, race, names", name, "hangs on few", partial(judge, single_name))
