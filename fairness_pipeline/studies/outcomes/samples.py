"""Collects the items behind the verdicts on a table: both groups of the largest gap, side by side."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.outcomes.rows import CROSS, OMNIBUS, SIDE
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.studies.outcomes.profile import OutcomesPart
from fairness_pipeline.workspace.lake import Key, Lake, Row


def samples(part: OutcomesPart, lake: Lake, key: Key) -> Samples:
    """Every item of each verdict, with the outcomes of the two groups that differ most; for an outcome with a side of
    its own, every cell, next to the value of no side."""
    table, cells = part.tables[key["table"]], lake.read("outcome_cells", key)
    measured_in = set(cells["outcome"].unique().to_pylist())
    rows = [
        row
        for row in lake.read("outcome_significance", key).to_pylist()
        if row["contrast"] in (OMNIBUS, SIDE) and row["outcome"] in measured_in
    ]
    columns: dict[str, list[object]] = {name: [] for name in ("id", "word", *_TEXTS, "cluster")}
    measured: list[tuple[str, int, np.ndarray, np.ndarray]] = []
    for row in rows:
        outcome_cells = cells.filter(pc.equal(cells["outcome"], row["outcome"]))
        pairs = (
            _side_pairs(outcome_cells, row)
            if row["contrast"] == SIDE
            else _group_pairs(outcome_cells, row, table.group)
        )
        start = len(columns["id"])
        for name, values in columns.items():
            values.extend(pairs[name])
        measured.append((row["measure"], start, np.array(pairs["a"]), np.array(pairs["b"])))
    count = len(columns["id"])
    by_measure: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for measure, start, a, b in measured:
        sides = np.full((2, count), np.nan)
        sides[:, start : start + len(a)] = a, b
        by_measure[measure] = sides[0], sides[1]
    _, clusters = np.unique(np.array(columns.pop("cluster"), dtype=object).astype(str), return_inverse=True)
    return Samples.of(columns, by_measure, None if table.name else [clusters])


_TEXTS = ("asked_a", "answer_a", "asked_b", "answer_b")


def _group_pairs(cells: pa.Table, row: Row, columns: tuple[str, ...]) -> dict[str, list[object]]:
    """The items of the two groups of a row; a side is the mean over the other group columns and names."""
    positions = [columns.index(name) for name in row["attribute"].split(CROSS)]
    sides: dict[str, dict[object, list[Row]]] = {row["group"]: {}, row["against"]: {}}
    for cell in cells.to_pylist():
        group = " ".join(str(cell["groups"][position]) for position in positions)
        if group in sides:
            sides[group].setdefault(cell["item"], []).append(cell)
    of_a, of_b = sides[row["group"]], sides[row["against"]]
    pairs: dict[str, list[object]] = {name: [] for name in ("id", "word", *_TEXTS, "cluster", "a", "b")}
    for item in of_a:
        if item in of_b:
            pairs["id"].append(str(item))
            pairs["word"].append(f"{row['group']} / {row['against']}")
            pairs["cluster"].append(of_a[item][0]["cluster"])
            for side, item_cells, group in (("a", of_a[item], row["group"]), ("b", of_b[item], row["against"])):
                value = float(np.mean([cell["value"] for cell in item_cells]))
                pairs[side].append(value)
                pairs[f"asked_{side}"].append(item_cells[0]["asked"] or f"{item}: {group}")
                pairs[f"answer_{side}"].append(item_cells[0]["answer"] or f"{row['outcome']} {value:.4g}")
    return pairs


def _side_pairs(cells: pa.Table, row: Row) -> dict[str, list[object]]:
    rows = cells.to_pylist()
    middle = 0.5 if row["unit"] == "percent" else 0.0
    asked = [cell["asked"] or str(cell["item"]) for cell in rows]
    return {
        "id": [str(cell["item"] or number) for number, cell in enumerate(rows)],
        "word": [" ".join(map(str, cell["groups"])) or "all" for cell in rows],
        "asked_a": list(asked),
        "asked_b": list(asked),
        "answer_a": [cell["answer"] or f"{row['outcome']} {cell['value']:.4g}" for cell in rows],
        "answer_b": ["no side"] * len(rows),
        "cluster": [cell["cluster"] or number for number, cell in enumerate(rows)],
        "a": [cell["value"] for cell in rows],
        "b": [middle] * len(rows),
    }
