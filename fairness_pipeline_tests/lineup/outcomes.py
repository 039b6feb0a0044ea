"""Study 6's systems: simulated answers, in topics of a few templates, that do or do not depend on the group."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.outcomes.specification import Outcome
from fairness_pipeline.measures.outcomes.cells import OUTCOME_CELLS
from fairness_pipeline.measures.outcomes.group_rows import Judging
from fairness_pipeline.measures.outcomes.outcome_significance import judge_outcomes
from fairness_pipeline.measures.outcomes.rows import GATED
from fairness_pipeline.statistics.groups import Cells
from fairness_pipeline_tests.lineup.shared import System, Verdicts
from fairness_pipeline_tests.measures.outcomes.planted import simulated

STUDY = "outcomes"
_DRAWS = 10


def judge(design: dict[str, Any], draw: int) -> Verdicts:
    """Returns the verdicts on a table of three outcomes: a rate, a rare rate and a number. All follow `design`, but
    only the first has its planted difference."""
    random = np.random.default_rng([draw, 24])
    clusters = int(random.integers(12, 40, endpoint=True))
    rare = {**design, "rate": 0.02, "planted": 0.0}
    cells_by_outcome = {
        "approved": simulated(random, clusters=clusters, draws=_DRAWS, **design),
        "refused": simulated(random, clusters=clusters, draws=_DRAWS, **rare),
        "score": simulated(random, clusters=clusters, draws=_DRAWS, **{**design, "rate": None, "planted": 0.0}),
    }
    kinds = {"approved": Outcome(kind="yes_no"), "refused": Outcome(kind="yes_no"), "score": Outcome(kind="number")}
    table = pa.concat_tables([cells_as_table(name, cells) for name, cells in cells_by_outcome.items()])
    judged = judge_outcomes(table, Judging(outcomes=kinds, columns=("who",), alpha=0.05, seed=draw))
    return {row["measure"]: row["verdict"] for row in judged.to_pylist() if row["contrast"] in GATED}


def cells_as_table(outcome: str, cells: Cells) -> pa.Table:
    """Returns cells as a table of `OUTCOME_CELLS`; single numbers have a standard deviation of 1 (`simulated`)."""
    count = len(cells.value)
    return pa.table(
        {
            "outcome": [outcome] * count,
            "item": cells.item.astype(str),
            "cluster": cells.cluster[cells.item].astype(str),
            "name": cells.name.astype(str) if cells.name is not None else pa.nulls(count, pa.string()),
            "groups": [[cells.groups[group]] for group in cells.group],
            "value": cells.value,
            "square": np.square(cells.value),
            "draws": np.full(count, _DRAWS),
            "weight": pa.nulls(count, pa.float64()),
            "deviation": np.ones(count),
            "unread": pa.nulls(count, pa.float64()),
            "asked": pa.nulls(count, pa.string()),
            "answer": pa.nulls(count, pa.string()),
        },
        schema=OUTCOME_CELLS,
    )


def systems() -> Iterator[System]:
    """Yields all systems."""
    innocent: dict[str, dict[str, Any]] = {
        "topics differ, groups do not": {},
        "two groups that do not differ": {"groups": 2},
        "24 groups that do not differ": {"groups": 24},
        "topics of unequal size, a fifth of the cells missing": {"unequal": True, "missing": 0.2},
        "one group varies three times as much": {"spread_of_first": 3.0},
        "one group varies three times as much, skewed": {"spread_of_first": 3.0, "skewed": True},
        "ten names a group that matter": {"groups": 4, "names": 10, "by_name": 0.08, "items": 1},
        "five names a group that matter": {"groups": 2, "names": 5, "by_name": 0.08, "items": 1},
    }
    guilty: dict[str, tuple[dict[str, Any], float]] = {
        "one of eight groups approved 20 points more": ({"planted": 0.2}, 0.9),
        "one of eight groups approved 10 points more": ({"planted": 0.1, "by_cluster": 0.5}, 0.5),
        "one of eight groups approved 20 points less": ({"planted": -0.2}, 0.9),
        "one of two groups approved 10 points more": ({"groups": 2, "planted": 0.1, "by_cluster": 0.5}, 0.6),
        "one of 24 groups approved 20 points more": ({"groups": 24, "planted": 0.2}, 0.7),
        "20 points more, topics of unequal size, a fifth missing": (
            {"planted": 0.2, "unequal": True, "missing": 0.2},
            0.7,
        ),
        "ten names a group, one group approved 20 points more": (
            {"groups": 4, "names": 10, "by_name": 0.05, "items": 1, "planted": 0.2},
            0.8,
        ),
        "twenty names a group, one of two approved 20 points more": (
            {"groups": 2, "names": 20, "by_name": 0.05, "items": 1, "planted": 0.2},
            0.8,
        ),
    }
    for name, design in innocent.items():
        fast = design.get("groups", 8) < 24
        yield System(STUDY, "simulated answers", name, "innocent", partial(judge, design), fast=fast)
    for name, (design, power) in guilty.items():
        judge_draw = partial(judge, design)
        fast = design.get("groups", 8) < 24
        yield System(STUDY, "simulated answers", name, "guilty", judge_draw, ("approved by who",), power, fast=fast)
