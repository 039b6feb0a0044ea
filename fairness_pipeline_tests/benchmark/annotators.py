"""Truth inference beside plain code and crowd-kit."""

import json
import resource
import time
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairness_pipeline_tests.benchmark.shared import Ratio, in_a_process, rate


def truth_inference() -> list[Ratio]:
    """Dawid-Skene and KOS beside crowd-kit's, as many iterations each, on a million labels of 100,000 items."""
    from crowdkit.aggregation import KOS as TheirKOS
    from crowdkit.aggregation import DawidSkene as TheirDawidSkene

    from fairness_pipeline.annotation.truth_inference import KOS, DawidSkene

    labels, _ = _labels(1_000_000)
    shuffled = labels.sample(frac=1, random_state=1).reset_index(drop=True)
    endless, rounds, messages = -np.inf, 25, 10
    theirs, ours = TheirDawidSkene(n_iter=rounds, tol=endless), DawidSkene(n_iter=rounds, tol=endless)
    same = (theirs.fit_predict(shuffled) == ours.fit_predict(shuffled)).mean()
    found = [
        ("Dawid-Skene", theirs, ours, 12, f"{rounds} iterations; {same:.2%} of the labels the same"),
        ("KOS", TheirKOS(n_iter=messages), KOS(n_iter=messages), 15, f"{messages} rounds of messages"),
    ]
    return [
        Ratio(
            f"{name}, a million labels",
            "labels",
            *(rate(len(labels), partial(m.fit, shuffled), 2) for m in both),
            asked,
            note,
        )
        for name, *both, asked, note in found
    ]


def _labels(count: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ten labels an item, by annotators of a thousand labels each; and in which group of a category each of them is."""
    draw, items, per = np.random.default_rng(0), count // 10, 10
    workers = max(50, items // 100)
    truth, rates = draw.integers(0, 2, items), draw.uniform(0.6, 0.95, (2, workers))
    who = (draw.integers(0, workers, items)[:, None] + np.arange(per) * (workers // per - 1)) % workers
    positive = np.where(truth[:, None] == 1, rates[0][who], 1 - rates[1][who])
    label = (draw.random(who.shape) < positive).astype(int)
    labels = pd.DataFrame({"task": np.repeat(np.arange(items), per), "worker": who.ravel(), "label": label.ravel()})
    return labels, pd.DataFrame({"group": draw.integers(0, 2, workers)})


def infer(count: int) -> None:
    """Every method of truth inference on `count` labels; prints seconds of each and peak memory."""
    from fairness_pipeline.annotation.truth_inference import GroupAnno, GroupBeta
    from fairness_pipeline.annotation.truth_inference.registry import METHODS, method

    labels, who = _labels(count)
    found = {}
    for name in METHODS:
        own = method(name, {}, who)
        started = time.perf_counter()
        own.fit(labels)
        if isinstance(own, GroupAnno | GroupBeta):
            own.contrasts()
        found[METHODS[name].title] = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"labels": count, "seconds": found, "peak_gib": peak}))


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
