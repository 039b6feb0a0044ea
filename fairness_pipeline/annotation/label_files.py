"""Writes inferred labels and soft labels to a file for the next training."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.annotation.bias_estimates import GROUP
from fairness_pipeline.annotation.inference import people
from fairness_pipeline.annotation.truth_inference.group_design import RESPONSES
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.foundation.csv_cells import write_table
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.parquet import write_parquet

if TYPE_CHECKING:
    import pandas as pd

FORMS = (".csv", ".jsonl", ".parquet")
"""The possible endings of the file: comma-separated, one JSON object per line, or Parquet."""
_ALL_BUT_CERTAIN, _DISSENT = 0.001, 0.1


class Written(NamedTuple):
    """The numbers of written items, doubtful items and escaped cells.

    An item is doubtful if it is all but certain although a tenth of its annotators disagree: methods assume that labels
    are independent given the truth, which makes them overconfident.
    """

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
) -> Written:
    """Writes `item_id`, `text`, `label`, its probability, and columns per group of annotators, of the first draw.

    Of two classes: `label` (1 or 0), `probability` (of 1), `said by CATEGORY: GROUP` (the probability that an annotator
    of the group calls the item positive: sensitivity P(y = 1) + (1 - specificity) P(y = 0)). Of several: `label` (the
    name of the class), `probability` (of it), `probability of CLASS`.

    Soft labels follow: `labels` (how many), `share` (of 1) or `share of CLASS`, and for each group `labels of CATEGORY:
    GROUP` and `share of CATEGORY: GROUP` (followed by the class), empty where nobody of the group labelled the item.
    """
    truth_rows, annotation_rows, annotator_rows = (
        table.filter(pc.equal(table["draw"], 1)) for table in (truths, annotations, annotators)
    )
    item_ids, class_names = truth_rows["item_id"].to_pylist(), corpus.labels.class_names
    texts = {row["item_id"]: row["text"] for row in items.to_pylist() if row["draw"] == 1}
    labels, probability = truth_rows["label"].to_pylist(), truth_rows["probability"].to_pylist()
    columns: dict[str, list[Any]] = {
        "item_id": item_ids,
        "text": [texts.get(item, "") for item in item_ids],
        "label": [class_names[label] for label in labels] if corpus.several else labels,
        "probability": probability,
    }
    if corpus.several:
        for number, name in enumerate(class_names):
            columns[f"probability of {name}"] = [row[number] for row in truth_rows["probabilities"].to_pylist()]
    else:
        columns |= _group_probabilities(estimates, probability)
    rows = annotation_rows.to_pandas()
    shares = _shares(rows, item_ids, class_names)
    columns |= shares
    for category, groups in people(annotator_rows).items():
        for group in groups.cat.categories:
            inside = rows[rows["annotator_id"].isin(groups.index[groups == group])]
            group_shares = _shares(inside, item_ids, class_names)
            columns |= {_group_column(name, f"{category}: {group}"): column for name, column in group_shares.items()}
    escaped = _write(columns, path)
    return Written(truth_rows.num_rows, 0 if corpus.several else _doubtful(probability, shares["share"]), escaped)


def _doubtful(probabilities: list[float], shares: list[float]) -> int:
    """The number of items that are all but certain although a tenth of their annotators disagree."""
    return sum(
        min(p, 1 - p) < _ALL_BUT_CERTAIN and (share if p < 0.5 else 1 - share) >= _DISSENT
        for p, share in zip(probabilities, shares, strict=True)
    )


def _group_probabilities(estimates: pa.Table, probability: list[float]) -> dict[str, list[float]]:
    """How likely an annotator of each group is to call each item positive."""
    rates: dict[tuple[str, str], dict[str, float]] = {}
    for row in estimates.to_pylist():
        if row["draw"] == 1 and row["kind"] == GROUP:
            rates.setdefault((row["category"], row["name"]), {})[row["response"]] = row["value"]
    columns = {}
    for (category, group), rate in rates.items():
        if len(rate) == 2:
            alpha, beta = (rate[name] for name in RESPONSES)
            columns[f"said by {category}: {group}"] = [alpha * p + (1 - beta) * (1 - p) for p in probability]
    return columns


def _shares(rows: "pd.DataFrame", item_ids: list[str], class_names: tuple[str, ...]) -> dict[str, list[Any]]:
    """The number of labels of each item, and the share of the positive class, or of each of several classes."""
    counts = rows.groupby(["item_id", "label"]).size().unstack(fill_value=0)
    counts = counts.reindex(index=item_ids, columns=range(len(class_names)), fill_value=0)
    totals = counts.sum(axis=1)
    shares = counts.div(totals.where(totals > 0), axis=0)
    columns = (
        {"share": 1}
        if len(class_names) == 2
        else {f"share of {name}": number for number, name in enumerate(class_names)}
    )
    shares_by_column = {
        name: [None if value != value else value for value in shares[n].tolist()] for name, n in columns.items()
    }
    return {"labels": totals.tolist(), **shares_by_column}


def _group_column(name: str, group: str) -> str:
    kind, _, of_class = name.partition(" of ")
    return f"{kind} of {group}" + (f": {of_class}" if of_class else "")


def _write(columns: dict[str, list[Any]], path: Path) -> int:
    """Writes a table; returns the number of escaped cells of CSV."""
    if path.suffix != ".parquet":
        return write_table(path, list(columns), zip(*columns.values(), strict=True))
    with replacing(path) as temporary:
        write_parquet(pa.table(columns), temporary)
    return 0
