"""What the viewer shows of a partition: every pair behind its verdicts, with both answers and both values."""

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Samples:
    """The pairs of one partition.

    Args:
        pairs: As `SAMPLE`.
        values: By measure (the name of a row of the significance table) the values of side a and of side b, a pair
            each; NaN where there is none.
    """

    pairs: pa.Table
    values: Mapping[str, tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, columns: Mapping[str, object], values: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> "Samples":
        """From the columns of `SAMPLE`; those that are left out are null."""
        count = len(columns["id"])  # type: ignore[arg-type]
        whole = {name: columns.get(name, pa.nulls(count, pa.string())) for name in SAMPLE.names}
        floats = {name: (np.asarray(a, dtype=float), np.asarray(b, dtype=float)) for name, (a, b) in values.items()}
        return cls(pa.table(whole, schema=SAMPLE), floats)
