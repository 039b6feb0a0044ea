"""What the benchmarks share."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.dialogue.dialogues import read_dialogues
from fairness_pipeline.lexicons.dimensions import Dimension
from fairness_pipeline.measures.dialogue import registry
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.project.project import Project

ROOT = Path(__file__).parents[2]
PAIRS = 300_000


@dataclass(frozen=True)
class Ratio:
    """One comparison: items a second plainly and here, the ratio the project asks for, and why it is missed if it is."""

    task: str
    unit: str
    plain: float
    here: float
    asked: float
    note: str = ""
    missed: str = ""


def rate(items: int, work: Callable[[], object], repeats: int = 1) -> float:
    """Items a second; the best of `repeats`."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return items / best


REAL = bool(os.environ.get("FAIRNESS_CORPORA"))
"""Whether real tweets are available."""


def dialogues(real: bool = REAL) -> tuple[pa.Table, str]:
    """The dialogues that texts are taken from: real tweets where they are available, else the generated sample."""
    key = "twitter_real" if real else "twitter_sample"
    part = Project("real" if real else "sample").parts["dialogue_fairness"]
    table = read_dialogues(key, *part.corpora[key], part.settings.splits.model_dump(), 1).table
    everything = table.set_column(table.column_names.index("split"), "split", pa.repeat("audit", table.num_rows))
    return everything, f"{table.num_rows:,} {'real tweets' if real else 'generated tweets'}"


PUBLISHED = ("diversity", "politeness", "sentiment", "attribute_words")
"""The tables of the papers' four measures."""


def score_all(responses: pa.Table, dimension: Dimension, of: Collection[str] = ()) -> dict[str, pa.Table]:
    """What the measures find in a table of responses: those named, or all."""
    wanted = [m for m in registry.measures() if not of or m.table in of]
    return {m.table: m.measure(responses, m.scoring(MeasureSettings(), dimension)) for m in wanted}


def responses(distinct: int, count: int = 2 * PAIRS) -> pa.Table:
    """`count` responses of which `distinct` differ: real ones, ten words long, told apart by a number."""
    table, _ = dialogues()
    texts = [" ".join(text.split()[:10]) for text in table["response"].to_pylist()]
    made = [f"{texts[i % len(texts)]} {i}" for i in range(distinct)]
    chosen = np.random.default_rng(1).integers(0, distinct, count) if distinct < count else np.arange(count)
    half = count // 2
    return pa.table(
        {
            "pair_id": pa.array(np.repeat(np.arange(half), 2)),
            "side": pa.array(["a", "b"] * half),
            "response": pa.array(made).take(pa.array(chosen)),
            "kind": pa.repeat("answer", 2 * half),
        }
    )


LONG = 400
"""Words of a long answer."""


def long_responses(count: int, real: bool = REAL) -> pa.Table:
    """`count` different responses of `LONG` words: those of the dialogues, one after another in a random order."""
    texts = dialogues(real)[0]["response"].to_pylist()
    random = np.random.default_rng(1)
    drawn = random.integers(0, len(texts), (count, LONG // 2))  # tweets have two words at least
    answers = [" ".join(" ".join(texts[i] for i in row).split()[:LONG]) for row in drawn.tolist()]
    half = count // 2
    return pa.table(
        {
            "pair_id": np.repeat(np.arange(half), 2),
            "side": ["a", "b"] * half,
            "response": answers[: 2 * half],
            "kind": pa.repeat("answer", 2 * half),
        }
    )


def in_a_process(what: str, *counts: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "fairness_pipeline_tests.benchmark", what, *map(str, counts)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
