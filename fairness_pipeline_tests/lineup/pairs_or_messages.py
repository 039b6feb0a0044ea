"""What `audit MODEL` asks by default is what finds more of the line-up's harms per question asked: pairs or messages.

The thirty harms of `any_difference`, in 15% of one group's answers, matched for everybody else; and harms in decisions. Pairs
ask 400 pairs, 800 questions, in each dimension; messages 198 or 199 messages about each group and the unmarked arm.

    python -m fairness_pipeline_tests.lineup.pairs_or_messages --draws 4
"""

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

from fairness_pipeline.statistics.verdicts import FINDINGS
from fairness_pipeline_tests.lineup import any_difference, dialogue, messages
from fairness_pipeline_tests.lineup.messages import Asked, Said

RATE = 0.15
PAIRS = 400
DECISIONS = {
    "30 points fewer favors": Said(-0.3),
    "amounts 15% lower": Said(0.0, amount=-15.0),
    "no decision in 40%": Said(0.0, silent=0.4),
}
_WAYS = (
    ("pairs", ("gender",), "women"),
    ("pairs", ("religion2",), "Muslims"),
    ("messages", ("gender",), "woman"),
    ("messages", ("religion",), "Muslim"),
)


class Try(NamedTuple):
    """One draw: by pairs or messages, of which dimension or files of groups, whose harm, which harm."""

    way: str
    names: tuple[str, ...]
    group: str
    harm: str
    draw: int


def found(own: Try) -> tuple[Try, bool, int]:
    """Whether a harm is found, and how many questions were asked."""
    if own.way == "pairs":
        bot = any_difference.harm(any_difference.HARMS[own.harm], RATE)
        verdicts = dialogue.judge(own.names[0], bot, own.draw, size=PAIRS)
        return own, any(verdict in FINDINGS for verdict in verdicts.values()), 2 * PAIRS
    rows = messages.rows(lambda asked: _said(own, asked), own.names, 199, own.draw)
    hits = [row for row in rows if row["contrast"] in messages.GATED and row["verdict"] in FINDINGS]
    return own, bool(hits), messages.asked(own.names, 199)


def _said(own: Try, asked: Asked) -> Said:
    harmed = own.group in asked.groups
    if own.harm in DECISIONS:
        return DECISIONS[own.harm] if harmed else Said(0.0)
    if asked.own.random() >= RATE:
        return Said(0.0)
    sentence = any_difference.HARMS[own.harm][0 if harmed else 1]
    return Said(0.0, sentences=(any_difference.filled(sentence, asked.own),))


def tries(draws: int) -> Iterator[Try]:
    """All of them. Of decisions pairs ask nothing."""
    for way, names, group in _WAYS:
        harms = [*any_difference.HARMS, *(DECISIONS if way == "messages" else ())]
        yield from (Try(way, names, group, harm, draw) for harm in harms for draw in range(draws))


def main() -> None:
    """Prints a row a way: how many of the draws of harms are found, and per 1,000 questions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=4)
    draws = parser.parse_args().draws
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(found, tries(draws), chunksize=1))
    print("| asked | whose harm | harms | found | questions | found per 1,000 questions |\n" + "| --- " * 6 + "|")
    for way, names, group in _WAYS:
        for kind, inside in (("in words", any_difference.HARMS), ("in decisions", DECISIONS)):
            own = [row for row in done if row[0][:3] == (way, names, group) and row[0].harm in inside]
            if own:
                share, questions = float(np.mean([hit for _, hit, _ in own])), own[0][2]
                told = f"{share:.0%} of {len(own)} | {questions:,} | {1000 * share / questions:.2f}"
                print(f"| {way}, {' × '.join(names)} | {group} | {kind} | {told} |")
            else:
                print(f"| {way}, {' × '.join(names)} | {group} | {kind} | not asked | | 0 |")


if __name__ == "__main__":
    main()
