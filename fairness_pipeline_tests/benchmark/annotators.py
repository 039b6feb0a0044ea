"""Truth inference beside plain code and crowd-kit."""

import json
import resource
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairness_pipeline_tests.benchmark.shared import Ratio, in_a_process, rate


def truth_inference() -> Iterator[Ratio]:
    """Methods beside crowd-kit's: Dawid-Skene and KOS with as many iterations on a million labels of 100,000 items;
    GLAD and MACE with the default settings on 50,000 labels."""
    from crowdkit import aggregation as theirs

    from fairness_pipeline.annotation import truth_inference as ours

    endless, rounds, messages = -np.inf, 25, 10
    for name, count, asked, settings in (
        ("DawidSkene", 1_000_000, 12, {"n_iter": rounds, "tol": endless}),
        ("KOS", 1_000_000, 15, {"n_iter": messages}),
        ("GLAD", 50_000, 10, {}),
        ("MACE", 50_000, 15, {}),
    ):
        labels, _, truth = _labels(count)
        shuffled = labels.sample(frac=1, random_state=1).reset_index(drop=True)
        methods = [getattr(library, name)(**settings) for library in (theirs, ours)]
        speeds = [rate(count, partial(method.fit, shuffled)) for method in methods]
        right = [(method.labels_.sort_index().to_numpy() == truth).mean() for method in methods]
        note = f"{right[1]:.2%} of items right, crowd-kit {right[0]:.2%}"
        yield Ratio(f"{name}, {count:,} labels, beside crowd-kit", "labels", *speeds, asked, note)


def _labels(count: int) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Ten labels an item, by annotators of a thousand labels each; the group of each annotator; and the true labels."""
    draw, items, per = np.random.default_rng(0), count // 10, 10
    workers = max(50, items // 100)
    truth, rates = draw.integers(0, 2, items), draw.uniform(0.6, 0.95, (2, workers))
    worker = (draw.integers(0, workers, items)[:, None] + np.arange(per) * (workers // per - 1)) % workers
    positive = np.where(truth[:, None] == 1, rates[0][worker], 1 - rates[1][worker])
    label = (draw.random(worker.shape) < positive).astype(int)
    labels = pd.DataFrame({"task": np.repeat(np.arange(items), per), "worker": worker.ravel(), "label": label.ravel()})
    return labels, pd.DataFrame({"group": draw.integers(0, 2, workers)}), truth


def infer(count: int) -> None:
    """Every method of truth inference on `count` labels; prints seconds of each and peak memory."""
    from fairness_pipeline.annotation.truth_inference import GroupAnno, GroupBeta
    from fairness_pipeline.annotation.truth_inference.registry import METHODS, method

    labels, groups, _ = _labels(count)
    seconds = {}
    for name in METHODS:
        fitted = method(name, {}, groups)
        started = time.perf_counter()
        fitted.fit(labels)
        if isinstance(fitted, GroupAnno | GroupBeta):
            fitted.contrasts()
        seconds[METHODS[name].title] = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"labels": count, "seconds": seconds, "peak_gib": peak}))


def inferred() -> list[dict[str, Any]]:
    """`infer` at ten thousand to ten million labels, each in a process of its own."""
    return [in_a_process("--infer", count) for count in (10_000, 100_000, 1_000_000, 10_000_000)]


def of_methods(sizes: list[dict[str, Any]]) -> list[str]:
    """What `inferred` found, as a table."""
    return [
        "| labels | " + " | ".join(sizes[0]["seconds"]) + " | peak |",
        "| ---: |" + " ---: |" * (len(sizes[0]["seconds"]) + 1),
        *(
            f"| {own['labels']:,} | " + " | ".join(f"{s:.2f} s" for s in own["seconds"].values())
            + f" | {own['peak_gib']:.2f} GiB |"
            for own in sizes
        ),
    ]  # fmt: skip
