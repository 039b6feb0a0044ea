"""Times the pipeline against plain code and against other libraries, and writes docs/performance.md.

Each part runs in a process of its own, under ten minutes, and its outcome is kept until the code changes: a benchmark that
was stopped goes on. The page is written when all parts are there. Rows beside faiss and OpenVINO need these installed
(`pip install faiss-cpu openvino`).
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fairness_pipeline_tests.benchmark.annotators import infer, inferred, truth_inference
from fairness_pipeline_tests.benchmark.around import memory, orchestration, peaks, startup
from fairness_pipeline_tests.benchmark.classifiers import classifiers
from fairness_pipeline_tests.benchmark.cores import cores, long_answers
from fairness_pipeline_tests.benchmark.dialogue import (
    bleu,
    decoding,
    disentanglement,
    encoding,
    measures,
    pairs,
    permutation,
    retrieval,
    training,
    vader,
    worth,
)
from fairness_pipeline_tests.benchmark.endpoints import endpoints
from fairness_pipeline_tests.benchmark.engines import locks, ray
from fairness_pipeline_tests.benchmark.gpu import gpu
from fairness_pipeline_tests.benchmark.language import generation, language_models
from fairness_pipeline_tests.benchmark.outcomes import outcomes
from fairness_pipeline_tests.benchmark.page import RESULTS, document, with_gpu
from fairness_pipeline_tests.benchmark.peers import peers
from fairness_pipeline_tests.benchmark.sentiment import equity
from fairness_pipeline_tests.benchmark.shared import ROOT, Ratio
from fairness_pipeline_tests.benchmark.viewer import viewer
from fairness_pipeline_tests.verify.shared import STATE, version

_KEPT = STATE.with_name("benchmark")

PARTS = {
    "pairs": pairs, "encoding": encoding, "measures": measures, "vader": vader, "worth": worth,
    "permutation": permutation, "cores": cores, "long_answers": long_answers,
    "bleu": bleu, "retrieval": retrieval, "decoding": decoding, "training": training, "disentanglement": disentanglement,
    "generation": generation, "classifiers": classifiers, "language_models": language_models, "equity": equity,
    "truth_inference": truth_inference, "outcomes": outcomes, "endpoints": endpoints, "ray": ray, "locks": locks,
    "peers": peers,
}  # fmt: skip
"""Ratios."""
FIGURES: dict[str, Callable[[], Any]] = {
    "memory": peaks, "around": orchestration, "startup": startup, "sizes": inferred, "viewer": viewer
}  # fmt: skip
"""What the page tells beside them."""


def main() -> None:
    """Runs what was not measured yet, or the parts named; exits with 1 if something is slower than asked."""
    parser = argparse.ArgumentParser(prog="make benchmark", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join([*PARTS, *FIGURES, 'gpu'])}; measured again")
    parser.add_argument("--memory", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--infer", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        return memory(*arguments.memory)
    if arguments.infer:
        return infer(arguments.infer)
    if arguments.alone:
        return measure(arguments.alone)
    everything = [*PARTS, *FIGURES]
    for name in arguments.parts or everything:
        if name not in [*everything, "gpu"]:
            parser.error(f"no part '{name}'; expected of {', '.join(everything)}, gpu")
        if arguments.parts or kept(name) is None:
            # Before anything else is loaded: a process that is started inherits the peak of who starts it.
            subprocess.run([sys.executable, "-W", "ignore", "-m", __package__, "--alone", name], check=False, cwd=ROOT)
    found = {name: outcome for name in everything if (outcome := kept(name)) is not None}
    ratios = {name: [Ratio(**own) for own in found[name]] for name in PARTS if name in found}
    if len(found) == len(everything):
        RESULTS.write_text(document([r for own in ratios.values() for r in own], found), encoding="utf-8")
        print(f"{RESULTS.relative_to(ROOT)} is written")
    else:
        print(f"Not measured yet: {', '.join(name for name in everything if name not in found)}")
    missed = [
        ratio.task
        for name in arguments.parts or PARTS
        for ratio in ratios.get(name, [])
        if ratio.here / ratio.plain < ratio.asked
    ]
    sys.exit(f"slower than asked: {', '.join(missed)}" if missed else 0)


def measure(name: str) -> None:
    """Measures one part, prints and keeps what it found."""
    import torch

    torch.set_num_threads(1)  # as a partition computes, and both sides alike
    started = time.monotonic()
    if name == "gpu":
        if not (outcome := gpu()):
            return print("gpu: there is no GPU here; that section of the page stays as it is")
        RESULTS.write_text(with_gpu(RESULTS.read_text(encoding="utf-8"), outcome), encoding="utf-8")
    elif name in FIGURES:
        outcome = FIGURES[name]()
        print(f"{name}: {outcome}", flush=True)
    else:
        outcome = []
        for ratio in PARTS[name]():
            outcome.append(asdict(ratio))
            print(f"{ratio.task}: {ratio.plain:,.4g} -> {ratio.here:,.6g} {ratio.unit}/s, "
                  f"{ratio.here / ratio.plain:,.1f}x (asked {ratio.asked:.3g}) {ratio.note}", flush=True)  # fmt: skip
    _KEPT.mkdir(parents=True, exist_ok=True)
    path = _KEPT / f"{name}.json"
    path.write_text(json.dumps({"version": version(), "outcome": outcome}), encoding="utf-8")
    print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


def kept(name: str) -> Any:
    """What was measured of a part with the code as it is; None if nothing was."""
    path = _KEPT / f"{name}.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    return found["outcome"] if found["version"] == version() else None


if __name__ == "__main__":
    main()
