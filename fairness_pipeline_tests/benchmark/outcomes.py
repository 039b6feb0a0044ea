"""Study 6: a large table of 24 groups, beside a chi-square over the same rows, and rows read from a large file."""

import resource
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats

import fairness_pipeline as fp
from fairness_pipeline.corpora.outcomes.table_files import read_table
from fairness_pipeline_tests.benchmark.shared import Ratio, rate

_GROUPS, _ROWS, _LARGE = 24, 300_000, 10_000_000


def outcomes() -> list[Ratio]:
    """300,000 rows, all statistics; and ten million rows, read."""
    random = np.random.default_rng(0)
    items = _ROWS // _GROUPS
    group = np.tile(np.arange(_GROUPS), items)
    table = pd.DataFrame(
        {
            "item": np.repeat(np.arange(items), _GROUPS),
            "who": [f"group {g}" for g in group],
            "y": random.random(_ROWS) < 0.3,
        }
    )
    table["topic"] = table["item"] % 16

    def plain() -> None:
        scipy.stats.chi2_contingency(pd.crosstab(table["who"], table["y"]))

    ratios = []
    for name, cluster in (("each item a cluster", None), ("16 topics", "topic")):
        here = rate(
            1, lambda cluster=cluster: fp.audit(table, item="item", cluster=cluster, group="who", outcome="y"), 2
        )
        note = f"300,000 rows, 24 groups: {1 / here:.2f} s (asked: 4); whatever is drawn, beside one chi-square"
        ratios.append(Ratio(f"outcomes by group, {name}", "tables", rate(1, plain, 2), here, 0.01, note))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        with path.open("w", encoding="utf-8") as stream:
            stream.write("item,who,draw,y\n")
            for begin in range(0, _LARGE, 1_000_000):
                rows = np.arange(begin, begin + 1_000_000)
                pd.DataFrame({"i": rows // 240, "g": rows % 24, "d": rows // 24 % 10, "y": rows % 7 % 2}).to_csv(
                    stream, header=False, index=False
                )
        here = rate(_LARGE, lambda: read_table(path))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        beside = rate(_LARGE, lambda: pd.read_csv(path))
    note = f"{_LARGE / here:.1f} s, peak of the process {peak:,.0f} MiB"
    ratios.append(Ratio("a table of ten million rows, beside pandas", "rows", beside, here, 0.25, note))
    return ratios
