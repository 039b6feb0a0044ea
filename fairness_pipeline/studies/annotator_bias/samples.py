"""The items behind the verdicts on groups of annotators, for the viewer."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.measures.annotators.annotator_groups import Labelled, rates_of
from fairness_pipeline.reporting.samples import Samples
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
    for own in labelled.against_rest(classes):
        for category in own.sides:
            rates = rates_of(own, category)
            if rates is not None:
                both = np.full((2, len(names)), np.nan)
                both[:, rates.item] = 100 * rates.a, 100 * rates.b
                values[category] = both[0], both[1]
    found = [np.isfinite(a) for a, _ in values.values()]
    kept = np.flatnonzero(np.logical_or.reduce(found)) if found else np.empty(0, dtype=np.int64)
    texts = dict(zip(items["item_id"].to_pylist(), items["text"].to_pylist(), strict=True))
    shown = [texts.get(names[place], "") for place in kept]
    return Samples.of(
        {"id": pa.array([names[place] for place in kept], pa.string()), "asked_a": shown, "asked_b": shown},
        {name: (a[kept], b[kept]) for name, (a, b) in values.items()},
    )
