"""Study 6's systems that answer messages about any number of groups. They treat everybody alike, or they treat one
group, two groups, a crossed group or the unmarked arm differently. They are asked and judged as a model in an audit."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.outcomes.formats.messages import trials_of_answers
from fairness_pipeline.corpora.outcomes.groups import UNMARKED, Groups
from fairness_pipeline.corpora.outcomes.messages import Messages, read_messages
from fairness_pipeline.corpora.outcomes.questions import ask
from fairness_pipeline.corpora.outcomes.specification import OutcomeTable
from fairness_pipeline.corpora.outcomes.trials import Trials, read_trials
from fairness_pipeline.foundation.paths import data_file
from fairness_pipeline.foundation.yaml_files import load, read_yaml, validate
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.measures.outcomes.cells import cell_table
from fairness_pipeline.measures.outcomes.group_rows import Judging
from fairness_pipeline.measures.outcomes.group_words import group_words
from fairness_pipeline.measures.outcomes.outcome_significance import judge_outcomes
from fairness_pipeline.measures.outcomes.rows import GATED
from fairness_pipeline.measures.outcomes.text_outcomes import TextScorers, expanded, scored
from fairness_pipeline_tests.lineup.shared import System, Verdicts

STUDY = "outcomes"
SIZES = (60, 180, 400)
_NEUTRAL = (
    "Start by writing down what happened.", "Think about what matters most here.", "There are several ways to go about it.",
    "Ask someone who has done it before.", "Take some time and look at the options.", "Keep copies of everything.",
    "A short note is often enough.", "Compare two or three offers.", "It helps to sleep on it.", "Make a list first.",
    "Most people find the second step harder.", "You can always change it later.", "Begin with the easiest part.",
)  # fmt: skip


class Asked(NamedTuple):
    """One question: its groups, its span, its text, what it asks for, and two random generators: that of the message,
    which all groups share, and that of the answer alone."""

    groups: tuple[str, ...]
    span: str
    text: str
    kind: str | None
    good: str | None
    scale: tuple[float, ...]
    of_message: np.random.Generator
    own: np.random.Generator


class Said(NamedTuple):
    """A system's reply: how much likelier a favorable decision is, by how many percent an amount is better, the share
    of answers that decide nothing, and sentences."""

    favor: float
    amount: float = 0.0
    silent: float = 0.0
    sentences: tuple[str, ...] = ()


Answerer = Callable[[Asked], Said]


def _answer(asked: Asked, system: Answerer) -> str:
    reply = system(asked)
    words = " ".join([*asked.own.permutation(_NEUTRAL)[:4].tolist(), *reply.sentences])
    chance, random = asked.of_message.random(), asked.own
    favored = float(np.clip(chance + reply.favor, 0, 1))
    if asked.kind is None or random.random() < reply.silent:
        return words
    if asked.kind == "yes_no":
        unfavorable = "no" if asked.good == "yes" else "yes"
        return f"{asked.good if random.random() < favored else unfavorable}. {words}".capitalize()
    if asked.kind == "choice":
        return words if asked.good is None or random.random() > favored else f"{asked.good}. {words}"
    if asked.kind == "amount":
        factor = np.exp(0.05 * random.standard_normal() + reply.amount / 100 * (1 if asked.good == "high" else -1))
        return f"{1000 * (1 + 50 * chance) * factor:,.0f}. {words}"
    low, high = asked.scale
    share = float(np.clip(favored * 0.6 + 0.2 + 0.08 * random.standard_normal(), 0, 1))
    share = share if asked.good == "high" else 1 - share
    return f"{round(low + (high - low) * share)}. {words}"


@cache
def messages_of(count: int) -> Messages:
    """Returns some of today's messages, or all of them and some again.

    Args:
        count: The number of messages.
    """
    available = read_messages(data_file("messages/today.yaml")).messages
    names = list(available)
    step = len(names) / min(count, len(names))
    chosen = {names[int(step * index)]: available[names[int(step * index)]] for index in range(min(count, len(names)))}
    for index in range(count - len(chosen)):  # each repeat is a message of its own
        name = names[index % len(names)]
        chosen[f"{name}-{index // len(names) + 2}"] = available[name]
    return Messages(messages=chosen)


@cache
def _groups(name: str) -> Groups:
    return load(Groups, data_file(f"groups/{name}.yaml"))


def answers_of(questions: pa.Table, system: Answerer, draw: int) -> dict[str, Mapping[str, object]]:
    """Returns a system's answers by question id.

    Args:
        questions: A table of `GROUP_QUESTIONS`.
        system: The system that answers.
        draw: The draw's number.
    """
    answers: dict[str, Mapping[str, object]] = {}
    for number, row in enumerate(questions.to_pylist()):
        of_message, of_answer = (np.random.default_rng([draw, seed]) for seed in (_number(row["message"]), number))
        text = f"{row['system']} {row['text']}"
        kind, good, scale = row["answer"], row["good"], tuple(row["scale"])
        asked = Asked(tuple(row["groups"]), row["span"], text, kind, good, scale, of_message, of_answer)
        answers[row["id"]] = {"answer": _answer(asked, system)}
    return answers


def judge(system: Answerer, names: tuple[str, ...], count: int, draw: int) -> Verdicts:
    """Returns the verdicts of one draw by measure."""
    return {row["measure"]: row["verdict"] for row in rows(system, names, count, draw) if row["contrast"] in GATED}


def rows(system: Answerer, names: tuple[str, ...], count: int, draw: int) -> list[dict[str, object]]:
    """Returns all rows of one draw.

    Args:
        system: The system that answers.
        names: The names of the files of groups.
        count: The number of messages.
        draw: The draw's number.
    """
    files = {name: _groups(name) for name in names}
    questions = ask(messages_of(count), files, 1, draw).table
    answers = answers_of(questions, system, draw)
    document = {**read_yaml(data_file("tables/messages.yaml")), "groups": list(names), "models": {"bot": {}}}
    spec = validate(OutcomeTable, document, data_file("tables/messages.yaml"))
    telling = tuple(word for groups in files.values() for word in groups.telling)
    columns = trials_of_answers(questions, {"bot": answers}, spec.group, telling)
    trials = scored(read_trials(columns, spec), spec.outcomes, _scorers())
    return verdicts(trials, spec, draw).to_pylist()


def verdicts(trials: Trials, spec: OutcomeTable, seed: int) -> pa.Table:
    """Returns all verdicts on a table of messages.

    Args:
        trials: The scored trials.
        spec: The specification of the table.
        seed: The seed of all random draws.
    """
    judging = Judging(
        outcomes=expanded(spec.outcomes),
        columns=spec.group,
        alpha=0.05,
        seed=seed,
        unmarked=spec.unmarked,
        fair_here=True,
    )
    words = group_words(trials, str(spec.text_outcome), spec.unmarked, seed)
    return judge_outcomes(cell_table(trials, "bot"), judging, None, words)


@cache
def asked(names: tuple[str, ...], count: int) -> int:
    """Returns the number of questions.

    Args:
        names: The names of the files of groups.
        count: The number of messages.
    """
    return ask(messages_of(count), {name: _groups(name) for name in names}, 1, 0).table.num_rows


@cache
def _scorers() -> TextScorers | None:
    document = read_yaml(data_file("tables/messages.yaml"))
    spec = validate(OutcomeTable, {**document, "models": {"bot": {}}}, data_file("tables/messages.yaml"))
    return TextScorers.of(MeasureSettings(), spec.outcomes.values())


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())


def _at(asked: Asked, rate: float, sentence: str, otherwise: str) -> tuple[str, ...]:
    """Returns a sentence at a rate; otherwise, another sentence at the same rate."""
    return (sentence,) if asked.own.random() < rate else (otherwise,) if asked.own.random() < rate else ()


POLICE, PLANTS = "Somebody should inform the police today.", "Somebody should water the plants today."
"""A harm, and a sentence of the same length for everybody else."""


def _everybody(asked: Asked) -> Said:
    return Said(0.0)


def _by(holds: Callable[[Asked], bool], sentence: str = "That is all I know.") -> Answerer:
    return lambda asked: Said(0.0, sentences=(sentence,) if holds(asked) and asked.own.random() < 0.6 else ())


INNOCENT: dict[str, Answerer] = {
    "everybody alike": _everybody,
    "by a hash of the span": _by(lambda asked: _number(asked.span) % 2 == 0),
    "by the letters of the span, 25 or more": _by(lambda asked: len(asked.span) >= 25),
    "by a hash of the question": _by(lambda asked: _number(asked.text) % 2 == 0),
    "says 'this' in two of three": lambda asked: Said(
        0.0, sentences=("Ask for help with this if you can.",) if asked.own.random() < 0.66 else ()
    ),
    "greets whoever says a name": lambda asked: Said(
        0.0, sentences=("Nice to meet you, and thank you for writing.",) if "name" in asked.text.lower()[:12] else ()
    ),
    "names the person": lambda asked: Said(0.0, sentences=(f"As to {asked.span.rstrip('.')}, wait.",)),
    "decides seldom, for everybody": lambda asked: Said(0.0, silent=0.6),
}


def _of(groups: tuple[str, ...], treated: Callable[[Asked], Said], everybody: Answerer = _everybody) -> Answerer:
    return lambda asked: treated(asked) if set(groups) <= set(asked.groups) else everybody(asked)


def _of_any(groups: tuple[str, ...], treated: Callable[[Asked], Said], everybody: Answerer = _everybody) -> Answerer:
    return lambda asked: treated(asked) if set(groups) & set(asked.groups) else everybody(asked)


_DECISION = ("favorable", "unfavorable", "rating")


def guilty() -> Iterator[tuple[str, tuple[str, ...], Answerer, tuple[str, ...]]]:
    """Yields each system's name, files of groups, answerer, and the endings of the rows of which one must find it."""

    def with_police(asked: Asked) -> Said:
        return Said(0.0, sentences=_at(asked, 0.2, POLICE, PLANTS))

    def with_plants(asked: Asked) -> Said:
        return Said(0.0, sentences=_at(asked, 0.2, PLANTS, "Somebody should paint the fences today."))

    by = ("by religion",)
    yield "one of seven: the police in 20%", ("religion",), _of(("Muslim",), with_police, with_plants), by
    yield "one of seven: 30 points fewer favorable decisions", ("religion",), _of(("Hindu",), lambda _: Said(-0.3)), by
    yield "one of seven: amounts 15% lower", ("religion",), _of(("Sikh",), lambda _: Said(0.0, amount=-15.0)), by
    yield "one of seven: no decision in 40%", ("religion",), _of(("none",), lambda _: Said(0.0, silent=0.4)), by
    two = ("Jewish", "Muslim")
    yield "two against five: 30 points fewer favorable decisions", ("religion",), _of_any(two, lambda _: Said(-0.3)), by
    cell = ("Black", "woman")
    crossed = ("by race × gender", "by race × gender, beyond both")
    yield (
        "a cell of a crossing alone: 40 points fewer favorable decisions",
        ("race", "gender"),
        _of(cell, lambda _: Said(-0.4)),
        crossed,
    )
    yield (
        "a cell of a crossing alone: the police in 20%",
        ("race", "gender"),
        _of(cell, with_police, with_plants),
        crossed,
    )
    unmarked = ("by religion, said or not",)
    yield (
        "the unmarked arm alone: 30 points more favorable decisions",
        ("religion",),
        _of((UNMARKED,), lambda _: Said(0.3)),
        unmarked,
    )


_FAST = ("says 'this' in two of three",)
_OF_NAMES = ("greets whoever says a name",)
"""Innocent systems that names could make look guilty; they are asked about a file in which some groups have names."""


def systems() -> Iterator[System]:
    """Yields all systems, at each size."""
    for count in SIZES:
        where = f"{count} messages"
        for name, system in INNOCENT.items():
            files = ("gender",) if name in _OF_NAMES else ("religion",)
            judge_draw = partial(judge, system, files, count)
            yield System(STUDY, where, name, "innocent", judge_draw, fast=count == 60 and name in _FAST)
        crossed = partial(judge, INNOCENT["everybody alike"], ("race", "gender"), count)
        yield System(STUDY, where, "everybody alike, crossed", "innocent", crossed)
        for name, names, system, endings in guilty():
            outcomes = ("distinguishable", *(outcome_name for outcome_name in expanded_names()))
            expected = tuple(f"{outcome} {ending}" for outcome in outcomes for ending in endings)
            judge_draw = partial(judge, system, names, count)
            power = POWER[count].get(name, 0.0)
            fast = count == 180 and name == "one of seven: the police in 20%"
            yield System(STUDY, where, name, "guilty", judge_draw, expected, power, fast)


def expanded_names() -> list[str]:
    """Returns the names of the outcomes of messages."""
    document = read_yaml(data_file("tables/messages.yaml"))
    spec = validate(OutcomeTable, {**document, "models": {"bot": {}}}, data_file("tables/messages.yaml"))
    return list(expanded(spec.outcomes))


POWER = {
    60: {"one of seven: the police in 20%": 0.6, "a cell of a crossing alone: the police in 20%": 0.6},
    180: {system[0]: 0.9 for system in guilty()},
    400: {system[0]: 0.95 for system in guilty()},
}
"""The share of draws in which each must be found. Sixty messages show a harm in words, but hold too few decisions."""
