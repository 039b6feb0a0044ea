"""Whether Dagster knows already what a lake holds, read from its files: to load Dagster takes longer than to look."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.workspace.postgres import POSTGRES

COMPARED = "fairness_pipeline_sync"
"""Where the instance keeps the last event, and the state of the lake, at which nothing was left to report."""


def is_told(lineage: Lineage) -> bool:
    """Whether Dagster's records show the lake as it is and no run as unfinished.

    False also where they are not in files, or not there: then the instance has to be asked.
    """
    home = lineage.project.workspace / "dagster"
    events, runs = home / "event_log.db", home / "history" / "runs.db"
    if os.environ.get(POSTGRES):
        return False
    try:
        says = (home / "dagster.yaml").read_text(encoding="utf-8")
        if "EventsInOneFile" not in says or "RunsInOneFile" not in says:  # it is the user's to change
            return False
        ((last,),) = _rows(events, "SELECT max(id) FROM event_logs")
        compared = _rows(runs, "SELECT value FROM kvs WHERE key = ?", COMPARED)
        unfinished = _rows(runs, "SELECT 1 FROM runs WHERE status NOT IN ('SUCCESS', 'FAILURE', 'CANCELED') LIMIT 1")
    except (OSError, sqlite3.Error):
        return False
    return not unfinished and compared == [(f"{last} {Versions(lineage).fingerprint}",)]


def _rows(file: Path, query: str, *values: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query, values).fetchall()
