"""Study 1's systems: chat bots that answer the packaged contexts; the real measures score their answers."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.dialogue.framed_contexts import FramedContexts
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.lexicons.no_effect import REWORDING
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.answer_changes import compare_changes, measure_changes
from fairness_pipeline.measures.dialogue.breakdown import Words, moving_together, swapped_words
from fairness_pipeline.measures.dialogue.dialogue_significance import compared, controls_of
from fairness_pipeline.measures.dialogue.distinguishable import distinguish
from fairness_pipeline.measures.dialogue.instrument import PARROT, check_instruments, leaking, parrot
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.measures.dialogue.naming import NAMES_OTHER, compare_naming, name_groups
from fairness_pipeline.measures.dialogue.registry import is_part, measures, scorings
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.dialogue.spread import spreads, units_of
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline_tests.lineup.shared import System, Verdicts

STUDY = "dialogue_fairness"
SIZES = (400, 1200)
"""The least and largest number of pairs of a draw."""
SETTINGS = SignificanceSettings(permutations=400)
DIMENSIONS = ("gender", "dialect", "orientation")

NEUTRAL = (
    "That is good to know.", "I see what you mean.", "What happened next?", "How long has it been like that?",
    "Where did you hear it?", "It may take some time.", "I would wait until tomorrow.", "Did you write it down?",
    "There are two sides to it.", "You could ask once more.", "That depends on the weather.", "I had not heard of it.",
    "Perhaps next week then.", "Let us look at it step by step.", "It sounds like a long day.", "Which one was it?",
)  # fmt: skip
INSULTS = ("Shut up, you stupid idiot.", "What a bunch of fucking morons.", "Go to hell, you dumb bitch.")
CHEERS = (
    "I love it, what a wonderful and happy day!", "Amazing, that is so great, I am so happy and proud!",
    "Wonderful, best wishes and much love to you all!",
)  # fmt: skip
GLOOM = (
    "That is a terrible and horrible tragedy, I am so sad.", "What an awful disaster, I hate this terrible misery.",
)  # fmt: skip


REFUSALS = ("I'm sorry, but I can't help with that.", "I am unable to answer this.")


class Asked:
    """The contexts of one draw: both sides of each pair, the exchanged words, and a random generator."""

    def __init__(self, dimension: str, draw: int, size: int | None = None) -> None:
        self.random = np.random.default_rng([draw, 7])
        self.dimension, dialogues, table, self.leaking = _contexts(dimension)
        count = size or int(self.random.integers(*SIZES, endpoint=True))
        chosen = np.sort(self.random.permutation(table.num_rows)[:count])
        self.pairs = table.take(chosen).set_column(0, "pair_id", pa.array(np.arange(len(chosen))))
        self.words: Words = swapped_words(self.pairs)
        self.frame = units_of(self.pairs, dialogues, made=True).number
        self.contexts = [self.pairs[f"context_{side}"].to_pylist() for side in "ab"]
        terms = self.pairs["terms"].to_pylist()
        self.named = [[term[0][side] for term in terms] for side in "ab"]

    def __len__(self) -> int:
        return self.pairs.num_rows

    def lot(self, answers: Sequence[str]) -> list[str]:
        """Returns an answer for each pair, drawn uniformly."""
        return [answers[index] for index in self.random.integers(len(answers), size=len(self))]

    def of_word(self, side: int, values: Callable[[], object]) -> list[object]:
        """Returns a value for each pair that depends only on the side's exchanged word."""
        known: dict[str, object] = {}
        return [known.setdefault(word.lower(), values()) for word in self.named[side]]


@cache
def _contexts(name: str) -> tuple[Dimension, pa.Table, pa.Table, dict[str, Estimate]]:
    dimension = load_dimension(name)
    framed = FramedContexts.load("contexts/everyday.yaml")
    frames, texts = zip(*((str(frame), text) for key, frame, text in framed.texts() if key == name), strict=True)
    count = len(texts)
    ids = [str(i) for i in range(count)]
    table = pa.table({"dialogue_id": ids, "thread_id": frames, "context": texts, "split": ["audit"] * count})
    swapper = Swapper(dimension, pronouns="extended", further=True, senses=True)
    contexts = find_contexts(table, swapper, spans=framed.spans(name)).table
    options: dict[str, Any] = {"pronouns": "extended", "further": True, "senses": "rules"}
    pairs = make_pairs(contexts, dimension, maximum=count, seed=1, **options).table
    single = [measure for measure in measures() if measure.scorer]
    scored = scorings(single, MeasureSettings(), dimension)
    checked = check_instruments(parrot(pairs), single, scored, dimension, significance=SETTINGS, texts=PARROT)
    return dimension, table, pairs, leaking(checked, SETTINGS.alpha)


Bot = Callable[[Asked], tuple[list[str], ...]]
"""Returns the answers to both sides, and optionally those to the reworded contexts of side a."""


def judge(dimension: str, bot: Bot, draw: int, size: int | None = None) -> Verdicts:
    """Returns the verdicts on a bot's answers to the contexts of one draw, of a given or random size."""
    asked = Asked(dimension, draw, size)
    of_a, of_b, *reworded = bot(asked)
    count = len(asked)
    responses = pa.table(
        {
            "pair_id": pa.array([*range(count), *range(count)], pa.int64()),
            "side": ["a"] * count + ["b"] * count,
            "response": [*of_a, *of_b],
        }
    )
    specification, settings = asked.dimension, MeasureSettings()
    tables = {m.table: m.measure(responses, m.scoring(settings, specification)) for m in measures()}
    clusters = moving_together(asked.words, names_the_group=specification.names_the_group)
    distinguished, _ = distinguish(
        (asked.pairs["context_a"], asked.pairs["context_b"]), responses, asked.words, specification.masked, seed=draw
    )
    controls = controls_of(responses, tables, SETTINGS, specification.masked, clusters, asked.leaking)
    rows = compared(
        responses, tables, settings=SETTINGS, seed=draw, published={}, masked=specification, clusters=clusters,
        controls=controls, distinguished=distinguished,
        spreads=spreads(controls.values, asked.frame, asked.words.clusterings_of_forms, draw),
    )  # fmt: skip
    for answers in reworded:
        reworded_responses = pa.table(
            {
                "pair_id": pa.array(range(count), pa.int64()),
                "side": ["a"] * count,
                "change": [REWORDING] * count,
                "response": answers,
            }
        )
        rows += compare_changes(measure_changes(responses, reworded_responses, specification), SETTINGS, clusters)
    if specification.names_people:
        naming = name_groups(asked.pairs, responses, specification.exchanged(senses=True, further=True, searched=True))
        rows.append(compare_naming(naming, SETTINGS.alpha, clusters))
    return {row.measure: row.verdict for row in rows if not is_part(row.measure)}


def _mixed(asked: Asked, rates: Sequence[float], kinds: Sequence[str]) -> list[str]:
    """Returns answers of a kind at each pair's rate, and neutral answers otherwise."""
    hits = asked.random.random(len(asked)) < np.asarray(rates)
    answers, defaults = asked.lot(kinds), asked.lot(NEUTRAL)
    return [answer if hit else default for hit, answer, default in zip(hits, answers, defaults, strict=True)]


def _both(make: Callable[[Asked, int], list[str]]) -> Bot:
    return lambda asked: (make(asked, 0), make(asked, 1))


def _at_rates(kinds: Sequence[str], a: float, b: float) -> Bot:
    return _both(lambda asked, side: _mixed(asked, [(a, b)[side]] * len(asked), kinds))


def _echo(asked: Asked, side: int) -> list[str]:
    return [f"You said: {text}" for text in asked.contexts[side]]


def _about(asked: Asked, side: int) -> list[str]:
    return [
        f"Tell me more about {word}. {rest}" for word, rest in zip(asked.named[side], asked.lot(NEUTRAL), strict=True)
    ]


def _plural(asked: Asked, side: int) -> list[str]:
    """Names derivatives of the word that no list holds."""
    plurals = [word if word.endswith("s") or " " in word else f"{word}s" for word in asked.named[side]]
    return [f"I have met many {word}. {rest}" for word, rest in zip(plurals, asked.lot(NEUTRAL), strict=True)]


def _lottery(asked: Asked, side: int) -> list[str]:
    """Each word has its own answer, such as an insult, a cheer or gloom, by the same law for both groups."""
    pool = [*NEUTRAL[:8], *INSULTS[:2], *CHEERS[:2], *GLOOM[:1]]
    return [str(text) for text in asked.of_word(side, lambda: pool[asked.random.integers(len(pool))])]


def _word_rates(asked: Asked, side: int) -> list[str]:
    """Each word has its own rate of insults, by the same law for both groups."""
    rates = asked.of_word(side, lambda: float(asked.random.beta(1, 9)))
    return _mixed(asked, [float(rate) for rate in rates], INSULTS)  # type: ignore[arg-type]


def _sentence_rates(asked: Asked) -> tuple[list[str], list[str]]:
    """Each sentence has its own rate of insults, the same for both groups."""
    rates = asked.random.beta(0.5, 4.5, asked.frame.max() + 1)[asked.frame]
    return _mixed(asked, rates, INSULTS), _mixed(asked, rates, INSULTS)


def _opposite(kinds: Sequence[str], rate: float, base: float) -> Bot:
    """Half of the sentences get such answers for one group, half for the other."""

    def bot(asked: Asked) -> tuple[list[str], list[str]]:
        towards = asked.random.permutation(np.arange(asked.frame.max() + 1) % 2)[asked.frame]
        of_a, of_b = (_mixed(asked, np.where(towards == side, rate, base), kinds) for side in (0, 1))
        return of_a, of_b

    return bot


def _frames(asked: Asked) -> tuple[list[str], list[str]]:
    """The answer depends on the sentence, whoever is in it."""
    pool = [*NEUTRAL, *INSULTS, *CHEERS, *GLOOM]
    known: dict[str, str] = {}
    answers = []
    for text, word in zip(asked.contexts[0], asked.named[0], strict=True):
        frame = re.sub(rf"(?i)\b{re.escape(word)}\b", "_", text)
        answers.append(known.setdefault(frame, pool[asked.random.integers(len(pool))]))
    return answers, answers


@cache
def _eliza() -> Callable[[str, str], str]:
    from nltk.chat.eliza import eliza_chatbot

    return lambda text, session: eliza_chatbot.respond(text)


@cache
def _alice() -> Callable[[str, str], str]:
    import contextlib
    import io
    import os
    from pathlib import Path

    import aiml

    kernel = aiml.Kernel()
    kernel.verbose(False)
    folder, before = Path(aiml.__file__).parent / "botdata" / "alice", Path.cwd()
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            os.chdir(folder)
            kernel.bootstrap(learnFiles="startup.xml", commands="load alice")
        finally:
            os.chdir(before)

    def answer(text: str, session: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return str(kernel.respond(text, f"{session} {len(text)}")) or "I do not know."

    return answer


def _real(make: Callable[[], Callable[[str, str], str]]) -> Bot:
    """A bot that picks answers with Python's `random` and remembers talks: each draw has its own seed and session."""

    def answers(asked: Asked, side: int) -> list[str]:
        seed = int(asked.random.integers(2**32))
        random.seed(seed)
        return [make()(text, str(seed)) or "Go on." for text in asked.contexts[side]]

    return _both(answers)


def _hates(asked: Asked) -> tuple[list[str], list[str]]:
    a, b = asked.lot(NEUTRAL), asked.lot(NEUTRAL)
    hits = asked.random.random(len(asked)) < 0.3
    return a, [
        f"I hate {word}, such horrible and disgusting awful people." if hit else text
        for hit, word, text in zip(hits, asked.named[1], b, strict=True)
    ]


def _echo_and_insult(asked: Asked) -> tuple[list[str], list[str]]:
    a, b = _echo(asked, 0), _echo(asked, 1)
    hits, insults = asked.random.random(len(asked)) < 0.15, asked.lot(INSULTS)
    return a, [f"{text} {insult}" if hit else text for hit, text, insult in zip(hits, b, insults, strict=True)]


def _dull(asked: Asked) -> tuple[list[str], list[str]]:
    def varied() -> list[str]:
        rows = zip(asked.lot(NEUTRAL), asked.lot(NEUTRAL), asked.random.integers(10**6, size=len(asked)), strict=True)
        return [f"{first} {second} That makes {number} of them." for first, second, number in rows]

    a, b = varied(), varied()
    dull = "I do not know. I do not know what to say to you about it now. That makes 7 of them."
    return a, [dull if hit else text for hit, text in zip(asked.random.random(len(b)) < 0.6, b, strict=True)]


def _listed(asked: Asked) -> tuple[list[str], list[str]]:
    """A fifth of the answers to side b contains a word of an attribute list."""
    words = next(iter(asked.dimension.attribute_words.values()))
    plain = [word for word in words if word.isalpha()]
    a, b = asked.lot(NEUTRAL), asked.lot(NEUTRAL)
    hits, additions = asked.random.random(len(asked)) < 0.2, asked.lot(plain)
    return a, [
        f"{text} It is about {word}." if hit else text for hit, text, word in zip(hits, b, additions, strict=True)
    ]


def _refuses(asked: Asked) -> tuple[list[str], list[str]]:
    return asked.lot(NEUTRAL), _mixed(asked, [0.3] * len(asked), REFUSALS)


def _curt(asked: Asked) -> tuple[list[str], list[str]]:
    """The same kind of answer for both, a third as long for side b."""

    def long() -> list[str]:
        parts = [asked.lot(NEUTRAL) for _ in range(3)]
        return [" ".join(sentences) for sentences in zip(*parts, strict=True)]

    return long(), asked.lot(NEUTRAL)


def _by_chance(asked: Asked) -> tuple[list[str], list[str], list[str]]:
    """Any change of the context changes the answer in 40% of pairs."""
    of_a = asked.lot(NEUTRAL)
    return of_a, _changed(asked, of_a, 0.4), _changed(asked, of_a, 0.4)


def _another_answer(asked: Asked) -> tuple[list[str], list[str], list[str]]:
    """A change of the group changes 70% of the answers, a rewording 20%; all answers follow one law."""
    of_a = asked.lot(NEUTRAL)
    return of_a, _changed(asked, of_a, 0.7), _changed(asked, of_a, 0.2)


def _changed(asked: Asked, answers: list[str], rate: float) -> list[str]:
    hits = asked.random.random(len(asked)) < rate
    return [changed if hit else text for hit, text, changed in zip(hits, answers, asked.lot(NEUTRAL), strict=True)]


def _names_the_other(share: float) -> Bot:
    """A share of the answers names the other group, the others name their own."""

    def answers(asked: Asked, side: int) -> list[str]:
        swaps = asked.random.random(len(asked)) < share
        words = [asked.named[side ^ int(swap)][pair] for pair, swap in enumerate(swaps)]
        return [f"Tell me more about {word}. {rest}" for word, rest in zip(words, asked.lot(NEUTRAL), strict=True)]

    return _both(answers)


def _few_words(asked: Asked) -> tuple[list[str], list[str]]:
    """Insults three words of side b far more often."""
    counts: dict[str, int] = {}
    for word in asked.named[1]:
        counts[word.lower()] = counts.get(word.lower(), 0) + 1
    chosen = sorted(counts, key=lambda word: -counts[word])[:3]
    rates = [0.9 if word.lower() in chosen else 0.05 for word in asked.named[1]]
    return _mixed(asked, [0.05] * len(asked), INSULTS), _mixed(asked, rates, INSULTS)


def systems() -> Iterator[System]:
    """Yields all systems, in each dimension."""
    innocent: dict[str, Bot] = {
        "repeats the context": _both(lambda asked, side: asked.contexts[side]),
        "`You said: ...`": _both(_echo),
        "`Tell me more about WORD`": _both(_about),
        "`I have met many WORDs`": _both(_plural),
        "Eliza (NLTK)": _real(_eliza),
        "ALICE (python-aiml)": _real(_alice),
        "insults 10% of both groups": _at_rates(INSULTS, 0.1, 0.1),
        "cheers 30% of both groups": _at_rates(CHEERS, 0.3, 0.3),
        "answers the sentence, whoever is in it": _frames,
        "refuses 20% of both groups": _at_rates(REFUSALS, 0.2, 0.2),
        "another answer to any change of the context, in 40%": _by_chance,
        "names the other group in 12% of its answers, as people do": _names_the_other(0.12),
    }
    of_words: dict[str, Bot] = {
        "each word has its own answer, drawn by lot": _both(_lottery),
        "each word has its own rate of insults, drawn by lot": _both(_word_rates),
        "each sentence has its own rate of insults, drawn by lot": _sentence_rates,
    }
    opposite: dict[str, tuple[Bot, int, tuple[str, ...]]] = {
        "insults 20% of side a in half of the sentences, of side b in the others; 1,200 pairs": (
            _opposite(INSULTS, 0.2, 0.0), 1200, ("offense_rate",)),
        "cheers 20% of both, 10 points more to one side in each sentence; all pairs": (
            _opposite(CHEERS, 0.25, 0.15), 100_000, ("sentiment_positive",)),
    }  # fmt: skip
    guilty: dict[str, tuple[Bot, tuple[str, ...]]] = {
        "insults side b 12 points more": (_at_rates(INSULTS, 0.1, 0.22), ("offense_rate",)),
        "insults side a 12 points more": (_at_rates(INSULTS, 0.22, 0.1), ("offense_rate",)),
        "repeats the context, and insults 15% of side b": (_echo_and_insult, ("offense_rate",)),
        "`I hate WORD` to 30% of side b": (_hates, ("sentiment_negative", "offense_rate")),
        "cheers side b 25 points less": (_at_rates(CHEERS, 0.4, 0.15), ("sentiment_positive",)),
        "gloom for side b, 15 points more": (_at_rates(GLOOM, 0.05, 0.2), ("sentiment_negative",)),
        "a listed word in a fifth of the answers to side b": (_listed, ()),
        "one dull answer to 60% of side b": (_dull, ("diversity",)),
        "refuses 30% of side b": (_refuses, ("refusal",)),
        "answers side b in a third of the words": (_curt, ("length",)),
        "another answer when the group changes, in 70%": (_another_answer, ("similarity",)),
    }
    misnaming = {
        "names the other group, whoever is in it": _names_the_other(1.0),
        "names one of the groups at random": _names_the_other(0.5),
    }
    for dimension in DIMENSIONS:
        fast = dimension == "gender"
        for name, bot in misnaming.items() if load_dimension(dimension).names_people else ():
            yield System(STUDY, dimension, name, "guilty", partial(judge, dimension, bot), (NAMES_OTHER,), fast=fast)
        for name, bot in innocent.items():
            slow = name.startswith("ALICE")
            yield System(STUDY, dimension, name, "innocent", partial(judge, dimension, bot), fast=fast and not slow)
        for name, bot in of_words.items():
            yield System(STUDY, dimension, name, "innocent", partial(judge, dimension, bot), fast=fast)
        for name, (bot, expected) in guilty.items():
            yield System(STUDY, dimension, name, "guilty", partial(judge, dimension, bot), expected, fast=fast)
        for name, (bot, size, expected) in opposite.items() if dimension != "orientation" else ():
            judge_draw = partial(judge, dimension, bot, size=size)
            yield System(STUDY, dimension, name, "guilty", judge_draw, expected, fast=fast and size < 2000)
        name = "insults three words of side b"
        yield System(STUDY, dimension, name, "hangs on few", partial(judge, dimension, _few_words), fast=fast)
