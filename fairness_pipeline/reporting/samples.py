"""Defines the pairs behind a partition's verdicts, with both answers and both values, for the viewer and for a
comparison with another run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

SAMPLE = pa.schema(
    {
        "id": pa.string(),
        "word": pa.string(),
        "asked_a": pa.string(),
        "answer_a": pa.string(),
        "asked_b": pa.string(),
        "answer_b": pa.string(),
    }
)
"""A pair: its name in the tables, the words that were exchanged, and the question and answer of each side.
`answer_*` is null where no answer is in words; both columns of a side are null where a text has one side only."""


AS_ANSWERED = ", as answered"
"""A suffix of a measure's name: its values in the unchanged answers, where a verdict may rest on another reading."""


@dataclass(frozen=True)
class Samples:
    """The pairs of one partition.

    Args:
        pairs: As `SAMPLE`.
        values: By measure (the name of a row of the significance table) the values of side a and of side b, a pair
            each; NaN where there is none.
        clusters: The clusters of the pairs, for the verdicts and for the change of a gap between two runs. None if the
            verdicts do not rest on these pairs, so that no change is tested over them.
        deciding: The values of measures whose verdicts always rest on another reading than `values` show.
    """

    pairs: pa.Table
    values: Mapping[str, tuple[np.ndarray, np.ndarray]]
    clusters: Sequence[np.ndarray] | None = None
    deciding: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        columns: Mapping[str, object],
        values: Mapping[str, tuple[np.ndarray, np.ndarray]],
        clusters: Sequence[np.ndarray] | None = None,
        deciding: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
    ) -> "Samples":
        """Makes samples from the columns of `SAMPLE`; missing ones are null."""
        count = len(columns["id"])  # type: ignore[arg-type]
        complete = {name: columns.get(name, pa.nulls(count, pa.string())) for name in SAMPLE.names}
        arrays, deciding_arrays = (
            {name: (np.asarray(a, dtype=float), np.asarray(b, dtype=float)) for name, (a, b) in mapping.items()}
            for mapping in (values, deciding or {})
        )
        return cls(pa.table(complete, schema=SAMPLE), arrays, clusters, deciding_arrays)
