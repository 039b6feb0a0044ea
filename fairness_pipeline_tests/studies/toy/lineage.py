"""Rolls, their comparison, and the report."""

from dataclasses import asdict
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from fairness_pipeline.studies.toy import report
from fairness_pipeline.studies.toy.profile import Die, Toy, ToyPart
from fairness_pipeline.studies.toy.study import STUDY

from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.lineage.assets import Assets, Result
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.lineage.shelf import Shelf
from fairness_pipeline.reporting.history import keep
from fairness_pipeline.reporting.results import audits_of, flat
from fairness_pipeline.statistics.comparison import COMPARISON, adjusted, compare_counts
from fairness_pipeline.statistics.equivalence import Margin

asset = Assets(ToyPart)

ROLLS = schema(a=(pa.float64(), "of the left hand"), b=(pa.float64(), "of the right hand"))


@asset(
    axes=("die",),
    inputs=lambda part, key: part.subjects[key["die"]],
    code_version="1",
    schema=ROLLS,
    checks=(checks.not_empty,),
)
def rolls(die: Die, run: Run) -> Result:
    """Both hands' rolls of a die."""
    a, b = np.random.default_rng(run.seed).integers(1, 7, (2, 2000)).astype(float)
    return Result(pa.table({"a": a + die.shift, "b": b}))


@asset(
    axes=("dimension", "die"),
    inputs=lambda part, key: part.settings.margin,
    reads={"rolled": rolls},
    code_version="1",
    schema=COMPARISON,
    checks=(checks.not_empty,),
)
def toy_significance(margin: Margin, rolled: pa.Table) -> Result:
    """The hands compared."""
    row = compare_counts("eyes", rolled["a"].to_numpy(), rolled["b"].to_numpy(), margin)
    return Result(pa.Table.from_pylist([asdict(row) for row in adjusted([row])], schema=COMPARISON))


@asset(kind="document", inputs=lambda part, key: part.settings, reads=(toy_significance,), code_version="1")
def toy_report(settings: Toy, shelf: Shelf) -> Result:
    """The verdicts."""
    audits = audits_of(STUDY, shelf.part, shelf.lake, shelf.stale(STUDY.table))
    html = report.render(audits)
    rows = flat(STUDY, audits)
    return Result(html, before_it_counts=lambda: keep(shelf.whole.root, STUDY, rows, html, datetime.now(UTC)))
