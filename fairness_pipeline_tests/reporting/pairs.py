"""Do the pairs that the viewer shows make the differences that the verdicts are about?"""

import numpy as np
import pytest

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.viewer.bundle import _measured
from fairness_pipeline.workspace.lake import Lake, Row


def pairs_make_the_verdicts(project: Project, fewest: int) -> None:
    """Of every audit the mean difference of what is shown is the difference of the row that is judged."""
    lake = Lake(project.workspace)
    measured, stale = _measured(Lineage(project), lake)
    assert measured and not stale
    compared = 0
    for study, audit in measured:
        module = study.load("samples")
        assert module is not None
        found = module.samples(project.parts[study.name], lake, audit.key)
        column = study.identity[len(study.axes)]
        for row in filter(lambda row: is_mean(study, row), audit.rows):
            if row[column] in found.values:
                scale = 100 if row["unit"] == "percent" and np.nanmax(found.values[row[column]]) <= 1 else 1
                shown = scale * mean_difference(*found.values[row[column]])
                judged = study.decisive(row) if study.name == "dialogue_fairness" else row
                assert shown == pytest.approx(
                    judged["difference"], rel=1e-6, abs=2e-2 if study.subject == "model" else 1e-9
                )
                compared += 1
    assert compared >= fewest


def is_mean(study: AnyStudy, row: Row) -> bool:
    """Whether a row is judged by the mean over all pairs, and not by some persons' names."""
    return study.gated(row) and row.get("persons") in (None, "all", "everybody") and row["n"] > 0


def mean_difference(a: np.ndarray, b: np.ndarray) -> float:
    both = np.isfinite(a) & np.isfinite(b)
    return float((a[both] - b[both]).mean() if both.any() else np.nanmean(a) - np.nanmean(b))
