"""`sql`: queries the tables."""

import argparse
import re
import sys
from typing import TYPE_CHECKING

from fairness_pipeline.cli.arguments import add_format
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import some

if TYPE_CHECKING:
    from fairness_pipeline.lineage.assets import Asset
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.state import State
    from fairness_pipeline.workspace.lake import Lake


def add(command: Command) -> None:
    """Adds the command."""
    sql = command(
        "sql",
        _sql,
        "Query the tables with SQL (DuckDB); nothing can be written.",
        example="\"select * from dialogue_significance where verdict = 'biased'\"",
    )
    sql.add_argument("query", help="for example: select * from dialogue_significance where dimension = 'gender'")
    sql.add_argument("--all", action="store_true", help="also what is stale, or no longer in the profile")
    add_format(sql)


def _sql(arguments: argparse.Namespace) -> int:
    import duckdb

    from fairness_pipeline.cli.console import print_rows
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.state import State
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.reporting.results import audits_of
    from fairness_pipeline.workspace.lake import Lake
    from fairness_pipeline.workspace.sql import connect, reading

    project = Project(arguments.profile)
    lake, lineage = Lake(project.workspace), Lineage(project)
    words = set(re.findall(r"\w+", arguments.query.lower()))
    left_out = [] if arguments.all else _outdated(lineage, lake, State(lineage, lake), words)
    if left_out:
        names = [name for name, _ in left_out]
        print(
            f"left out (stale, or no longer in the profile): {some(names, 5)}; --all shows them",
            file=sys.stderr,
        )
    judging = [name for name, asset in lineage.assets.items() if name in words and _judges(asset)]
    for study in project.studies:
        tables = ", ".join(name for name in judging if lineage.study_of[name] == study.name)
        audits = audits_of(study, project.parts[study.name], lake) if tables else []
        if degenerate := [f"{audit.name} ({audit.degenerate})" for audit in audits if audit.degenerate]:
            print(f"nothing to judge, whatever the verdict in {tables}: {'; '.join(degenerate)}", file=sys.stderr)
    try:
        with connect(project.workspace, leave_out=[path for _, path in left_out]) as connection:
            result = connection.execute(reading(connection, arguments.query))
            names = _distinct([column[0] for column in result.description or []])
            rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    except duckdb.CatalogException as error:
        existing = ", ".join(lake.tables()) or "none"
        raise FairnessError(
            f"the query failed: {str(error).splitlines()[0]}\n  (tables made so far: {existing}; the others come with: "
            f"fairness-pipeline run --profile {project.name})"
        ) from None
    except duckdb.Error as error:
        raise FairnessError(f"the query failed: {error}") from None
    print_rows(names, rows, arguments.format)
    return 0


def _judges(asset: "Asset") -> bool:
    """Whether a table judges a subject as fair or biased, or says that a debiasing method worked."""
    return asset.schema is not None and any(name.startswith(("verdict", "effect")) for name in asset.schema.names)


def _outdated(lineage: "Lineage", lake: "Lake", state: "State", words: set[str]) -> list[tuple[str, str]]:
    """Finds the partitions of the tables among a query's words that are stale or that the profile no longer has.

    Returns:
        For each partition, its name for readers and its file.
    """
    outdated = []
    for table in lake.tables():
        if table.lower() in words:
            current = {
                str(lake.table_path(table, key))
                for key in (lineage.keys(table) if table in lineage.assets else ())
                if not state.stale(table, key)
            }
            for path in lake.partitions(table):
                if str(path) not in current:
                    partition = " ".join(part.partition("=")[2] for part in path.parts if "=" in part)
                    outdated.append((f"{table} {partition}".strip(), str(path)))
    return outdated


def _distinct(names: list[str]) -> list[str]:
    """Returns column names, numbered when repeated, so that a join keeps all its columns."""
    uses: dict[str, int] = {}
    distinct = []
    for name in names:
        uses[name] = uses.get(name, 0) + 1
        distinct.append(name if uses[name] == 1 else f"{name}_{uses[name]}")
    return distinct
