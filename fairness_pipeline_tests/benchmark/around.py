"""Memory, and the time that is spent around the work."""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from fairness_pipeline.corpora.dialogue.grammar import Grammar
from fairness_pipeline.lexicons.contexts import find_contexts, make_pairs
from fairness_pipeline.lexicons.swapping import Swapper
from fairness_pipeline.measures.dialogue.dialogue_significance import compared
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.models.dialogue.responding import RESPONSES, respond
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.workspace.lake import Card, Lake
from fairness_pipeline_tests.benchmark.shared import PAIRS, ROOT, in_a_process, rate, score_all


def memory(count: int, words: int) -> None:
    """Contexts, pairs, responses of so many words, measures and significance of `count` pairs; prints seconds and peak
    memory."""
    started = time.perf_counter()
    grammar = Grammar.load("grammars/twitter_sample.yaml")
    dimension = load_dimension("gender")
    texts = [d.context for d in grammar.generate(40_000, 1) if d.scene.dimension == "gender"]
    table = pa.table(
        {
            "dialogue_id": [f"d{i}" for i in range(count)],
            "context": [f"{texts[i % len(texts)]} {i}" for i in range(count)],
            "split": pa.repeat("audit", count),
        }
    )
    made = make_pairs(find_contexts(table, Swapper(dimension)).table, dimension, maximum=count, seed=1)

    def echo(asked: pa.Table) -> pa.Table:
        return pa.table({"response": [_answer(text, texts, words) for text in asked["text"].to_pylist()]})

    with tempfile.TemporaryDirectory() as folder:
        answers = respond(made.table, echo, Path(folder)).table
    scores, settings = score_all(answers, dimension), SignificanceSettings(permutations=200)
    compared(answers, scores, settings=settings, seed=1, published={}, masked=dimension)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    seconds = time.perf_counter() - started
    print(json.dumps({"pairs": made.table.num_rows, "words": words, "seconds": seconds, "peak_gib": peak}))


def _answer(context: str, sentences: list[str], words: int) -> str:
    """`ok` and a number, or else sentences drawn by the context."""
    number = crc32(context.encode())
    said = [f"ok {number % 5003}"] if words <= _SHORT else []
    while sum(sentence.count(" ") + 1 for sentence in said) < words:
        number = (number * 6364136223846793005 + 1442695040888963407) % 2**64
        said.append(sentences[(number >> 33) % len(sentences)])
    return " ".join(" ".join(said).split()[:words])


_SHORT, _LONG = 2, 400
"""Words of an answer."""
_SIZES = ((100_000, _SHORT), (300_000, _SHORT), (1_000_000, _SHORT), (3_000, _LONG), (30_000, _LONG), (100_000, _LONG))


def peaks() -> list[dict[str, float]]:
    """`memory` at several sizes, each in a process of its own."""
    return [in_a_process("--memory", *size) for size in _SIZES]


def content_hash() -> dict[str, float]:
    """Writing the responses to 300,000 pairs as the lake does, and as Parquet alone; the difference is their hash."""
    table = pa.table(
        {
            "pair_id": np.repeat(np.arange(PAIRS), 2),
            "side": ["a", "b"] * PAIRS,
            "context": [f"what is number {i} of all these" for i in range(2 * PAIRS)],
            "response": [f"this is {i % 54_000} for you" for i in range(2 * PAIRS)],
            "kind": pa.repeat("answer", 2 * PAIRS),
        },
        schema=RESPONSES,
    )
    with tempfile.TemporaryDirectory() as folder:
        lake, key = Lake(Path(folder)), {"dimension": "gender", "model": "m"}

        def ours() -> None:
            with lake.writing("responses", key, table, RESPONSES, Card("0" * 64, {})):
                pass

        path = Path(folder) / "plain.parquet"
        hashed, plainly = (1 / rate(1, work, 5) for work in (
            ours, lambda: pq.write_table(table, path, compression="zstd")
        ))  # fmt: skip
    return {"hashed": hashed, "plainly": plainly}


def startup() -> dict[str, float]:
    """Processor seconds of commands on the workspace of a small profile in which nothing is left to do."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FAIRNESS_DATA": str(_small_data(Path(folder))), "FAIRNESS_HOME": folder}
        own = ["--profile", "small"]
        _command(environment, "run", *own)
        for name, arguments in {
            "--help": ["--help"], "results": ["results", *own], "sql": ["sql", "select 1", *own], "run": ["run", *own],
            "run --dry-run": ["run", "--dry-run", *own],
        }.items():  # fmt: skip
            used = []
            for _ in range(3):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                _command(environment, *arguments)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            found[name] = min(used)
    return found


def _command(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "fairness_pipeline.cli", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT).stdout


def _small_data(folder: Path) -> Path:
    """A data folder with a profile `small`: one model of study 1 of the sample, 200 pairs."""
    data = folder / "data"
    (data / "profiles").mkdir(parents=True)
    small = yaml.safe_load((ROOT / "data" / "profiles" / "sample.yaml").read_text())
    small["models"]["seq2seq"]["training"]["epochs"] = 1
    small["models"] = {"seq2seq": small["models"]["seq2seq"]}
    small = {name: small[name] for name in ("description", "seed", "dimensions", "models", "dialogue_fairness")}
    small["dialogue_fairness"] |= {"pairs": {"maximum": 200}, "on_request": []}
    (data / "profiles" / "small.yaml").write_text(yaml.safe_dump(small))
    return data


def orchestration() -> dict[str, float]:
    """Loading the definitions; a run of a small profile, less what its assets took; the same run again."""
    code = "import sys, time; t = time.perf_counter(); import fairness_pipeline.definitions; "
    code += "print(time.perf_counter() - t, 'torch' in sys.modules)"
    seconds, torch_loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split()
    assert torch_loaded == "False"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FAIRNESS_DATA": str(_small_data(Path(folder))), "FAIRNESS_HOME": folder}

        def run() -> tuple[float, str]:
            started = time.perf_counter()
            said = _command(environment, "run", "--profile", "small", "--workers", "1")
            return time.perf_counter() - started, said

        first, output = run()
        steps = [float(found) for found in re.findall(r"^\[.*?\] .* (\d+\.\d) s$", output, re.MULTILINE)]
        again, _ = run()
        records = sum(path.stat().st_size for path in (Path(folder) / "small" / "dagster").rglob("*") if path.is_file())
    return {
        "load": float(seconds),
        "partitions": len(steps),
        "per_partition": (first - sum(steps)) / len(steps),
        "again": again,
        "bytes": records / len(steps),
        **content_hash(),
    }
