"""Rolls, their comparison, the report."""

from dataclasses import asdict
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from fairness_pipeline.studies.toy import report
from fairness_pipeline.studies.toy.profile import ToyPart
from fairness_pipeline.studies.toy.study import STUDY

from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.schemas import schema
from fairness_pipeline.lineage.assets import Assets
from fairness_pipeline.lineage.partition import Partition
from fairness_pipeline.lineage.recipe import Result
from fairness_pipeline.reporting.history import keep
from fairness_pipeline.reporting.results import audits_of, flat
from fairness_pipeline.statistics.comparison import COMPARISON, adjusted, compare_counts

asset = Assets(ToyPart)

ROLLS = schema(a=(pa.float64(), "of the left hand"), b=(pa.float64(), "of the right hand"))


@asset(
    axes=("die",),
    code_version="1",
    settings=lambda part, key: part.subjects[key["die"]].identity(),
    schema=ROLLS,
    checks=(checks.not_empty,),
)
def rolls(partition: Partition[ToyPart]) -> Result:
    """Both hands' rolls of a die."""
    random, shift = np.random.default_rng(partition.seed), partition.part.subjects[partition.key["die"]].shift
    a, b = random.integers(1, 7, (2, 2000)).astype(float)
    return Result(pa.table({"a": a + shift, "b": b}))


@asset(
    axes=("dimension", "die"),
    upstream=("rolls",),
    code_version="1",
    settings=lambda part, key: part.settings.margin.model_dump(),
    schema=COMPARISON,
    checks=(checks.not_empty,),
)
def toy_significance(partition: Partition[ToyPart]) -> Result:
    """The hands compared."""
    table = partition.read("rolls")
    row = compare_counts("eyes", table["a"].to_numpy(), table["b"].to_numpy(), partition.part.settings.margin)
    return Result(pa.Table.from_pylist([asdict(row) for row in adjusted([row])], schema=COMPARISON))


@asset(
    kind="document",
    upstream=("toy_significance",),
    code_version="1",
    settings=lambda part, key: part.settings.model_dump(),
)
def toy_report(partition: Partition[ToyPart]) -> Result:
    """The verdicts."""
    audits = audits_of(STUDY, partition.part, partition.lake, partition.stale(STUDY.table))
    html = report.render(audits)
    rows = flat(STUDY, audits)
    return Result(html, before_it_counts=lambda: keep(partition.lake.root, STUDY, rows, html, datetime.now(UTC)))
