"""Krippendorff's alpha: his own example, and groups that agree to different degrees."""

import numpy as np
import pandas as pd
import pytest

from fairness_pipeline.annotation.truth_inference.base import Labels
from fairness_pipeline.annotation.truth_inference.group_design import levels_of
from fairness_pipeline.measures.annotators.agreement import label_agreement
from fairness_pipeline.measures.annotators.annotator_groups import Labelled

EXAMPLE = """
A * * * * * 3 4 1 2 1 1 3 3 * 3
B 1 * 2 1 3 3 4 3 * * * * * * *
C * * 2 1 3 4 4 * 2 1 1 3 3 * 4
"""
"""Krippendorff's example, as on Wikipedia and the library's page: nominal 0.691, interval 0.811."""


def test_krippendorffs_example() -> None:
    rows = [
        (item, line.split()[0], int(cell) - 1)
        for line in EXAMPLE.split("\n") if line
        for item, cell in enumerate(line.split()[1:]) if cell != "*"
    ]  # fmt: skip
    labels = Labels.of(pd.DataFrame(rows, columns=["task", "worker", "label"]), 4)
    nominal, ordinal = label_agreement(Labelled(labels, {})).to_pylist()
    assert nominal["alpha"] == pytest.approx(0.691, abs=5e-4) and ordinal["alpha"] == pytest.approx(0.807, abs=5e-4)
    assert nominal["ci_low"] < 0.691 < nominal["ci_high"] and nominal["items"] == 12  # of 15: others have one label


def test_within_groups() -> None:
    random = np.random.default_rng(1)
    truth, annotators = np.repeat(random.integers(0, 2, 200), 12), np.tile(np.arange(12), 200)
    wrong = random.random(2400) < np.where(annotators < 6, 0.05, 0.3)
    data = pd.DataFrame(
        {"task": np.repeat(np.arange(200), 12), "worker": annotators, "label": np.where(wrong, 1 - truth, truth)}
    )
    labels = Labels.of(data)
    groups = levels_of(pd.Series(np.where(labels.annotators.to_numpy() < 6, "sure", "unsure")))
    rows = {row["group"]: row for row in label_agreement(Labelled(labels, {"who": groups})).to_pylist()}
    assert (
        rows["sure"]["alpha"] > 0.75 > rows[""]["alpha"] > rows["unsure"]["alpha"] and rows["unsure"]["ci_high"] < 0.3
    )
    unanimous = Labels.of(data.assign(label=1))
    assert label_agreement(Labelled(unanimous, {})).to_pylist()[0]["alpha"] is None
