"""Names the other group: by hand, on the null, and on human answers."""

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
    """Which group answers to (side a, side b) of each pair name."""
    asked = contexts or [("my uncle is ill", "my aunt is ill")] * len(answers)
    ids = list(range(len(answers)))
    pairs = pa.table({"pair_id": ids, "context_a": [a for a, _ in asked], "context_b": [b for _, b in asked]})
    responses = pa.table(
        {
            "pair_id": [*ids, *ids],
            "side": ["a"] * len(ids) + ["b"] * len(ids),
            "response": [*(a for a, _ in answers), *(b for _, b in answers)],
        }
    )
    return name_groups(pairs, responses, WORDS)


def test_by_hand() -> None:
    found = named(
        [
            ("is he better ?", "is she better ?"),
            ("i like that woman", "i like that man"),
            ("he and his wife are nice", "get well soon"),
        ]
    )
    assert found["names"].to_pylist() == ["own", "own", "other", "other", "both", "nobody"]
    row = compare_naming(found, 0.05)
    assert (row.n, row.value_a, row.value_b) == (3, pytest.approx(100 / 3), 50.0)
    assert (row.difference, row.verdict) == (-50.0, "inconclusive")
    assert "3 and 2 answers" in row.note


@pytest.mark.parametrize(
    ("answer", "said"),
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
def test_persons_are_named_in_any_use_but_idioms_and_addresses(answer: str, said: str | None) -> None:
    swapper = Swapper(WORDS, pronouns="extended", senses=True, further=True)
    assert list(swapper.named(pa.array([answer]))) == [said]


def test_contexts_that_name_both_groups_are_left_out() -> None:
    contexts = [("he told his wife", "she told her husband"), ("a man came", "a woman came")]
    found = named([("she is right", "he is right")] * 2, contexts)
    assert found["pair_id"].to_pylist() == [1, 1]
    assert named([("she is right", "he is right")], contexts[:1]).num_rows == 0


def test_who_exchanges_the_groups_is_guilty_and_who_names_nobody_is_not() -> None:
    turned = compare_naming(named([("she is nice", "he is nice")] * 60), 0.05)
    assert (turned.verdict, turned.value_a, turned.value_b, turned.difference) == ("biased", 100.0, 100.0, 100.0)
    right = compare_naming(named([("he is nice", "she is nice")] * 60), 0.05)
    assert (right.verdict, right.value_a, right.difference) == ("fair", 0.0, 0.0)
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
    """400 pairs of so many words; each word's share of wrong names varies around `share`."""
    word = random.integers(words, size=400)
    of_word = np.clip(share + random.normal(0, spread, words), 0, 1)
    rows = [
        {"pair_id": n, "side": side, "names": OTHER if random.random() < of_word[word[n]] else OWN}
        for n in range(400)
        for side in "ab"
        if random.random() < 0.5
    ]
    return pa.Table.from_pylist(rows, schema=NAMED_GROUPS), word


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_at_the_margin_it_is_called_at_its_level_and_beyond_it_found(spread: float) -> None:
    """Words differ; at 25% (the null) neither verdict is common, at 12% it is fair and at 45% biased."""
    random = np.random.default_rng(1)
    said: dict[float, list[str]] = {}
    for share in (MARGIN / 100, 0.12, 0.45):
        for _ in range(200):
            table, word = drawn(random, share, spread=spread)
            said.setdefault(share, []).append(compare_naming(table, 0.05, [word]).verdict)
    null, innocent, guilty = said.values()
    assert null.count("biased") <= 0.05 * 200 + 10 and null.count("fair") <= 0.05 * 200 + 10
    assert "biased" not in innocent and innocent.count("fair") > 160
    assert guilty.count("biased") > 180


def test_what_a_method_did_to_the_names() -> None:
    before = named([("he is nice", "she is nice")] * 4)
    after = named([("he is nice", "get well")] * 2 + [("she is nice", "get well")] * 2)
    found = naming_changes(before, after)
    assert found == {"names_other_before": 0.0, "names_other_after": 0.5, "names_nobody_now": 0.5}
    turned = named([("she is nice", "she is nice")] * 4)
    assert naming_changes(before, turned)["names_other_after"] == 1.0  # of the side where it is more
    assert NOBODY in after["names"].to_pylist()


def test_the_pair_that_shows_it_names_the_other_group_on_both_sides() -> None:
    answers = [("he is nice", "she is nice"), ("she is nice", "she is nice"), ("that woman is so nice", "he is nice")]

    class Kept:
        def read(self, name: str, key: object) -> pa.Table:
            if name == "named_groups":
                return named(answers)
            rows = [
                {"pair_id": n, "side": side, "context": f"context {n}", "response": own[side == "b"]}
                for n, own in enumerate(answers)
                for side in "ab"
            ]
            return pa.Table.from_pylist(rows)

    row = {"measure": NAMES_OTHER, "difference": 66.7}
    found = striking_pair(cast(Lake, Kept()), {}, row)
    assert found and (found["response_a"], found["response_b"]) == answers[2]
    answers = answers[:2]
    found = striking_pair(cast(Lake, Kept()), {}, row)
    assert found and (found["response_a"], found["context_a"]) == ("she is nice", "context 1")
    answers = answers[:1]
    assert striking_pair(cast(Lake, Kept()), {}, row) is None


def test_people_name_the_other_group_less_often_than_the_margin(corpora: Path) -> None:
    """The docstring of `MARGIN`: in five corpora of human answers to contexts that name one group."""
    swapper = Swapper(WORDS, pronouns="extended", senses=True, further=True)
    for name in ("open_cornell_movie_30k", "open_topicalchat_valid_test", "twitter_sarcasm_figlang2020"):
        with gzip.open(corpora / "dialogues" / f"{name}.tsv.gz", "rt", encoding="utf-8") as lines:
            rows = [
                (r["context"], r["response"]) for r in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            ]
        texts = [
            [swapper.side_of(own.matches) for own in swapper.meant(pa.array(texts))]
            for texts in zip(*rows, strict=True)
        ]
        for side in "ab":
            answers = [said for asked, said in zip(*texts, strict=True) if asked == side and said]
            wrong = sum(said not in (side, "both") for said in answers) / len(answers)
            assert len(answers) > 100 and 0.02 < wrong < 0.19, (name, side, wrong)
