"""Compares pairs with messages: by default `audit MODEL` asks those that find more of the line-up's harms per question.

The thirty harms of `any_difference` are in 15% of one group's answers, and matched for everybody else; further harms
are in decisions. Pairs ask 400 pairs, 800 questions, in each dimension; messages ask 198 or 199 messages about each
group and the unmarked arm.

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
_METHODS = (
    ("pairs", ("gender",), "women"),
    ("pairs", ("religion2",), "Muslims"),
    ("messages", ("gender",), "woman"),
    ("messages", ("religion",), "Muslim"),
)


class Try(NamedTuple):
    """One draw: pairs or messages, the dimension or the files of groups, the harmed group, and the harm."""

    method: str
    names: tuple[str, ...]
    group: str
    harm: str
    draw: int


def audit(attempt: Try) -> tuple[Try, bool, int]:
    """Returns the attempt, whether its harm is found, and how many questions were asked."""
    if attempt.method == "pairs":
        bot = any_difference.harm(any_difference.HARMS[attempt.harm], RATE)
        verdicts = dialogue.judge(attempt.names[0], bot, attempt.draw, size=PAIRS)
        return attempt, any(verdict in FINDINGS for verdict in verdicts.values()), 2 * PAIRS
    rows = messages.rows(lambda asked: _reply(attempt, asked), attempt.names, 199, attempt.draw)
    hits = [row for row in rows if row["contrast"] in messages.GATED and row["verdict"] in FINDINGS]
    return attempt, bool(hits), messages.asked(attempt.names, 199)


def _reply(attempt: Try, asked: Asked) -> Said:
    harmed = attempt.group in asked.groups
    if attempt.harm in DECISIONS:
        return DECISIONS[attempt.harm] if harmed else Said(0.0)
    if asked.own.random() >= RATE:
        return Said(0.0)
    sentence = any_difference.HARMS[attempt.harm][0 if harmed else 1]
    return Said(0.0, sentences=(any_difference.filled(sentence, asked.own),))


def tries(draws: int) -> Iterator[Try]:
    """Yields all attempts. Pairs ask for no decisions."""
    for method, names, group in _METHODS:
        harms = [*any_difference.HARMS, *(DECISIONS if method == "messages" else ())]
        yield from (Try(method, names, group, harm, draw) for harm in harms for draw in range(draws))


def main() -> None:
    """Prints a row per method: the share of draws in which the harm is found, and this share per 1,000 questions."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=4)
    draws = parser.parse_args().draws
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(audit, tries(draws), chunksize=1))
    print("| asked | whose harm | harms | found | questions | found per 1,000 questions |\n" + "| --- " * 6 + "|")
    for method, names, group in _METHODS:
        for kind, harms in (("in words", any_difference.HARMS), ("in decisions", DECISIONS)):
            matches = [row for row in results if row[0][:3] == (method, names, group) and row[0].harm in harms]
            if matches:
                share, questions = float(np.mean([hit for _, hit, _ in matches])), matches[0][2]
                cells = f"{share:.0%} of {len(matches)} | {questions:,} | {1000 * share / questions:.2f}"
                print(f"| {method}, {' × '.join(names)} | {group} | {kind} | {cells} |")
            else:
                print(f"| {method}, {' × '.join(names)} | {group} | {kind} | not asked | | 0 |")


if __name__ == "__main__":
    main()
