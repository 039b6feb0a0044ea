"""Inferred labels, as a file for the next training."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fairness_pipeline.annotation.bias_estimates import GROUP

FORMS = (".csv", ".jsonl", ".parquet")
"""The possible endings of the file: comma-separated, one JSON object per line, or Parquet."""


def write_labels(truths: pa.Table, estimates: pa.Table, items: pa.Table, path: Path, form: str) -> int:
    """Writes `item_id`, `text`, `label`, `probability` (that the label is positive), and a column per group of
    annotators.

    `said by CATEGORY: GROUP` is the probability that an annotator of the group calls the item positive:
    sensitivity P(y = 1) + (1 - specificity) P(y = 0).

    Args:
        truths: As `INFERRED`. The first draw is written.
        estimates: As `BIAS_ESTIMATES`, by the same method.
        items: As `ITEMS`.
        path: The file to write.
        form: One of `FORMS`.

    Returns:
        The number of items.
    """
    own = truths.filter(pc.equal(truths["draw"], 1))
    texts = {row["item_id"]: row["text"] for row in items.to_pylist() if row["draw"] == 1}
    columns = {
        "item_id": own["item_id"].to_pylist(),
        "text": [texts.get(item, "") for item in own["item_id"].to_pylist()],
        "label": own["label"].to_pylist(),
        "probability": own["probability"].to_pylist(),
    }
    rates: dict[tuple[str, str], dict[str, float]] = {}
    for row in estimates.to_pylist():
        if row["draw"] == 1 and row["kind"] == GROUP:
            rates.setdefault((row["category"], row["name"]), {})[row["response"]] = row["value"]
    for (category, group), rate in rates.items():
        if len(rate) == 2:
            alpha, beta = (min(1.0, max(0.0, rate[name])) for name in ("sensitivity", "specificity"))
            columns[f"said by {category}: {group}"] = [alpha * p + (1 - beta) * (1 - p) for p in columns["probability"]]
    if form == ".parquet":
        pq.write_table(pa.table(columns), path)
        return own.num_rows
    with path.open("w", encoding="utf-8", newline="") as stream:
        rows = zip(*columns.values(), strict=True)
        if form == ".jsonl":
            stream.writelines(
                json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows
            )
        else:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)
    return own.num_rows
