"""Arrow schemas that say of each column what it holds; written once, and held at every write."""

from typing import NamedTuple

import pyarrow as pa

_TEXT = b"description"


class Column(NamedTuple):
    """A column of a table: its type, what it holds, and whether a row may be without a value."""

    kind: pa.DataType
    text: str
    nullable: bool


def optional(kind: pa.DataType, text: str) -> Column:
    """A column whose rows may have no value."""
    return Column(kind, text, nullable=True)


def schema(*bases: pa.Schema, **columns: tuple[pa.DataType, str] | Column | str) -> pa.Schema:
    """A schema with a text for each column.

    Args:
        bases: Schemas whose columns come first.
        columns: Type and text of each further column, which always has a value unless it is `optional`. A text alone
            describes a column of a base in other words.

    Example:
        >>> table = schema(pair_id=(pa.int64(), "of the pair"), score=optional(pa.float64(), "null where it is empty"))
        >>> describe(schema(table, score="the compound score", side=(pa.string(), "a or b")))
        {'pair_id': 'of the pair', 'score': 'the compound score', 'side': 'a or b'}
    """
    fields = {field.name: field for base in bases for field in base}
    for name, column in columns.items():
        if isinstance(column, str):
            fields[name] = fields[name].with_metadata({_TEXT: column})
        else:
            kind, text, nullable = column if isinstance(column, Column) else Column(*column, nullable=False)
            fields[name] = pa.field(name, kind, nullable, {_TEXT: text})
    return pa.schema(list(fields.values()))


def describe(schema: pa.Schema) -> dict[str, str]:
    """What each column of a schema holds."""
    return {field.name: field.metadata[_TEXT].decode() for field in schema if field.metadata}


def without_texts(schema: pa.Schema) -> pa.Schema:
    """The same without what is said of columns, as it is written to a file: other words are no other content."""
    return pa.schema([field.remove_metadata() for field in schema])
