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


ON_GPU = "## On a GPU"
"""The section that only a machine with a GPU writes."""


def with_gpu(page: str, found: dict[str, Any]) -> str:
    """The page with a section of what `gpu` has found; the others stay."""
    lines = [
        ON_GPU,
        "",
        "`python -m fairness_pipeline_tests.benchmark gpu` writes this section. The sizes are the papers', the texts random words.",
        "Beside the GPU stand all processors of the same machine, at fewer items. The share is that of the card's own limit, which",
        "is a product of matrices of 8,192 rows in the same precision; it counts the multiplications that the answer needs, and no",
        "padding.",
        "",
        f"| task | {found['processors']} processors | {found['card']} | ratio | share of the limit |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for row in found["rows"]:
        share = (
            f"{row['gpu'] * row['work'] / found['limits'][row['limit']]:.0%} of {row['limit']}" if row["limit"] else ""
        )
        lines.append(
            f"| {row['task']} | {row['cpu']:,.4g} {row['unit']}/s | {row['gpu']:,.6g} {row['unit']}/s "
            f"| {row['gpu'] / row['cpu']:,.0f} | {share} |"
        )
    limits = ", ".join(f"{limit:,.0f} in {name}" for name, limit in found["limits"].items())
    lines += [
        "",
        f"The limits: {limits} (10^12 operations a second), torch {found['torch']}. One worker at a time has the GPU; models of fewer",
        "than a million weights stay on the processors. Batches grow with the card's memory and are halved where it runs out,",
        "losses are looked at every 20 steps, written words every eight, and batches go through pinned memory",
        "(`fairness_pipeline_tests/models/test_gpu_paths.py`, which tests this on a GPU where there is one). Profile `paper` trains in",
        "bfloat16; float32 is 32 bits on a GPU too.",
        "",
    ]  # fmt: skip
    old = "\n".join(_section(page, ON_GPU))
    return page.replace(old, "\n".join(lines))


def _section(page: str, title: str) -> list[str]:
    """The lines of a section, its title the first."""
    lines = page.split("\n")
    first = lines.index(title)
    ends = (number for number, line in enumerate(lines) if number > first and line.startswith("## "))
    return lines[first : next(ends, len(lines))]


def _told(ratio: Ratio) -> str:
    """The note, and why the ratio is below what was asked where it is."""
    missed = ratio.here / ratio.plain < ratio.asked and ratio.missed
    return "; ".join(filter(None, [ratio.note, f"missed: {ratio.missed}"])) if missed else ratio.note


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
        "(`fairness_pipeline_tests/benchmark/plain.py`). `beside` names another library, or another way of this project, which stands",
        "in the column `plain` then; those beside lm-eval and LangFair need these installed",
        "(`fairness_pipeline_tests/benchmark/peers.py`). `asked` is the least ratio that the project asks of itself. Trust the ratios,",
        "because the rates depend on the machine.",
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
              "the libraries.", "", "| pairs | words of an answer | peak | seconds |", "| ---: | ---: | ---: | ---: |"]  # fmt: skip
    lines += [f"| {g['pairs']:,} | {g['words']} | {g['peak_gib']:.2f} GiB | {g['seconds']:.0f} |" for g in grown]
    lengths = {words: [g for g in grown if g["words"] == words] for words in dict.fromkeys(g["words"] for g in grown)}
    each = [
        f"{(own[-1]['peak_gib'] - own[0]['peak_gib']) * 2**20 / (own[-1]['pairs'] - own[0]['pairs']):,.1f} kB a pair at "
        f"{words} words an answer"
        for words, own in lengths.items()
    ]
    lines += [
        "",
        f"That is {', '.join(each)}, on top of what the libraries take.",
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
        f"- Dagster's records of these {around['partitions']} partitions take {around['bytes'] / 1000:.0f} kB each; more partitions "
        "share what is there once.",
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
        *_section(RESULTS.read_text(encoding="utf-8"), ON_GPU),
        "## Machine",
        "",
        f"{os.cpu_count()} processors ({platform.machine()}), {number_of(torch.get_num_threads(), 'thread')} for torch, "
        f"Python {platform.python_version()}, torch {version('torch')}, transformers {version('transformers')}, "
        f"pyarrow {version('pyarrow')}, dagster {version('dagster')}.",
    ]
    return "\n".join(lines) + "\n"
