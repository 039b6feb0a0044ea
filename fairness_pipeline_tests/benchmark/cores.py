"""Whole runs over answers that were imported: a big partition on two cores beside one, and long answers."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairness_pipeline.project.project import load_dimension
from fairness_pipeline_tests.benchmark import plain
from fairness_pipeline_tests.benchmark.shared import LONG, PAIRS, REAL, Ratio, long_responses, rate, responses

_LONG_PAIRS = 13_320
"""All pairs of the shipped messages in gender."""
_CORPUS = """
platform: other
format: jsonl
files: [{path: dialogues.jsonl}]
licence: generated
citation: none
"""
_PROFILE = """
description: One dimension, one model
seed: 1
dimensions: [gender]
models: {}
dialogue_fairness:
  corpora: [generated]
  splits: {train: 0, valid: 0, test: 0, audit: 1}
  pairs: {maximum: 1000000}
"""


def cores() -> Iterator[Ratio]:
    """Measures, comparison, controls and report of one dimension and model with one worker, and with two; the same
    bytes."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        pairs = _prepared(home, responses(2 * PAIRS)["response"].to_pylist())
        one, two = (rate(1, lambda count=count: _run(home, count)) for count in (1, 2))
        assert _tables(home / "1") == _tables(home / "2")
    yield Ratio(
        f"one dimension and model of {pairs} pairs, two workers beside one", "runs", one, two, 1.8,
        f"{1 / one:.0f} s and {1 / two:.0f} s", "the command starts on one core, and controls and report are made on one",
    )  # fmt: skip


def long_answers() -> Iterator[Ratio]:
    """The whole audit of a file of long answers, beside the papers' four measures taken plainly: of as many different
    words as tweets have, and of as few as the sample has."""
    for real in dict.fromkeys((REAL, False)):
        answers = long_responses(2 * _LONG_PAIRS, real)["response"].to_pylist()
        reference = plain.Measures(load_dimension("gender").attribute_words)
        slow = rate(200, lambda reference=reference, answers=answers: reference(answers[:200]))
        with tempfile.TemporaryDirectory() as folder:
            pairs = _prepared(Path(folder), answers)
            fast, two = (
                rate(len(answers), lambda folder=folder, count=count: _run(Path(folder), count)) for count in (1, 2)
            )
        yield Ratio(
            f"whole audit of {pairs} pairs of answers of {LONG} words, {'real tweets' if real else 'the sample'}, beside "
            "the four measures",
            "responses", slow, fast, 7.4,
            f"{len(answers) / fast:.0f} s on one core (asked: 45), {len(answers) / two:.0f} s on two, for all measures, "
            "their masked readings, verdicts, controls and report",
            "VADER, the offence classifier and the word lists cut words each in their own way, and read all answers twice, "
            "as they are and masked",
        )  # fmt: skip


def _prepared(home: Path, answers: list[str]) -> str:
    """A workspace with a pair for every two answers, and a model that gives these; returns how many pairs."""
    for folder in ("corpora", "profiles"):
        (home / folder).mkdir()
    (home / "corpora" / "generated.yaml").write_text(_CORPUS)
    (home / "profiles" / "big.yaml").write_text(_PROFILE)
    with (home / "corpora" / "dialogues.jsonl").open("w") as file:
        for i in range(len(answers) // 2):
            context = f"my brother said number {i} to them today and left"
            file.write(json.dumps({"context": context, "response": f"number {i} is fine"}) + "\n")
    asked, given = home / "pairs.jsonl", home / "answers.jsonl"
    output = _command(home, "0", "export", "pairs", "--dimension", "gender", "--output", str(asked))
    with asked.open() as lines, given.open("w") as file:
        for line, answer in zip(lines, answers, strict=False):
            file.write(json.dumps({**json.loads(line), "response": answer}) + "\n")
    _command(home, "0", "import", str(given), "--name", "given", "--corpus", "generated")
    return re.search(r"([\d,]+) pairs", output)[1]  # type: ignore[index]


def _run(home: Path, workers: int) -> None:
    shutil.copytree(home / "0", home / str(workers))
    _command(home, str(workers), "run", "--workers", str(workers))


def _command(home: Path, workspace: str, *words: str) -> str:
    command = [sys.executable, "-W", "ignore", "-m", "fairness_pipeline.cli", *words, "--profile", "big"]
    own = {"FAIRNESS_DATA": str(home), "FAIRNESS_HOME": str(home / workspace)}
    done = subprocess.run(command, env=os.environ | own, check=True, capture_output=True, text=True)
    return done.stdout


def _tables(workspace: Path) -> dict[str, bytes]:
    files = workspace.rglob("part-0.parquet")
    return {str(path.relative_to(workspace)): path.read_bytes() for path in files}
