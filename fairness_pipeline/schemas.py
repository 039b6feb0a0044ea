"""Arrow schemas, written once and held at every write."""

import pyarrow as pa


def schema(**columns: pa.DataType) -> pa.Schema:
    """A schema whose columns always have a value."""
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])
