"""Times the pipeline against plain code, one after the other in one process, and writes docs/performance.md."""

import argparse
import sys

import torch

from fairness_pipeline_tests.benchmark.annotators import infer, inferred, truth_inference
from fairness_pipeline_tests.benchmark.around import memory, orchestration, peaks
from fairness_pipeline_tests.benchmark.classifiers import classifiers
from fairness_pipeline_tests.benchmark.dialogue import (
    decoding,
    disentanglement,
    measures,
    pairs,
    permutation,
    retrieval,
    training,
    worth,
)
from fairness_pipeline_tests.benchmark.engines import locks, ray
from fairness_pipeline_tests.benchmark.language import generation, language_models
from fairness_pipeline_tests.benchmark.page import RESULTS, document
from fairness_pipeline_tests.benchmark.sentiment import equity

PARTS = {
    "pairs": pairs, "measures": measures, "worth": worth, "permutation": permutation, "retrieval": retrieval, "decoding": decoding, "training": training,
    "disentanglement": disentanglement,
    "generation": generation, "classifiers": classifiers,
    "language_models": language_models, "equity": equity, "truth_inference": truth_inference,
    "ray": ray, "locks": locks,
}  # fmt: skip


def main() -> None:
    """Runs all, or the parts named; writes the page only when all ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    for own in ("--memory", "--infer"):
        parser.add_argument(own, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        return memory(arguments.memory)
    if arguments.infer:
        return infer(arguments.infer)
    torch.set_num_threads(1)  # as a partition computes, and both sides alike
    # Before anything else is loaded: a process that is started inherits the peak of who starts it.
    grown, around, sizes = ([], {}, []) if arguments.parts else (peaks(), orchestration(), inferred())
    ratios = []
    for name in arguments.parts or PARTS:
        for ratio in PARTS[name]():
            ratios.append(ratio)
            print(f"{ratio.task}: {ratio.plain:,.4g} -> {ratio.here:,.6g} {ratio.unit}/s, "
                  f"{ratio.here / ratio.plain:,.1f}x (asked {ratio.asked:.3g}) {ratio.note}", flush=True)  # fmt: skip
    if not arguments.parts:
        page = document(ratios, grown, around, sizes)
        RESULTS.write_text(page, encoding="utf-8")
        print(page)
    missed = [ratio.task for ratio in ratios if ratio.here / ratio.plain < ratio.asked]
    sys.exit(f"slower than asked: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
