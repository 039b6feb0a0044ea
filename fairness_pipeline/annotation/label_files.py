"""Inferred labels and soft labels, as a file for the next training."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.annotation.bias_estimates import GROUP
from fairness_pipeline.annotation.inference import people
from fairness_pipeline.annotation.truth_inference.group_design import RESPONSES
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.foundation.csv_cells import write_rows
from fairness_pipeline.foundation.parquet import write_parquet

if TYPE_CHECKING:
    import pandas as pd

FORMS = (".csv", ".jsonl", ".parquet")
"""The possible endings of the file: comma-separated, one JSON object per line, or Parquet."""
_NEVER, _SOME = 0.001, 0.1


class Written(NamedTuple):
    """How many items were written, and how many of them are all but certain although a tenth of their annotators say
    the contrary: methods take labels for independent given the truth, which makes them too sure. And how many cells
    were escaped."""

    items: int
    doubtful: int
    escaped: int


def write_labels(
    truths: pa.Table,
    estimates: pa.Table,
    items: pa.Table,
    annotations: pa.Table,
    annotators: pa.Table,
    corpus: AnnotatedCorpus,
    path: Path,
    form: str,
) -> Written:
    """Writes `item_id`, `text`, `label`, its probability, who said so, and a column per group of annotators.

    Of two classes: `label` (1 or 0), `probability` (of 1), `said by CATEGORY: GROUP` (the probability that an annotator
    of the group calls the item positive: sensitivity P(y = 1) + (1 - specificity) P(y = 0)). Of several: `label` (the
    name of the class), `probability` (of it), `probability of CLASS`.

    Soft labels stand beside them: `labels` (how many), `share` (of 1) or `share of CLASS`, and for each group `labels
    of CATEGORY: GROUP` and `share of CATEGORY: GROUP` (with the class behind it), empty where nobody of the group
    labelled the item.

    Args:
        truths: As `INFERRED`. The first draw is written.
        estimates: As `BIAS_ESTIMATES`, by the same method.
        items: As `ITEMS`.
        annotations: As `ANNOTATIONS`.
        annotators: As `ANNOTATORS`.
        corpus: The corpus, which names classes and groups.
        path: The file to write.
        form: One of `FORMS`.
    """
    own, labels, who = (table.filter(pc.equal(table["draw"], 1)) for table in (truths, annotations, annotators))
    order, names = own["item_id"].to_pylist(), corpus.labels.class_names
    texts = {row["item_id"]: row["text"] for row in items.to_pylist() if row["draw"] == 1}
    said, probability = own["label"].to_pylist(), own["probability"].to_pylist()
    columns: dict[str, list[Any]] = {
        "item_id": order,
        "text": [texts.get(item, "") for item in order],
        "label": [names[label] for label in said] if corpus.several else said,
        "probability": probability,
    }
    if corpus.several:
        for number, name in enumerate(names):
            columns[f"probability of {name}"] = [row[number] for row in own["probabilities"].to_pylist()]
    else:
        columns |= _said_by(estimates, probability)
    rows = labels.to_pandas()
    shares = _shares(rows, order, names)
    columns |= shares
    for category, groups in people(who).items():
        for group in groups.cat.categories:
            inside = rows[rows["annotator_id"].isin(groups.index[groups == group])]
            found = _shares(inside, order, names)
            columns |= {_of_group(name, f"{category}: {group}"): column for name, column in found.items()}
    escaped = _write(columns, path, form)
    return Written(own.num_rows, 0 if corpus.several else _doubtful(probability, shares["share"]), escaped)


def _doubtful(probability: list[float], share: list[float]) -> int:
    """How many items are all but certain although a tenth of their annotators say the contrary."""
    return sum(
        min(p, 1 - p) < _NEVER and (of if p < 0.5 else 1 - of) >= _SOME
        for p, of in zip(probability, share, strict=True)
    )


def _said_by(estimates: pa.Table, probability: list[float]) -> dict[str, list[float]]:
    """How likely an annotator of each group is to call each item positive."""
    rates: dict[tuple[str, str], dict[str, float]] = {}
    for row in estimates.to_pylist():
        if row["draw"] == 1 and row["kind"] == GROUP:
            rates.setdefault((row["category"], row["name"]), {})[row["response"]] = row["value"]
    found = {}
    for (category, group), rate in rates.items():
        if len(rate) == 2:
            alpha, beta = (rate[name] for name in RESPONSES)
            found[f"said by {category}: {group}"] = [alpha * p + (1 - beta) * (1 - p) for p in probability]
    return found


def _shares(rows: "pd.DataFrame", order: list[str], names: tuple[str, ...]) -> dict[str, list[Any]]:
    """The number of labels of each item, and the share of the positive class, or of each of several."""
    counts = rows.groupby(["item_id", "label"]).size().unstack(fill_value=0)
    counts = counts.reindex(index=order, columns=range(len(names)), fill_value=0)
    given = counts.sum(axis=1)
    shares = counts.div(given.where(given > 0), axis=0)
    wanted = {"share": 1} if len(names) == 2 else {f"share of {name}": number for number, name in enumerate(names)}
    found = {name: [None if value != value else value for value in shares[n].tolist()] for name, n in wanted.items()}
    return {"labels": given.tolist(), **found}


def _of_group(name: str, group: str) -> str:
    kind, _, of_class = name.partition(" of ")
    return f"{kind} of {group}" + (f": {of_class}" if of_class else "")


def _write(columns: dict[str, list[Any]], path: Path, form: str) -> int:
    """Writes a table; how many cells of CSV were escaped."""
    if form == ".parquet":
        write_parquet(pa.table(columns), path)
        return 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        return write_rows(stream, list(columns), zip(*columns.values(), strict=True), form)
