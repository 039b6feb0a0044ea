"""Metadata of an asset for Dagster's UI: schema, kinds, figures, tables and pictures."""

import base64
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.foundation.plain_text import markdown_table
from fairness_pipeline.foundation.schemas import describe
from fairness_pipeline.lineage.assets import Asset, Glance, Result
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.statistics.comparison import COMPARISON
from fairness_pipeline.workspace.lake import Card

KINDS = {"table": {"python", "parquet"}, "checkpoint": {"python", "pytorch"}, "document": {"python", "html"}}
_SHOWN_ROWS = 20
_SHOWN_ENTRIES = 25


def definition_metadata(shown: Shown, asset: Asset) -> dict[str, Any]:
    """The metadata of an asset before it is made: its code and workspace, and a table's columns with their
    descriptions and origins."""
    schema = asset.schema
    known = code_references(asset.function) | {"workspace": dg.MetadataValue.path(str(shown.lineage.project.workspace))}
    if schema is None:
        return known
    texts = describe(schema)
    columns = [
        dg.TableColumn(
            name=column.name,
            type=str(column.type),
            description=texts.get(column.name),
            constraints=dg.TableColumnConstraints(nullable=column.nullable),
        )
        for column in schema
    ]
    lineage = dg.TableColumnLineage(
        {
            column: [dg.TableColumnDep(shown.names.asset(source), column) for source in sources]
            for column, sources in copied_columns(shown.lineage, asset).items()
        }
    )
    return {
        **known,
        "dagster/column_schema": dg.TableSchema(columns=columns),
        "dagster/column_lineage": lineage,
    }


def copied_columns(lineage: Lineage, asset: Asset) -> dict[str, list[str]]:
    """The columns whose values are those of the same column of other tables, and these tables.

    A schema takes over the fields of another where it holds the same (`schemas.fields`): name, type and description are
    then the same. The columns of comparisons are not copied, though many tables have them.
    """
    copied: dict[str, list[str]] = {}
    for source in asset.sources:
        for column in asset.schema or ():
            is_candidate = (
                column.metadata and not pa.types.is_floating(column.type) and column.name not in COMPARISON.names
            )
            source_schema = lineage.assets[source].schema or pa.schema([])
            index = source_schema.get_field_index(column.name)
            if is_candidate and index >= 0 and source_schema.field(index).equals(column, check_metadata=True):
                copied.setdefault(column.name, []).append(source)
    return copied


def code_references(function: Callable[..., object]) -> dict[str, Any]:
    """Where a function is written."""
    code = inspect.unwrap(function).__code__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # pinned in pyproject.toml
        reference = dg.LocalFileCodeReference(file_path=code.co_filename, line_number=code.co_firstlineno)
        return {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[reference])}


def card_metadata(card: Card, path: Path, workspace: Path) -> dict[str, Any]:
    """The metadata that the lake keeps of a partition that was made under another or an earlier instance."""
    figures = {name: _value(figure) for name, figure in card.figures.items() if figure is not None}
    return figures | {"file": _file(path, workspace)}


def run_metadata(result: Result, glance: Glance, path: Path, workspace: Path, seconds: float) -> dict[str, Any]:
    """The metadata of one run: words and pictures first, because a person looks for these."""
    metadata: dict[str, Any] = {"found": dg.MetadataValue.md(harmless(glance.text))} if glance.text else {}
    for name, png in glance.pictures.items():
        metadata[name] = dg.MetadataValue.md(f"![{name}](data:image/png;base64,{base64.b64encode(png).decode()})")
    metadata |= {name: dg.MetadataValue.md(_markdown(table)) for name, table in result.tables.items() if table.num_rows}
    metadata |= {name: _value(figure) for name, figure in result.figures.items() if figure is not None}
    if isinstance(result.content, pa.Table):
        metadata["dagster/row_count"] = result.content.num_rows
    if path.is_file():
        metadata["bytes"] = path.stat().st_size
    return metadata | {"seconds": round(seconds, 2), "file": _file(path, workspace)}


def _file(path: Path, workspace: Path) -> str:
    """A file's path in the workspace, which stays true in a copy."""
    return path.relative_to(workspace).as_posix()


def harmless(markdown: str) -> str:
    """Markdown without tags and pictures, so that text quoted from a corpus makes no browser run or fetch anything."""
    return markdown.replace("<", "&lt;").replace("![", "!\\[")


def _value(figure: Any) -> Any:
    if isinstance(figure, dict):
        return dg.MetadataValue.json(dict(list(figure.items())[:_SHOWN_ENTRIES]))
    if isinstance(figure, float):
        return float(f"{figure:.6g}")  # the lake keeps all digits
    return dg.MetadataValue.json(figure) if isinstance(figure, list) else figure


def _markdown(table: pa.Table) -> str:
    return markdown_table(table.column_names, [row.values() for row in table.slice(0, _SHOWN_ROWS).to_pylist()])
