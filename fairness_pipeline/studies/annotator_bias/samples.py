"""Collects the items behind the verdicts on groups of annotators; the verdicts' sample is the annotators instead."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.annotators.annotator_groups import Labelled, rates_of
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.statistics.welch import PAIR
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.workspace.lake import Key, Lake


def samples(part: AnnotatorBiasPart, lake: Lake, key: Key) -> Samples:
    """Every item of the first draw that both groups of a category labelled, with each group's share of positive labels
    in percent."""
    tables = [lake.read(name, key) for name in ("annotations", "annotators", "annotated_items")]
    labels, annotators, items = (table.filter(pc.equal(table["draw"], 1)) for table in tables)
    classes = part.corpora[key["corpus"]].labels.class_names
    labelled = Labelled.of(labels, annotators, len(classes))
    names = [str(name) for name in labelled.labels.items]
    values: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    phrases: dict[int, tuple[list[str], list[str]]] = {}
    by_category = {category: binary for binary in labelled.against_rest(classes) for category in binary.levels}
    for row in lake.read("group_positive_rates", key).to_pylist():
        ending = f": {row['group']} − {row['against']}" if row["contrast"] == PAIR else ""
        category = row["measure"].removesuffix(ending)
        binary = by_category[category]
        groups = binary.levels[category].names
        rates = rates_of(binary, category, groups.index(row["group"]), groups.index(row["against"]))
        assert rates is not None
        sides = np.full((2, len(names)), np.nan)
        sides[:, rates.item] = 100 * rates.a, 100 * rates.b
        values[row["measure"]] = sides[0], sides[1]
        shares = np.stack([rates.a, rates.b], axis=1)
        for index, counts, item_shares in zip(rates.item.tolist(), rates.counts.tolist(), shares, strict=True):
            for side, count, share in zip(phrases.setdefault(index, ([], [])), counts, item_shares, strict=True):
                side.append(f"{row['measure']}: {share * count:.0f} of {count} {row['label']}")
    compared = [np.isfinite(a) for a, _ in values.values()]
    indices = np.flatnonzero(np.logical_or.reduce(compared)) if compared else np.empty(0, dtype=np.int64)
    texts = dict(zip(items["item_id"].to_pylist(), items["text"].to_pylist(), strict=True))
    asked = [texts.get(names[index], "") or f"item {names[index]}" for index in indices]
    answers = {
        f"answer_{side}": ["; ".join(phrases[index][number]) for index in indices.tolist()]
        for number, side in enumerate("ab")
    }
    ids = pa.array([names[index] for index in indices], pa.string())
    return Samples.of(
        {"id": ids, "asked_a": asked, "asked_b": asked, **answers},
        {name: (a[indices], b[indices]) for name, (a, b) in values.items()},
    )
