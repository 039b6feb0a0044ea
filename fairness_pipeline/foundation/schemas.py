"""Arrow schemas with a description of each column. They are written once and enforced at every write."""

from typing import NamedTuple

import pyarrow as pa

_TEXT = b"description"


class Column(NamedTuple):
    """A column of a table: its type, its description, and whether a value may be missing."""

    kind: pa.DataType
    text: str
    nullable: bool


def optional(kind: pa.DataType, text: str) -> Column:
    """A column that may have missing values."""
    return Column(kind, text, nullable=True)


def fields(base: pa.Schema, *names: str) -> dict[str, pa.Field]:
    """Columns of another schema, so that each is described only once."""
    return {name: base.field(name) for name in names}


def schema(*bases: pa.Schema, **columns: tuple[pa.DataType, str] | Column | pa.Field | str) -> pa.Schema:
    """A schema with a description of each column.

    Args:
        bases: Schemas with the first columns.
        columns: The type and description of each further column. A column always has a value, unless it is `optional`.
            A description alone replaces the description of a column from `bases`. See `fields` for columns that
            another schema has too.

    Example:
        >>> table = schema(pair_id=(pa.int64(), "of the pair"), score=optional(pa.float64(), "null where it is empty"))
        >>> describe(schema(table, score="the compound score", side=(pa.string(), "a or b")))
        {'pair_id': 'of the pair', 'score': 'the compound score', 'side': 'a or b'}
        >>> describe(schema(side=(pa.string(), "a or b"), **fields(table, "score")))
        {'side': 'a or b', 'score': 'null where it is empty'}
    """
    fields_by_name = {field.name: field for base in bases for field in base}
    for name, column in columns.items():
        if isinstance(column, str):
            fields_by_name[name] = fields_by_name[name].with_metadata({_TEXT: column})
        elif isinstance(column, pa.Field):
            fields_by_name[name] = column
        else:
            kind, text, nullable = column if isinstance(column, Column) else (*column, False)
            fields_by_name[name] = pa.field(name, kind, nullable, {_TEXT: text})
    return pa.schema(list(fields_by_name.values()))


def describe(schema: pa.Schema) -> dict[str, str]:
    """The description of each column of a schema."""
    return {field.name: field.metadata[_TEXT].decode() for field in schema if field.metadata}


def without_texts(schema: pa.Schema) -> pa.Schema:
    """The schema without descriptions, as it is written to files: new wording does not change the content."""
    return pa.schema([field.remove_metadata() for field in schema])
