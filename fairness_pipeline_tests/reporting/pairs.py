"""Checks that the pairs in the viewer make the differences that the verdicts judge."""

import re

import numpy as np
import pytest

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.changes import changes_since, corrected
from fairness_pipeline.reporting.gaps import gaps_table
from fairness_pipeline.reporting.index import write_index
from fairness_pipeline.reporting.results import audits_of, flat
from fairness_pipeline.reporting.text_plot import summary
from fairness_pipeline.reporting.viewer.bundle import _measured
from fairness_pipeline.workspace.lake import Lake, Row


def pairs_make_the_verdicts(project: Project, fewest: int) -> None:
    """Checks for every audit that the mean difference of the shown pairs is that of the judged row."""
    lake = Lake(project.workspace)
    measured, stale = _measured(Lineage(project), lake)
    assert measured and not stale
    compared = 0
    for study, audit in measured:
        module = study.load("samples")
        assert module is not None
        samples = module.samples(project.parts[study.name], lake, audit.key)
        column = study.identity[len(study.axes)]
        for row in filter(lambda row: is_mean(study, row), audit.rows):
            if row[column] in samples.values:
                scale = 100 if row["unit"] == "percent" and np.nanmax(samples.values[row[column]]) <= 1 else 1
                difference = scale * mean_difference(*samples.values[row[column]])
                judged = study.decisive(row) if study.name == "dialogue_fairness" else row
                assert difference == pytest.approx(
                    judged["difference"], rel=1e-6, abs=2e-2 if study.subject == "model" else 1e-9
                )
                compared += 1
    assert compared >= fewest
    _nothing_changes_between_equal_runs(project, lake)
    _every_page_ends_with_what_to_do(project, lake)


def _nothing_changes_between_equal_runs(project: Project, lake: Lake) -> None:
    """Checks that a run compared with itself has every pair again, and no changed gap."""
    for study in project.studies:
        audits = [audit for audit in audits_of(study, project.parts[study.name], lake) if audit.measured]
        pairs, rows = gaps_table(study, project, lake, audits), flat(study, audits)
        for changed in corrected(changes_since(study, project, lake, audits, rows, pairs), 0.05):
            assert not (changed.shown or changed.turned or changed.worse), changed.sentence
            assert changed.change is None or changed.change.change == pytest.approx(0, abs=1e-9), changed.sentence
            # Means over pairs are compared pair by pair; rows without an interval or over all answers are not.
            if (
                is_mean(study, changed.row)
                and changed.row["n"] >= 100
                and study.name in ("language_model_bias", "sentiment_equity")
            ):
                assert changed.change is None or changed.basis.endswith(("same pairs", "same texts")), changed.sentence


def _every_page_ends_with_what_to_do(project: Project, lake: Lake) -> None:
    for study in (candidate for candidate in project.studies if lake.document_path(candidate.report).exists()):
        page = lake.document_path(study.report).read_text(encoding="utf-8")
        (steps,) = re.findall(r'<h2 id="now">What to do now</h2>\n<ul>(.*?)</ul>', page, re.DOTALL)
        assert "<li>" in steps
        for audit in audits_of(study, project.parts[study.name], lake):
            if audit.measured:
                text = summary(study, project.parts[study.name], audit.key, audit.rows)
                assert "**What to do now**\n- " in text
    index = write_index(project, lake)
    assert index and index.read_text(encoding="utf-8").count("<li>") > 0


def is_mean(study: AnyStudy, row: Row) -> bool:
    """Whether a row is judged by the mean over all pairs, and not by some persons' names."""
    return study.gated(row) and row.get("persons") in (None, "all", "everybody") and row["n"] > 0


def mean_difference(a: np.ndarray, b: np.ndarray) -> float:
    both = np.isfinite(a) & np.isfinite(b)
    return float((a[both] - b[both]).mean() if both.any() else np.nanmean(a) - np.nanmean(b))
