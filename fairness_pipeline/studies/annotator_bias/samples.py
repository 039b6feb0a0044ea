"""The items behind the verdicts on groups of annotators. The verdicts' sample is the annotators, not these items."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.annotators.annotator_groups import Labelled, rates_of
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.statistics.welch import PAIR
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.workspace.lake import Key, Lake


def samples(part: AnnotatorBiasPart, lake: Lake, key: Key) -> Samples:
    """Every item of the first draw that both groups of some category labelled, with each group's share of positive
    labels in percent."""
    tables = [lake.read(name, key) for name in ("annotations", "annotators", "annotated_items")]
    labels, who, items = (table.filter(pc.equal(table["draw"], 1)) for table in tables)
    classes = part.corpora[key["corpus"]].labels.class_names
    labelled = Labelled.of(labels, who, len(classes))
    names = [str(name) for name in labelled.labels.items]
    values: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    said: dict[int, tuple[list[str], list[str]]] = {}
    parts = {category: own for own in labelled.against_rest(classes) for category in own.levels}
    for row in lake.read("group_positive_rates", key).to_pylist():
        ending = f": {row['group']} − {row['against']}" if row["contrast"] == PAIR else ""
        category = row["measure"].removesuffix(ending)
        own = parts[category]
        groups = own.levels[category].names
        rates = rates_of(own, category, groups.index(row["group"]), groups.index(row["against"]))
        assert rates is not None
        both = np.full((2, len(names)), np.nan)
        both[:, rates.item] = 100 * rates.a, 100 * rates.b
        values[row["measure"]] = both[0], both[1]
        shares = np.stack([rates.a, rates.b], axis=1)
        for place, counts, own_shares in zip(rates.item.tolist(), rates.counts.tolist(), shares, strict=True):
            for side, count, share in zip(said.setdefault(place, ([], [])), counts, own_shares, strict=True):
                side.append(f"{row['measure']}: {share * count:.0f} of {count} {row['label']}")
    found = [np.isfinite(a) for a, _ in values.values()]
    kept = np.flatnonzero(np.logical_or.reduce(found)) if found else np.empty(0, dtype=np.int64)
    texts = dict(zip(items["item_id"].to_pylist(), items["text"].to_pylist(), strict=True))
    shown = [texts.get(names[place], "") or f"item {names[place]}" for place in kept]
    answers = {
        f"answer_{side}": ["; ".join(said[place][number]) for place in kept.tolist()]
        for number, side in enumerate("ab")
    }
    ids = pa.array([names[place] for place in kept], pa.string())
    return Samples.of(
        {"id": ids, "asked_a": shown, "asked_b": shown, **answers},
        {name: (a[kept], b[kept]) for name, (a, b) in values.items()},
    )
