"""Checks in Dagster's files whether it already knows what a lake holds, which is faster than loading Dagster."""

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import read_yaml
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.state import State
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.workspace.postgres import POSTGRES

COMPARED = "fairness_pipeline_sync"
"""Where the instance keeps the last event, and the state of the lake, at which nothing was left to report."""


_STORAGES = {"event_log_storage": "EventsInOneFile", "run_storage": "RunsInOneFile"}


def is_synchronised(lineage: Lineage, state: State | None = None) -> bool:
    """Whether Dagster's records match the lake, and show no unfinished run and nothing to delete.

    Also False if the records are missing or not in files: then the instance has to be queried.

    Args:
        lineage: The lineage of a profile.
        state: The content of its lake, if it was read already.
    """
    project = lineage.project
    home = project.workspace / "dagster"
    events, runs = home / "event_log.db", home / "history" / "runs.db"
    limits = project.profile.records
    oldest = datetime.now(UTC) - timedelta(days=limits.days)
    if os.environ.get(POSTGRES) or not _in_files_of(home):
        return False
    try:
        ((last,),) = _rows(events, "SELECT max(id) FROM event_logs")
        compared = _rows(runs, "SELECT value FROM kvs WHERE key = ?", COMPARED)
        unfinished = _rows(runs, "SELECT 1 FROM runs WHERE status NOT IN ('SUCCESS', 'FAILURE', 'CANCELED') LIMIT 1")
        ((count, first),) = _rows(runs, "SELECT count(*), min(create_timestamp) FROM runs")
    except sqlite3.Error:
        return False
    if unfinished or count > limits.runs or (first and first < f"{oldest:%Y-%m-%d %H:%M:%S}"):
        return False
    return compared == [(f"{last} {Versions(lineage, state).fingerprint}",)]


def _in_files_of(home: Path) -> bool:
    """Whether `dagster.yaml`, which users may change, keeps runs and events in files of this folder."""
    try:
        configuration = read_yaml(home / "dagster.yaml")
    except (FairnessError, OSError, ValueError):
        return False
    base_dirs = ({"env": "DAGSTER_HOME"}, str(home))
    return "storage" not in configuration and all(
        isinstance(section := configuration.get(name), dict)
        and (section.get("module"), section.get("class")) == ("fairness_pipeline.defs.records", class_name)
        and isinstance(section.get("config"), dict)
        and section["config"].get("base_dir") in base_dirs
        for name, class_name in _STORAGES.items()
    )


def _rows(file: Path, query: str, *values: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query, values).fetchall()
