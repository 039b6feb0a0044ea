"""The items behind the verdicts on a table: both groups of the largest gap, side by side."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.outcomes.rows import CROSS, OMNIBUS, SIDE
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.studies.outcomes.profile import OutcomesPart
from fairness_pipeline.workspace.lake import Key, Lake, Row


def samples(part: OutcomesPart, lake: Lake, key: Key) -> Samples:
    """Every item of each verdict, with the outcome of the two groups that lie farthest apart; of an outcome with a side
    of its own every cell, beside the middle."""
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
        own = cells.filter(pc.equal(cells["outcome"], row["outcome"]))
        pairs = _of_side(own, row) if row["contrast"] == SIDE else _of_groups(own, row, table.group)
        begin = len(columns["id"])
        for name, values in columns.items():
            values.extend(pairs[name])
        measured.append((row["measure"], begin, np.array(pairs["a"]), np.array(pairs["b"])))
    count = len(columns["id"])
    of_measure: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for measure, begin, a, b in measured:
        both = np.full((2, count), np.nan)
        both[:, begin : begin + len(a)] = a, b
        of_measure[measure] = both[0], both[1]
    _, clusters = np.unique(np.array(columns.pop("cluster"), dtype=object).astype(str), return_inverse=True)
    return Samples.of(columns, of_measure, None if table.name else [clusters])


_TEXTS = ("asked_a", "answer_a", "asked_b", "answer_b")


def _of_groups(cells: pa.Table, row: Row, columns: tuple[str, ...]) -> dict[str, list[object]]:
    """Items of the two groups of a row, each side the mean over the other group columns and names."""
    places = [columns.index(name) for name in row["attribute"].split(CROSS)]
    sides: dict[str, dict[object, list[Row]]] = {row["group"]: {}, row["against"]: {}}
    for cell in cells.to_pylist():
        group = " ".join(str(cell["groups"][place]) for place in places)
        if group in sides:
            sides[group].setdefault(cell["item"], []).append(cell)
    of_a, of_b = sides[row["group"]], sides[row["against"]]
    pairs: dict[str, list[object]] = {name: [] for name in ("id", "word", *_TEXTS, "cluster", "a", "b")}
    for item in of_a:
        if item in of_b:
            pairs["id"].append(str(item))
            pairs["word"].append(f"{row['group']} / {row['against']}")
            pairs["cluster"].append(of_a[item][0]["cluster"])
            for side, own, group in (("a", of_a[item], row["group"]), ("b", of_b[item], row["against"])):
                value = float(np.mean([cell["value"] for cell in own]))
                pairs[side].append(value)
                pairs[f"asked_{side}"].append(own[0]["asked"] or f"{item}: {group}")
                pairs[f"answer_{side}"].append(own[0]["answer"] or f"{row['outcome']} {value:.4g}")
    return pairs


def _of_side(cells: pa.Table, row: Row) -> dict[str, list[object]]:
    found = cells.to_pylist()
    middle = 0.5 if row["unit"] == "percent" else 0.0
    asked = [cell["asked"] or str(cell["item"]) for cell in found]
    return {
        "id": [str(cell["item"] or place) for place, cell in enumerate(found)],
        "word": [" ".join(map(str, cell["groups"])) or "all" for cell in found],
        "asked_a": list(asked),
        "asked_b": list(asked),
        "answer_a": [cell["answer"] or f"{row['outcome']} {cell['value']:.4g}" for cell in found],
        "answer_b": ["no side"] * len(found),
        "cluster": [cell["cluster"] or place for place, cell in enumerate(found)],
        "a": [cell["value"] for cell in found],
        "b": [middle] * len(found),
    }
