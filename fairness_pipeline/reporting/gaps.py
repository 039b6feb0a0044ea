"""Reads the differences behind the verdicts of a study, pair by pair, for comparison with another run.

A pair is identified by what was asked, and not by its number: two runs may draw different pairs.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.workspace.lake import Key, Lake

PAIR, ON_A = "pair", "on_a"


class Gaps(NamedTuple):
    """The pairs of one partition.

    Attributes:
        pairs: A number for what each pair was asked.
        on_a: Which texts are side a's, if each text belongs to one side only; otherwise None.
        differences: By measure, side a minus side b of each pair, or the value of each text; NaN where there is none.
        clusters: The clusters of the pairs.
    """

    pairs: np.ndarray
    on_a: np.ndarray | None
    differences: dict[str, np.ndarray]
    clusters: Sequence[np.ndarray]


def gaps_of(study: AnyStudy, project: Project, lake: Lake, key: Key) -> Gaps | None:
    """Returns the pairs of a partition; None if its verdicts do not rest on pairs."""
    module = study.load("samples")
    if module is None:
        return None
    samples: Samples = module.samples(project.parts[study.name], lake, key)
    if samples.clusters is None:
        return None
    asked = [samples.pairs[f"asked_{side}"].to_pylist() for side in "ab"]
    on_a = np.array([text is not None for text in asked[0]])
    one_sided = not all(a is not None and b is not None for a, b in zip(*asked, strict=True))
    differences = {
        name: np.where(on_a, a, b) if one_sided else np.subtract(a, b)
        for name, (a, b) in {**samples.values, **samples.deciding}.items()
    }
    return Gaps(_numbers(zip(*asked, strict=True)), on_a if one_sided else None, differences, samples.clusters)


def gaps_table(study: AnyStudy, project: Project, lake: Lake, audits: Iterable[Audit]) -> pa.Table | None:
    """Returns the pairs of all measured audits: the partition's columns, the pair, `ON_A`, a column for each measure.

    An audit that is out of date is left out, as its pairs may have been replaced. None if there are none.
    """
    tables = []
    for audit in audits:
        current = audit.measured and not audit.stale and not audit.degenerate
        if current and (gaps := gaps_of(study, project, lake, audit.key)):
            count = len(gaps.pairs)
            on_a = pa.nulls(count, pa.bool_()) if gaps.on_a is None else pa.array(gaps.on_a)
            measures = {name: pa.array(values, from_pandas=True) for name, values in gaps.differences.items()}
            columns = {axis: pa.repeat(value, count) for axis, value in audit.key.items()}
            tables.append(pa.table({**columns, PAIR: gaps.pairs, ON_A: on_a, **measures}))
    return pa.concat_tables(tables, promote_options="default") if tables else None


def gaps_in(table: pa.Table, key: Key) -> Gaps | None:
    """Returns the pairs of one partition in a table of `gaps_table`; None if it has none."""
    for axis, value in key.items():
        table = table.filter(pc.equal(table[axis], value))
    if not table.num_rows:
        return None
    on_a = None if table[ON_A].null_count else np.asarray(table[ON_A])
    names = [name for name in table.column_names if name not in (*key, PAIR, ON_A)]
    differences = {name: table[name].to_numpy() for name in names if table[name].null_count < table.num_rows}
    return Gaps(np.asarray(table[PAIR]), on_a, differences, ())


def _numbers(asked: Iterable[tuple[str | None, str | None]]) -> np.ndarray:
    """Returns a number for what each pair was asked; repeated questions get different numbers."""
    seen: Counter[tuple[str | None, str | None]] = Counter()
    numbers = []
    for pair in asked:
        seen[pair] += 1
        text = "\x1f".join([*(text or "" for text in pair), str(seen[pair])])
        numbers.append(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True))
    return np.array(numbers, dtype=np.int64)
