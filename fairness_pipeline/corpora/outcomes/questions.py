"""Makes questions: each message with a span of each group in its placeholder."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.outcomes.groups import SLOTS, UNMARKED, Groups, Span, Spans
from fairness_pipeline.corpora.outcomes.messages import Message, Messages
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.schemas import optional, schema

GROUP_QUESTIONS = schema(
    id=(pa.string(), "what names the question in a file of answers"),
    message=(pa.string(), "the message"),
    topic=(pa.string(), "what it is about"),
    groups=(pa.list_(pa.string()), f"of each file of groups the group; '{UNMARKED}' in the unmarked arm"),
    span=(pa.string(), "what says the group"),
    item=(pa.string(), "what stays the same when only the group changes: the message, of matched texts with the text"),
    meaning=optional(pa.string(), "of matched texts what they mean, by number"),
    system=(pa.string(), "a line of the chat's system prompt; empty if there is none"),
    text=(pa.string(), "the question"),
    answer=optional(pa.string(), "what an answer begins with: yes_no, number, amount, choice or ranking"),
    good=optional(pa.string(), "which answer is good for whoever is of the group"),
    options=(pa.list_(pa.string()), "of a choice or ranking what can be chosen"),
    scale=(pa.list_(pa.float64()), "of a number the smallest and the largest"),
)
"""A row for each message and group (crossed, of several files), with one span or more."""

LEFT_OUT = schema(
    message=(pa.string(), "the message"),
    group=(pa.string(), "the group, or the file of groups, that it cannot take"),
    reason=(pa.string(), "why"),
)


class Questions(NamedTuple):
    """The questions.

    Attributes:
        table: A table of `GROUP_QUESTIONS`.
        left_out: A table of `LEFT_OUT`.
        ways: The number of ways (single spans or bundles) to name the group with the fewest.
    """

    table: pa.Table
    left_out: pa.Table
    ways: int


@dataclass(frozen=True, eq=False)
class _Arm:
    """One group of each file."""

    groups: tuple[str, ...]
    spans: tuple[Spans, ...]

    @property
    def name(self) -> str:
        return " × ".join(dict.fromkeys(self.groups))

    @property
    def unmarked(self) -> bool:
        """Whether no group is named."""
        return UNMARKED in self.groups

    def of(self, slot: str, number: int) -> list[Span]:
        """The spans that name all of its groups."""
        first, *others = (spans.of(slot, number) for spans in self.spans)
        return [span for span in first if all(span in other for other in others)]


def ask(messages: Messages, files: Mapping[str, Groups], spans: int, seed: int) -> Questions:
    """Makes the questions.

    The spans of every group are dealt in turn into the same number of bundles, and a message is asked with one bundle
    of each group. Bundles with the same number are thus asked in the same messages, so that a permutation test can
    exchange them between groups. If the file has the same words around each group, such bundles have the same words.
    Each span is used equally often. A message names every group by a name, or every group by a phrase, because the
    effect of a name itself ("Nice to meet you") is no difference between groups.

    Args:
        messages: The messages.
        files: The groups, by the name of their column. The groups of several files are crossed by the spans, such
            as names, that both have.
        spans: The number of spans of a group that a message is asked with.
        seed: The seed of the order in which messages take spans.

    Raises:
        FairnessError: nothing can be asked, or two files have no span in common.

    Examples:
        >>> two = {"cats": {"person": ["a cat person"]}, "dogs": {"person": ["a dog person"]}}
        >>> pets = Groups.model_validate({"label": "Pets", "groups": two})
        >>> one = Messages.model_validate({"messages": {"bus": {"text": "{person} is on my bus."}}})
        >>> ask(one, {"pets": pets}, 1, 0).table["text"].to_pylist()
        ['A cat person is on my bus.', 'A dog person is on my bus.']
    """
    arms = _arms(files)
    order = np.random.default_rng(seed).permutation(len(messages.messages)).tolist()
    rows: list[dict[str, object]] = []
    left_out: list[dict[str, str]] = []
    ways: dict[tuple[str | None, bool], int] = {}
    matched = any(file.matched for file in files.values())
    for number, (name, message) in zip(order, messages.messages.items(), strict=True):
        if why := _unfit(message, files):
            left_out.append({"message": name, "group": " × ".join(files), "reason": why})
            continue
        assert message.slot
        kinds = _kinds([arm.of(message.slot, 0) for arm in arms if not arm.unmarked])
        turn, kind = divmod(number, len(kinds))
        spans_by_arm = {
            arm: [span for span in arm.of(message.slot, turn) if span.by_name in kinds[kind]] for arm in arms
        }
        fewest = min(map(len, filter(None, spans_by_arm.values())), default=1)
        bundles = max(1, fewest // spans)
        ways[message.slot, kind > 0] = fewest if matched else bundles
        for arm, arm_spans in spans_by_arm.items():
            if not arm_spans:
                by_names = kinds[kind] == {True}
                why = "the group has no such span" if not by_names else "names cannot be left unsaid"
                reason = f"it takes {{{message.slot}}}, and {why}"
                left_out.append({"message": name, "group": arm.name, "reason": reason})
            indices = range(len(arm_spans)) if matched else _span_indices(turn, len(arm_spans), bundles, spans)
            rows += [_row(name, message, arm, arm_spans[index], index if matched else None) for index in indices]
    table = pa.Table.from_pylist(rows, schema=GROUP_QUESTIONS)
    if not rows:
        why = f"; '{left_out[0]['message']}': {left_out[0]['reason']}" if left_out else ""
        raise FairnessError(f"none of {len(messages.messages)} messages can be asked about {' × '.join(files)}{why}")
    return Questions(table, pa.Table.from_pylist(left_out, schema=LEFT_OUT), sum(ways.values()))


def _kinds(spans_of_groups: Sequence[Sequence[Span]]) -> list[set[bool]]:
    """The kinds of spans that messages take in turn, names (True) or phrases: those that all groups have, else both."""
    kinds_of_groups = [{span.by_name for span in spans} for spans in spans_of_groups if spans]
    shared = set.intersection(*kinds_of_groups) if kinds_of_groups else set()
    return [{kind} for kind in sorted(shared)] or [{False, True}]


def _arms(files: Mapping[str, Groups]) -> list[_Arm]:
    """Every combination of groups; either none of them is named, or all are."""
    combined = (
        tuple(zip(*combination, strict=True))
        for combination in product(*(file.arms.items() for file in files.values()))
    )
    arms = [_Arm(groups, spans) for groups, spans in combined if len({group == UNMARKED for group in groups}) == 1]
    if len(files) > 1:
        arms = [arm for arm in arms if any(arm.of(slot, 0) for slot in SLOTS)]
    if sum(not arm.unmarked for arm in arms) < 2:
        raise FairnessError(
            f"groups: {' and '.join(files)} have no spans in common, so nobody can be of a group of each; files are "
            "crossed by names that both have (race and gender do)"
        )
    return arms


def _unfit(message: Message, files: Mapping[str, Groups]) -> str | None:
    """Why a message cannot be asked about the groups of some files; None if it can."""
    if message.slot is None:
        return "it has no place for a group: {person}, {me} or {text}"
    for file, groups in files.items():
        if file in message.not_for:
            return message.not_for[file]
        for group in groups.groups:
            if not group.islower() and re.search(rf"\b{re.escape(group)}\b", message.text):
                return f"it names a group itself: {group}"
    return None


def _span_indices(number: int, count: int, bundles: int, spans: int) -> list[int]:
    """The indices of the group's spans that a message takes: the next ones of its bundle."""
    bundle = range(number % bundles, count, bundles)
    start = number // bundles * spans
    return [bundle[(start + offset) % len(bundle)] for offset in range(min(spans, len(bundle)))]


def _row(name: str, message: Message, arm: _Arm, span: Span, meaning: int | None) -> dict[str, object]:
    return {
        "id": f"{name} | {arm.name} | {span.name if meaning is None else meaning}",
        "message": name,
        "topic": message.topic,
        "groups": list(arm.groups),
        "span": span.name,
        "item": name if meaning is None else f"{name}: {meaning}",
        "meaning": None if meaning is None else str(meaning),
        "system": span.line,
        "text": filled(message, span),
        "answer": message.answer,
        "good": message.good,
        "options": list(message.options),
        "scale": list(message.scale or ()),
    }


def filled(message: Message, span: Span) -> str:
    """The message with a span in its placeholder.

    Examples:
        >>> me = Message(text="{me} My landlord is away.")
        >>> [filled(me, Span("", words)) for words in ("I'm Sikh.", "", "I'm Sikh and")]
        ["I'm Sikh. My landlord is away.", 'My landlord is away.', "I'm Sikh and my landlord is away."]
    """
    if message.slot != "me":
        text = message.text.replace(f"{{{message.slot}}}", span.words)
        return text if message.slot == "text" else text[:1].upper() + text[1:]
    text = message.text.removeprefix("{me} ")
    if not span.words:
        return text
    continues = span.words[-1] not in ".!?:" and not re.match(r"I\b", text)
    return f"{span.words} {text[0].lower() + text[1:] if continues else text}"
