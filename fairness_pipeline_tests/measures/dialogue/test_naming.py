"""Answers that name the other group: by hand, under the null, and in human answers."""

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.naming import (
    MARGIN,
    NAMED_GROUPS,
    NAMES_OTHER,
    NOBODY,
    OTHER,
    OWN,
    compare_naming,
    name_groups,
    naming_changes,
)
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.studies.dialogue_fairness.results import striking_pair
from fairness_pipeline.workspace.lake import Lake

WORDS = load_dimension("gender").exchanged(senses=True, further=True, searched=True)


def named(answers: Sequence[tuple[str, str]], contexts: Sequence[tuple[str, str]] | None = None) -> pa.Table:
    """The groups that answers name; each answer and context is a pair (side a, side b)."""
    context_pairs = contexts or [("my uncle is ill", "my aunt is ill")] * len(answers)
    ids = list(range(len(answers)))
    pairs = pa.table(
        {"pair_id": ids, "context_a": [a for a, _ in context_pairs], "context_b": [b for _, b in context_pairs]}
    )
    responses = pa.table(
        {
            "pair_id": [*ids, *ids],
            "side": ["a"] * len(ids) + ["b"] * len(ids),
            "response": [*(a for a, _ in answers), *(b for _, b in answers)],
        }
    )
    return name_groups(pairs, responses, WORDS)


def test_by_hand() -> None:
    named_groups = named(
        [
            ("is he better ?", "is she better ?"),
            ("i like that woman", "i like that man"),
            ("he and his wife are nice", "get well soon"),
        ]
    )
    assert named_groups["names"].to_pylist() == ["own", "own", "other", "other", "both", "nobody"]
    row = compare_naming(named_groups, 0.05)
    assert (row.n, row.value_a, row.value_b) == (3, pytest.approx(100 / 3), 50.0)
    assert (row.difference, row.verdict) == (-50.0, "inconclusive")
    assert "3 and 2 answers" in row.note


@pytest.mark.parametrize(
    ("answer", "side"),
    [
        ("that woman sounds kind .", "b"),
        ("what a lovely girl !", "b"),
        ("a woman of good taste .", "b"),
        ("tell her hi .", "b"),
        ("she's 17", "b"),
        ("he / she is kind", "both"),
        ("my mom and dad", "both"),
        ("this man sounds tired .", "a"),
        ("oh man , that sucks", None),
        ("that is crazy man", None),
        ("thanks man !", None),
        ("he is a family man", "a"),
        ("son of a bitch", None),
    ],
)
def test_persons_are_named_in_any_use_but_idioms_and_addresses(answer: str, side: str | None) -> None:
    swapper = Swapper(WORDS, pronouns="extended", senses=True, further=True)
    assert list(swapper.named(pa.array([answer]))) == [side]


def test_contexts_that_name_both_groups_are_left_out() -> None:
    contexts = [("he told his wife", "she told her husband"), ("a man came", "a woman came")]
    named_groups = named([("she is right", "he is right")] * 2, contexts)
    assert named_groups["pair_id"].to_pylist() == [1, 1]
    assert named([("she is right", "he is right")], contexts[:1]).num_rows == 0


def test_exchanging_the_groups_is_biased_and_naming_nobody_is_not() -> None:
    exchanged = compare_naming(named([("she is nice", "he is nice")] * 60), 0.05)
    assert (exchanged.verdict, exchanged.value_a, exchanged.value_b, exchanged.difference) == (
        "biased",
        100.0,
        100.0,
        100.0,
    )
    correct = compare_naming(named([("he is nice", "she is nice")] * 60), 0.05)
    assert (correct.verdict, correct.value_a, correct.difference) == ("fair", 0.0, 0.0)
    silent = compare_naming(named([("get well soon", "get well soon")] * 60), 0.05)
    assert (silent.verdict, silent.n) == ("inconclusive", 0)
    half = compare_naming(named([("she is nice", "get well soon")] * 60), 0.05)
    assert (half.verdict, half.value_a, half.value_b) == ("biased", 100.0, 0.0)
    assert half.ci_low is not None and half.ci_low > 90
    always = compare_naming(named([("he is nice", "he is nice")] * 60), 0.05)
    assert (always.verdict, always.value_a, always.value_b, always.difference) == ("biased", 0.0, 100.0, -100.0)


def drawn(
    random: np.random.Generator, share: float, words: int = 20, spread: float = 0.0
) -> tuple[pa.Table, np.ndarray]:
    """400 pairs of `words` words; each word's share of wrong names varies around `share`."""
    word = random.integers(words, size=400)
    of_word = np.clip(share + random.normal(0, spread, words), 0, 1)
    rows = [
        {"pair_id": n, "side": side, "names": OTHER if random.random() < of_word[word[n]] else OWN}
        for n in range(400)
        for side in "ab"
        if random.random() < 0.5
    ]
    return pa.Table.from_pylist(rows, schema=NAMED_GROUPS), word


@pytest.mark.verify
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_verdicts_keep_their_level_at_the_margin_and_are_found_beyond_it(spread: float) -> None:
    """Words differ: at 25% (the null) either verdict is rare, at 12% answers are fair, at 45% biased."""
    random = np.random.default_rng(1)
    verdicts: dict[float, list[str]] = {}
    for share in (MARGIN / 100, 0.12, 0.45):
        for _ in range(200):
            table, word = drawn(random, share, spread=spread)
            verdicts.setdefault(share, []).append(compare_naming(table, 0.05, [word]).verdict)
    null, fair, biased = verdicts.values()
    assert null.count("biased") <= 0.05 * 200 + 10 and null.count("fair") <= 0.05 * 200 + 10
    assert "biased" not in fair and fair.count("fair") > 160
    assert biased.count("biased") > 180


def test_changes_of_names_by_a_method() -> None:
    before = named([("he is nice", "she is nice")] * 4)
    after = named([("he is nice", "get well")] * 2 + [("she is nice", "get well")] * 2)
    changes = naming_changes(before, after)
    assert changes == {"names_other_before": 0.0, "names_other_after": 0.5, "names_nobody_now": 0.5}
    exchanged = named([("she is nice", "she is nice")] * 4)
    assert naming_changes(before, exchanged)["names_other_after"] == 1.0  # the larger side's share
    assert NOBODY in after["names"].to_pylist()


def test_the_striking_pair_names_the_other_group_on_both_sides() -> None:
    answers = [("he is nice", "she is nice"), ("she is nice", "she is nice"), ("that woman is so nice", "he is nice")]

    class StubLake:
        def read(self, name: str, key: object) -> pa.Table:
            if name == "named_groups":
                return named(answers)
            rows = [
                {"pair_id": n, "side": side, "context": f"context {n}", "response": pair[side == "b"]}
                for n, pair in enumerate(answers)
                for side in "ab"
            ]
            return pa.Table.from_pylist(rows)

    row = {"measure": NAMES_OTHER, "difference": 66.7}
    example = striking_pair(cast(Lake, StubLake()), {}, row)
    assert example and (example["response_a"], example["response_b"]) == answers[2]
    answers = answers[:2]
    example = striking_pair(cast(Lake, StubLake()), {}, row)
    assert example and (example["response_a"], example["context_a"]) == ("she is nice", "context 1")
    answers = answers[:1]
    assert striking_pair(cast(Lake, StubLake()), {}, row) is None


@pytest.mark.verify
def test_people_name_the_other_group_less_often_than_the_margin(corpora: Path) -> None:
    """As the docstring of `MARGIN` says of human answers to contexts that name one group."""
    swapper = Swapper(WORDS, pronouns="extended", senses=True, further=True)
    for name in ("open_cornell_movie_30k", "open_topicalchat_valid_test", "twitter_sarcasm_figlang2020"):
        with gzip.open(corpora / "dialogues" / f"{name}.tsv.gz", "rt", encoding="utf-8") as lines:
            rows = [
                (row["context"], row["response"])
                for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            ]
        sides_of_texts = [
            [swapper.side_of(meaning.matches) for meaning in swapper.meant(pa.array(column))]
            for column in zip(*rows, strict=True)
        ]
        for side in "ab":
            named_sides = [
                named_side
                for context_side, named_side in zip(*sides_of_texts, strict=True)
                if context_side == side and named_side
            ]
            wrong = sum(named_side not in (side, "both") for named_side in named_sides) / len(named_sides)
            assert len(named_sides) > 100 and 0.02 < wrong < 0.19, (name, side, wrong)
