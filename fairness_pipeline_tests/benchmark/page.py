"""The page `docs/performance.md`."""

import os
import platform
from importlib.metadata import version
from typing import Any

import torch

from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline_tests.benchmark.annotators import of_methods
from fairness_pipeline_tests.benchmark.shared import PAIRS, ROOT, Ratio

RESULTS = ROOT / "docs" / "performance.md"


def _told(ratio: Ratio) -> str:
    """The note, and why the ratio is below what was asked where it is."""
    missed = ratio.here / ratio.plain < ratio.asked and ratio.missed
    return f"{ratio.note}; missed: {ratio.missed}" if missed else ratio.note


def document(ratios: list[Ratio], found: dict[str, Any]) -> str:
    """The page.

    Args:
        ratios: All of them, in order.
        found: What each part has found, by name.
    """
    grown, around, sizes, startup, pages = (found[name] for name in ("memory", "around", "sizes", "startup", "viewer"))
    lines = [
        "# Performance",
        "",
        "`make benchmark` writes this page; `python -m fairness_pipeline_tests.benchmark vader` measures one part. Each part times",
        "plain code and the pipeline, one after the other in one process. The plain code works as the papers' released scripts do:",
        "one item at a time, with `str.split`, VADER, lemmatiser and classifier for each response",
        "(`fairness_pipeline_tests/benchmark/plain.py`). `beside` names another library. Trust the ratios, because the rates depend",
        "on the machine.",
        "",
        "| task | plain | here | ratio | asked | |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for r in ratios:
        lines.append(
            f"| {r.task} | {r.plain:,.4g} {r.unit}/s | {r.here:,.6g} {r.unit}/s | {r.here / r.plain:,.1f} "
            f"| {r.asked:.3g} | {_told(r)} |"
        )
    lines += ["", "## Memory", "", "One process makes contexts, pairs, responses, measures and significance of one partition. The peak includes the interpreter and",
              "the libraries.", "", "| pairs | peak | seconds |", "| ---: | ---: | ---: |"]  # fmt: skip
    lines += [f"| {g['pairs']:,} | {g['peak_gib']:.2f} GiB | {g['seconds']:.0f} |" for g in grown]
    per_pair = (grown[-1]["peak_gib"] - grown[0]["peak_gib"]) * 2**30 / (grown[-1]["pairs"] - grown[0]["pairs"])
    lines += [
        "",
        f"That is {per_pair:,.0f} bytes a pair on top of what the libraries take.",
        "",
        "## Truth inference",
        "",
        "Every method runs with its own settings on ten labels an item, with one thread. GroupAnno includes its intervals. The peak is",
        "over all methods.",
        "",
        *of_methods(sizes),
        "",
        "## Around the work",
        "",
        f"- The definitions load in {around['load']:.1f} s, without torch.",
        f"- A run spends {around['per_partition']:.2f} s a partition on starting, planning, recording and reporting "
        f"({around['partitions']:.0f} partitions).",
        f"- The same run with nothing changed takes {around['again']:.1f} s.",
        f"- Writing the responses to {PAIRS:,} pairs takes {around['hashed']:.2f} s with the hash of their content. It takes "
        f"{around['plainly']:.2f} s without the hash and",
        "  without the flush to the disk.",
        "",
        f"- Dagster's records take {around['bytes'] / 1000:.0f} kB a partition.",
        "- With nothing left to do, commands take so much processor time: "
        + ", ".join(f"`{name}` {seconds:.1f} s" for name, seconds in startup.items())
        + ".",
        "",
        "## The viewer",
        "",
        f"The pages of {PAIRS:,} pairs are written in {pages['written']:.0f} s. Opened from disk in Chromium, the first pairs stand after "
        f"{pages['first']:.1f} s; a",
        f"filter or another order takes {pages['filter']:.2f} s, and a search for words in all texts {pages['search']:.1f} s.",
        "",
        "## On a GPU",
        "",
        "Not measured: no GPU was at hand. The code paths are tested on the processor",
        "(`fairness_pipeline_tests/models/test_gpu_paths.py`): one worker at a time has the GPU, batches are halved where memory",
        "runs out, losses are looked at every 20 steps, written words every eight, and batches go through pinned memory. Profile",
        "`paper` trains in bfloat16.",
        "",
        "## Machine",
        "",
        f"{os.cpu_count()} processors ({platform.machine()}), {number_of(torch.get_num_threads(), 'thread')} for torch, "
        f"Python {platform.python_version()}, torch {version('torch')}, transformers {version('transformers')}, "
        f"pyarrow {version('pyarrow')}, dagster {version('dagster')}.",
    ]
    return "\n".join(lines) + "\n"
