"""Study 4's systems: classifiers with known error rates, and a filter whose own words decide the inferred groups."""

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import pyarrow as pa

from fairness_pipeline.measures.classifiers.group_rates import FN, FP, GroupRatesSettings, compare_error_rates
from fairness_pipeline.measures.classifiers.label_words import infer_masked_groups, label_words
from fairness_pipeline.measures.classifiers.many_groups import compare_many_groups
from fairness_pipeline.measures.classifiers.training_spread import judge_trainings
from fairness_pipeline.models.classifiers.prediction_files import CLASSIFIER_PREDICTIONS
from fairness_pipeline.statistics.controls import control_doubts
from fairness_pipeline.statistics.welch import LARGEST, TWO
from fairness_pipeline_tests.lineup.shared import SAID_SO, System, Truth, Verdicts

STUDY = "implicit_bias"
AUTHORS = (150, 400)
"""The least and largest number of authors of a draw; each wrote one to twelve texts."""


class Texts:
    """Texts of two or more groups, balanced by label: their labels, groups and authors."""

    def __init__(self, draw: int, groups: str = "ab") -> None:
        self.names = np.array(list(groups))
        self.random = np.random.default_rng([draw, 17])
        authors = int(self.random.integers(*AUTHORS, endpoint=True))
        wrote = self.random.geometric(0.25, authors).clip(max=12)
        self.author = np.repeat(np.arange(authors), wrote)
        self.group = (self.author % len(groups)).astype(int)
        # Labels are balanced in every group, as in the test sets.
        self.label = np.zeros(len(self.author), dtype=int)
        for group in range(len(groups)):
            members = self.random.permutation(np.flatnonzero(self.group == group))
            self.label[members[: len(members) // 2]] = 1

    def judged(self, trainings: np.ndarray) -> Verdicts:
        """Returns the verdicts on predictions; (seeds, texts)."""
        parts = []
        for seed, predicted in enumerate(trainings, start=1):
            count = len(predicted)
            parts.append(
                pa.table(
                    {
                        "text_id": [f"t{i}" for i in range(count)],
                        "label": self.label,
                        "author_group": self.names[self.group],
                        "author_id": [f"a{i}" for i in self.author],
                        "balanced": np.ones(count, dtype=bool),
                        "probability": predicted.astype(float),
                        "prediction": predicted.astype(np.int64),
                        "seed": np.full(count, seed),
                    }
                ).select(CLASSIFIER_PREDICTIONS.names)
            )
        predictions, settings = pa.concat_tables(parts).cast(CLASSIFIER_PREDICTIONS), GroupRatesSettings()
        if len(self.names) == 2:
            table = compare_error_rates(predictions, settings, {})
        else:
            table = compare_many_groups(predictions, settings, self.names.tolist())
        table = judge_trainings(table, predictions, self.names.tolist(), settings.alpha)
        return {row["measure"]: row["verdict"] for row in table.to_pylist() if row["contrast"] in (TWO, LARGEST)}


Errors = Callable[[Texts], np.ndarray]
"""Returns the chance of a wrong prediction; (seeds, texts)."""


def judge(errors: Errors, draw: int, groups: str = "ab") -> Verdicts:
    """Returns the verdicts on a classifier with these error rates."""
    texts = Texts(draw, groups)
    rates = np.atleast_2d(errors(texts))
    wrong = texts.random.random(rates.shape) < rates
    return texts.judged(np.where(wrong, 1 - texts.label, texts.label))


def _at(rate: float, texts: Texts) -> np.ndarray:
    return np.full((1, len(texts.label)), rate)


def _by_label(texts: Texts) -> np.ndarray:
    return np.where(texts.label == 1, 0.3, 0.1)[None]


def _by_author(texts: Texts) -> np.ndarray:
    return texts.random.beta(1, 4, texts.author.max() + 1)[texts.author][None]


def _few_authors(texts: Texts) -> np.ndarray:
    hard = texts.random.random(texts.author.max() + 1) < 0.1
    return np.where(hard[texts.author], 0.9, 0.1)[None]


def _seeds(texts: Texts) -> np.ndarray:
    """Three trainings, each with a random error rate for each group."""
    rates = 0.15 + texts.random.normal(0, 0.03, (3, len(texts.names)))
    return np.clip(rates[:, texts.group], 0, 1)


def _one_training(texts: Texts) -> np.ndarray:
    """Three trainings, one of which misses 40 points more of group b's positive texts."""
    rates = _seeds(texts)
    rates[texts.random.integers(3), (texts.label == 1) & (texts.group == 1)] += 0.4
    return rates


def _guesses(texts: Texts) -> np.ndarray:
    return _at(0.5, texts)


def _always_right(texts: Texts) -> np.ndarray:
    return _at(0.0, texts)


def _positive(texts: Texts) -> np.ndarray:
    """Predicts positive more often, for both groups."""
    return np.where(texts.label == 1, 0.05, 0.4)[None]


def _more(label: int, group: int, points: float, base: Errors, texts: Texts) -> np.ndarray:
    return np.clip(base(texts) + points * ((texts.label == label) & (texts.group == group)), 0, 1)


def _opposite(texts: Texts) -> np.ndarray:
    """Misses group b's positive texts and calls group a's negative texts positive; accuracy is the same."""
    return (0.1 + 0.15 * ((texts.label == 1) == (texts.group == 1)))[None]


def systems() -> Iterator[System]:
    """Yields all systems."""
    base = partial(_at, 0.15)
    innocent: dict[str, Errors] = {
        "errs in 15% of texts": base,
        "errs more about one label, of both groups": _by_label,
        "each author has an error rate of their own": _by_author,
        "errs about a tenth of the authors": _few_authors,
        "three trainings that favour a group by lot": _seeds,
        "guesses": _guesses,
        "says positive more often, of both groups": _positive,
        "is always right": _always_right,
    }
    guilty: dict[str, tuple[Errors, tuple[str, ...], float]] = {
        "misses group b's positive texts 15 points more": (partial(_more, 1, 1, 0.15, base), (FN,), 0.8),
        "misses group a's positive texts 15 points more": (partial(_more, 1, 0, 0.15, base), (FN,), 0.8),
        "calls group b's negative texts positive 15 points more": (partial(_more, 0, 1, 0.15, base), (FP,), 0.8),
        "misses group b's positive texts 25 points more, authors vary": (
            partial(_more, 1, 1, 0.25, _by_author), (FN,), 0.8),
        "misses group b's 25 points more, three trainings that vary": (
            partial(_more, 1, 1, 0.25, _seeds), (FN,), 0.6),
        "one of three trainings misses group b's positive texts 40 points more": (_one_training, (FN,), 0.8),
        "misses group b's and cries wolf about group a's": (_opposite, (FN, FP), 0.9),
        "misses group b's 15 points more, is right else": (partial(_more, 1, 1, 0.15, _always_right), (FN,), 0.9),
        "errs about group b 15 points more, both labels": (
            lambda texts: base(texts) + 0.15 * (texts.group == 1), (FN, FP), 0.8),
    }  # fmt: skip
    for name, errors in innocent.items():
        yield System(STUDY, "simulated authors", name, "innocent", partial(judge, errors), fast=True)
    for name, (errors, expected, power) in guilty.items():
        judge_draw = partial(judge, errors)
        yield System(STUDY, "simulated authors", name, "guilty", judge_draw, expected, power, fast=True)
    four: dict[str, tuple[Errors, Truth, tuple[str, ...]]] = {
        "three trainings that favour a group by lot": (_seeds, "innocent", ()),
        "one of three trainings misses group b's positive texts 40 points more": (_one_training, "guilty", (FN,)),
    }
    for name, (errors, truth, expected) in four.items():
        judge_draw = partial(judge, errors, groups="abcd")
        yield System(STUDY, "simulated authors, four groups", name, truth, judge_draw, expected, 0.8, fast=True)
    for size in (20, 60, 200, 600, 2000):
        where = f"groups inferred, a control of {size:,} texts"
        truth_at_size: Truth = "innocent" if size >= 600 else "only a control could tell"
        innocent_name = "errs by a word of the label that looks like group b"
        yield System(
            STUDY, where, innocent_name, truth_at_size, partial(controlled, False, size), (FP,), fast=size in (60, 2000)
        )
        guilty_name = "calls group b's negative texts positive 40 points more"
        yield System(STUDY, where, guilty_name, "guilty", partial(controlled, True, size), (FP,), 0.95, fast=size == 20)
    for name, truth in (("swears alike in both groups", "innocent"), ("misses group b's texts", "guilty")):
        judge_draw = partial(circular, truth == "guilty")
        where = "groups inferred from words"
        yield System(STUDY, where, f"a filter of swear words; {name}", truth, judge_draw, (FN,), fast=True)  # type: ignore[arg-type]


def controlled(guilty: bool, size: int, draw: int) -> Verdicts:
    """Judges 2,000 texts with inferred groups; in a control, `size` of them have groups inferred without label words.

    Guilty: negative texts in the style of group b are called positive 40 points more. Innocent: negative texts with a
    label word are, whatever their style; the word also makes a text look like group b's until it is left out.
    """
    random = np.random.default_rng([draw, size, 23])
    count = 2000
    label, style, has_label_word = np.arange(count) // 2 % 2, random.integers(2, size=count), random.random(count) < 0.4
    inferred = np.where(random.random(count) < 0.95, style, 1 - style)
    if not guilty:
        inferred = np.where(has_label_word & (random.random(count) < 0.8), 1, inferred)
    reinferred = np.where(random.random(count) < 0.95, style, 1 - style)
    wrong = random.random(count) < 0.1 + (0.4 * (style == 1) if guilty else 0.7 * has_label_word) * (label == 0)
    ids = np.array([f"t{i}" for i in range(count)])
    table = pa.table(
        {"text_id": ids, "label": label, "author_group": np.where(inferred == 1, "b", "a"), "author_id": ids, "balanced": ids == ids,
         "probability": np.abs(label - wrong).astype(float), "prediction": np.abs(label - wrong).astype(np.int64),
         "seed": np.ones(count, dtype=np.int64)}
    ).select(CLASSIFIER_PREDICTIONS.names).cast(CLASSIFIER_PREDICTIONS)  # fmt: skip
    kept = np.sort(random.permutation(count)[:size])
    masked = pa.table({"text_id": ids[kept], "author_group": np.where(reinferred[kept] == 1, "b", "a")})
    rows = compare_error_rates(table, GroupRatesSettings(), {}, masked).to_pylist()
    return {row["measure"]: SAID_SO if not guilty and control_doubts(row) else row["verdict"] for row in rows}


@cache
def _swears() -> tuple[str, ...]:
    return tuple(f"swear{letter}" for letter in "abcdefgh")


def circular(guilty: bool, draw: int) -> Verdicts:
    """Judges a filter of swear words on groups that a model infers from words: swearing itself looks like group b.

    Innocent: texts are offensive with or without swear words, alike in both true styles, and the filter knows only
    swear words; the inferred groups create a gap. Guilty: it also misses offensive texts in the style of group b.
    """
    random = np.random.default_rng([draw, 19])
    count = 4000
    label = np.arange(count) % 2
    style = random.integers(2, size=count)
    swears = (label == 1) & (random.random(count) < 0.5)
    texts = []
    for offensive, text_style, swearing in zip(label, style, swears, strict=True):
        words = [f"{'yx'[text_style]}{random.integers(40)}" for _ in range(6)]
        words += [str(random.choice(_swears()))] * 2 if swearing else []
        words += [f"rude{random.integers(30)}"] if offensive and not swearing else []
        texts.append(" ".join(f"word{word}" if not word.startswith(("swear", "rude")) else word for word in words))

    def group(text: str, without: frozenset[str] = frozenset()) -> str | None:
        """Infers the group: a style word counts one, a swear word counts four towards group b."""
        score = 0.0
        for word in text.split():
            if word not in without:
                score += 4.0 if word.startswith("swear") else 1.0 if "wordx" in word else -1.0 if "wordy" in word else 0
        return None if score == 0 else "b" if score > 0 else "a"

    groups = [group(text) for text in texts]
    predicted = swears.astype(int)
    missed = (
        (np.array([name == "b" for name in groups]) & (style == 1) & (random.random(count) < 0.8)) if guilty else False
    )
    predicted = np.where(missed, 0, predicted)
    ids = [f"t{i}" for i in range(count)]
    whole = pa.table(
        {"text_id": ids, "text": texts, "label": label, "author_group": [name or "a" for name in groups],
         "author_id": ids, "split": ["test"] * count}
    )  # fmt: skip
    words = frozenset(label_words(list(zip(texts, label.tolist(), strict=True))))
    masked = infer_masked_groups(whole, lambda text: group(text, words))
    kept = np.array([name is not None for name in groups])
    table = pa.table(
        {"text_id": ids, "label": label, "author_group": [name or "a" for name in groups], "author_id": ids, "balanced": kept,
         "probability": predicted.astype(float), "prediction": predicted.astype(np.int64), "seed": np.ones(count, dtype=np.int64)}
    ).select(CLASSIFIER_PREDICTIONS.names).cast(CLASSIFIER_PREDICTIONS).filter(pa.array(kept))  # fmt: skip
    judged = compare_error_rates(table, GroupRatesSettings(), {}, masked)
    return {row["measure"]: row["verdict"] for row in judged.to_pylist()}
