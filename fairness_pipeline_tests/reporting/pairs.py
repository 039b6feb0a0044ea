"""Do the pairs that the viewer shows make the differences that the verdicts are about?"""

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
    _nothing_changes_between_equal_runs(project, lake)
    _every_page_ends_with_what_to_do(project, lake)


def _nothing_changes_between_equal_runs(project: Project, lake: Lake) -> None:
    """Compared with itself, a run has every pair again, and no gap changed."""
    for study in project.studies:
        audits = [audit for audit in audits_of(study, project.parts[study.name], lake) if audit.measured]
        pairs, rows = gaps_table(study, project, lake, audits), flat(study, audits)
        for own in corrected(changes_since(study, project, lake, audits, rows, pairs), 0.05):
            assert not (own.shown or own.turned or own.worse), own.sentence
            assert own.change is None or own.change.change == pytest.approx(0, abs=1e-9), own.sentence
            # A mean over pairs is compared pair by pair; what has no interval, or rests on all answers, is not.
            if (
                is_mean(study, own.row)
                and own.row["n"] >= 100
                and study.name in ("language_model_bias", "sentiment_equity")
            ):
                assert own.change is None or own.basis.endswith(("same pairs", "same texts")), own.sentence


def _every_page_ends_with_what_to_do(project: Project, lake: Lake) -> None:
    for study in (own for own in project.studies if lake.document_path(own.report).exists()):
        page = lake.document_path(study.report).read_text(encoding="utf-8")
        (steps,) = re.findall(r'<h2 id="now">What to do now</h2>\n<ul>(.*?)</ul>', page, re.DOTALL)
        assert "<li>" in steps
        for audit in audits_of(study, project.parts[study.name], lake):
            if audit.measured:
                shown = summary(study, project.parts[study.name], audit.key, audit.rows)
                assert "**What to do now**\n- " in shown
    index = write_index(project, lake)
    assert index and index.read_text(encoding="utf-8").count("<li>") > 0


def is_mean(study: AnyStudy, row: Row) -> bool:
    """Whether a row is judged by the mean over all pairs, and not by some persons' names."""
    return study.gated(row) and row.get("persons") in (None, "all", "everybody") and row["n"] > 0


def mean_difference(a: np.ndarray, b: np.ndarray) -> float:
    both = np.isfinite(a) & np.isfinite(b)
    return float((a[both] - b[both]).mean() if both.any() else np.nanmean(a) - np.nanmean(b))
