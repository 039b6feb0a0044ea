"""The pairs behind a partition's verdicts: every pair with both answers and both values, for the viewer and for a
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
"""A pair: its name in the tables, the words that were exchanged, and what each side was asked and has answered.
`answer_*` is null where nothing is answered in words; both columns of a side are, where a text has one side only."""


AS_ANSWERED = ", as answered"
"""Behind the name of a measure: its values in the answers as they are, where a verdict may rest on another reading."""


@dataclass(frozen=True)
class Samples:
    """The pairs of one partition.

    Args:
        pairs: As `SAMPLE`.
        values: By measure (the name of a row of the significance table) the values of side a and of side b, a pair
            each; NaN where there is none.
        clusters: How pairs move together, as the verdicts take it; the change of a gap between two runs takes it so,
            too. None if the verdicts' samples are not these pairs, so that no change is tested over them.
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
        """From the columns of `SAMPLE`; those that are left out are null."""
        count = len(columns["id"])  # type: ignore[arg-type]
        whole = {name: columns.get(name, pa.nulls(count, pa.string())) for name in SAMPLE.names}
        shown, decide = (
            {name: (np.asarray(a, dtype=float), np.asarray(b, dtype=float)) for name, (a, b) in given.items()}
            for given in (values, deciding or {})
        )
        return cls(pa.table(whole, schema=SAMPLE), shown, clusters, decide)
