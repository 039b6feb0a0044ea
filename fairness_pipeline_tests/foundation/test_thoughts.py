"""A reasoning model's thoughts before its answer are removed as by regular expressions, but in linear time."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairness_pipeline.foundation.thoughts import without_thoughts

PIECES = [f"<{slash}{name}>" for name in ("think", "thinking", "reasoning") for slash in ("", "/")]
EXPRESSIONS = (
    re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL),  # thoughts
    re.compile(r"\A(?:(?!<think>).)*?</think>", re.DOTALL),  # thoughts that the prompt has opened
    re.compile(r"<(think|thinking|reasoning)>.*\Z", re.DOTALL),  # thoughts that were cut short
)
"""The plain implementation, which takes quadratic time."""
REPETITIONS = 400_000


@settings(max_examples=500)
@given(st.lists(st.sampled_from([*PIECES, "<", "think>", "</", "a", " ", "\n"]), max_size=12).map("".join))
def test_thoughts_are_removed_as_by_regular_expressions(text: str) -> None:
    expected = text
    for pattern in EXPRESSIONS:
        expected = pattern.sub("", expected)
    assert without_thoughts(text) == (expected.strip() if "<" in text else text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("".join(PIECES[::2]), ""),
        ("</reasoning><think>", "</reasoning>"),
        ("<think></thinking>", ""),
        ("<thinking><think>a</think>", ""),
        ("<think>a</think>b", "b" * REPETITIONS),
        ("</think>", "</think>" * (REPETITIONS - 1)),
        ("<", "<" * REPETITIONS),
    ],
)  # fmt: skip
def test_a_server_that_writes_megabytes_of_tags_does_not_stop_an_audit(text: str, answer: str) -> None:
    """Searching again from each tag would take hours."""
    assert without_thoughts(text * REPETITIONS) == answer
