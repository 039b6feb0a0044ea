"""Any number of cores gives the same results in the same order; errors are raised; nothing is left running."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairness_pipeline.foundation import side_by_side
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.side_by_side import allow_cores, in_processes, in_threads
from fairness_pipeline.lexicons import contexts, text
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.lexicons.text import encode_texts
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.statistics.permutation import permutation_p
from fairness_pipeline.statistics.resampling import NGrams
from fairness_pipeline.workspace import distinct


@pytest.fixture
def two_cores() -> Iterator[None]:
    allow_cores(lambda: 2)
    yield
    allow_cores(lambda: 1)


def squared(number: int) -> tuple[int, int]:
    time.sleep(0.05 * (number % 3))
    return number**2, os.getpid()


def refused(number: int) -> int:
    if number == 2:
        raise FairnessError("line 2: expected something else")
    return number


def killed(number: int) -> int:
    os._exit(3)


def test_results_keep_their_order_and_other_processes_do_the_work(two_cores: None) -> None:
    results = list(in_processes(squared, range(12)))
    assert [value for value, _ in results] == [n**2 for n in range(12)]
    assert len({process for _, process in results} - {os.getpid()}) == 2
    assert list(in_threads(lambda n: n**2, iter(range(12)))) == [n**2 for n in range(12)]


def test_a_core_that_becomes_free_is_used(two_cores: None) -> None:
    running: list[int] = []
    counts, cores = [], 1
    allow_cores(lambda: cores)

    def work(number: int) -> int:
        nonlocal cores
        running.append(number)
        time.sleep(0.02)
        counts.append(len(running))
        running.remove(number)
        cores = 3 if number >= 5 else 1
        return number

    assert list(in_threads(work, iter(range(20)))) == list(range(20))
    assert set(counts[:6]) == {1} and max(counts) == 3


def test_no_thread_waits_for_a_caller_that_has_gone(two_cores: None) -> None:
    before = threading.active_count()
    results = in_threads(lambda number: number, iter(range(100)))
    assert next(results) == 0
    results.close()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before  # threads of another test may end meanwhile


def test_few_parts_are_begun_ahead_of_a_slow_one(two_cores: None) -> None:
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 0:
            time.sleep(0.3)
        return number

    results = in_threads(work, iter(range(1000)))
    assert next(results) == 0
    assert len(begun) < 20
    assert list(results) == list(range(1, 1000))


def test_one_core_or_few_parts_use_no_other_process(two_cores: None) -> None:
    assert {process for _, process in in_processes(squared, range(4), least=5)} == {os.getpid()}
    allow_cores(lambda: 1)
    assert {process for _, process in in_processes(squared, range(4))} == {os.getpid()}


def test_errors_are_raised_in_the_caller(two_cores: None) -> None:
    with pytest.raises(FairnessError, match="line 2"):
        list(in_processes(refused, range(8)))
    with pytest.raises(FairnessError, match="ended unexpectedly.*--workers"):
        list(in_processes(killed, range(8)))
    with pytest.raises(FairnessError, match="line 2"):
        list(in_threads(refused, iter(range(8))))


WORDS = ["she left", "my dad is a cop", "it rains", "the queen and her son", "you are an idiot", "LOVE it, so much!!"]


def made_tables(folder: Path) -> list[object]:
    """Runs the steps of a partition: contexts, pairs, measures, the words of texts, the permutation."""
    rows = 400
    texts = [f"{WORDS[i % 6]} {i % 97}" for i in range(rows)]
    table = pa.table({"dialogue_id": [f"d{i}" for i in range(rows)], "context": texts, "split": ["audit"] * rows})
    gender = load_dimension("gender")
    result = find_contexts(table, Swapper(gender, senses=True, pronouns="extended"))
    pairs = make_pairs(result.table, gender, maximum=100, seed=1, senses="rules", pronouns="extended")
    responses = pa.table(
        {
            "pair_id": np.repeat(np.arange(rows // 2), 2), "side": ["a", "b"] * (rows // 2), "response": texts,
            "kind": ["answer"] * rows,
        }
    )  # fmt: skip
    scores = {m.table: m.measure(responses, m.scoring(MeasureSettings(), gender), folder / m.table) for m in measures()}
    words = encode_texts(pa.array(texts))
    a, b = np.arange(0, rows, 2), np.arange(1, rows, 2)
    return [
        result.table, result.figures, result.ruled, pairs.table, pairs.figures, *scores.values(), words.words,
        words.codes.tolist(), words.lengths.tolist(), permutation_p(NGrams(words), a, b, 200, 1),
    ]  # fmt: skip


@pytest.mark.verify
def test_a_partition_is_the_same_on_two_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (contexts, "_BATCH", 20), (contexts, "_LINES", 70), (contexts, "_LEAST", 2), (text, "_PART", 30),
        (distinct, "CHUNK", 8), (distinct, "_TOGETHER", 3), (distinct, "_LEAST", 2),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    pools = []

    class Counted(ProcessPoolExecutor):
        def __init__(self, *arguments: Any) -> None:
            pools.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(side_by_side, "ProcessPoolExecutor", Counted)
    on_one_core = made_tables(tmp_path / "one")
    assert not pools
    allow_cores(lambda: 2)
    try:
        on_two_cores = made_tables(tmp_path / "two")
    finally:
        allow_cores(lambda: 1)
    assert len(pools) >= 6  # contexts, pairs, and four measures whose scorer may be copied
    for first, second in zip(on_one_core, on_two_cores, strict=True):
        assert first.equals(second) if isinstance(first, pa.Table) else first == second


ORPHANS = """
import os, sys, time
from fairness_pipeline.foundation.side_by_side import allow_cores, in_processes

def told(path):
    open(path, "w").write(str(os.getpid()))
    time.sleep(60)

if __name__ == "__main__":
    allow_cores(lambda: 2)
    list(in_processes(told, sys.argv[1:]))
"""


def test_children_of_a_killed_process_end(tmp_path: Path) -> None:
    script, paths = tmp_path / "script.py", [tmp_path / "first", tmp_path / "second"]
    script.write_text(ORPHANS)
    parent = subprocess.Popen([sys.executable, str(script), *map(str, paths)])
    while not all(path.exists() and path.read_text() for path in paths):
        assert parent.poll() is None
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    children = [int(path.read_text()) for path in paths]
    while any(map(_is_alive, children)):
        time.sleep(0.05)


def _is_alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
