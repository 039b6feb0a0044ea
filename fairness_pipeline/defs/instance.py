"""The Dagster instance of a workspace: its runs, events and schedules are kept beside the data they describe."""

import logging
import os
import shutil
from pathlib import Path
from string import Template
from typing import Any

import dagster as dg

from fairness_pipeline.defs.processes import show_signs_of_life
from fairness_pipeline.defs.records import MAKING
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.file_systems import shared_by_hosts
from fairness_pipeline.foundation.files import write_text
from fairness_pipeline.foundation.leases import leased
from fairness_pipeline.foundation.machine import cores
from fairness_pipeline.foundation.yaml_files import read_yaml
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.locks import identity
from fairness_pipeline.workspace.postgres import POSTGRES, check_postgres, describe_database

Instance = dg.DagsterInstance
"""For other packages, which do not import Dagster."""
_LOCK = ".opening"
ONE_MACHINE = "FAIRNESS_ONE_MACHINE"
"""The environment variable that says that no other machine uses a folder that others could mount."""
_IN_POSTGRES = f"""\
# In Postgres, so that several machines can write them.
storage:
  custom:
    module: fairness_pipeline.defs.postgres_records
    class: RecordsInPostgres
    config:
      postgres_url:
        env: {POSTGRES}"""
_IN_FILES = """\
# One file for the events of all runs, whose connections stay open; Dagster's default is one file a run.
event_log_storage:
  module: fairness_pipeline.defs.records
  class: EventsInOneFile
  config:
    base_dir:
      env: DAGSTER_HOME
run_storage:
  module: fairness_pipeline.defs.records
  class: RunsInOneFile
  config:
    base_dir:
      env: DAGSTER_HOME"""
_CONFIGURATION = Template("""\
# Written by fairness-pipeline; yours to change. A backfill's runs are started by Dagster, so many at once.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: $cores
$storage
# What a run prints, without processes that copy it to a terminal.
compute_logs:
  module: fairness_pipeline.defs.records
  class: PrintsInFiles
  config:
    base_dir:
      env: DAGSTER_HOME
# Forks a process that has the libraries loaded; without this entry Dagster starts a new one for each run.
run_launcher:
  module: fairness_pipeline.defs.launcher
  class: WarmRunLauncher
# Runs whose process is gone are marked as failed, and tried once more.
run_monitoring:
  enabled: true
  poll_interval_seconds: 30
run_retries:
  enabled: true
  max_retries: 1
  retry_on_asset_or_op_failure: false
retention:
  schedule:
    purge_after_days: 30
  sensor:
    purge_after_days:
      skipped: 2
      failure: 30
      success: 30
""")


def home(project: Project) -> Path:
    """The instance's folder (Dagster's `DAGSTER_HOME`), made ready.

    Raises:
        FairnessError: the records are elsewhere than `FAIRNESS_POSTGRES` says, or in files that several machines share.
    """
    folder = project.workspace / "dagster"
    configuration = folder / "dagster.yaml"
    with leased(folder / _LOCK):
        if not configuration.exists():
            storage = _IN_POSTGRES if os.environ.get(POSTGRES) else _IN_FILES
            write_text(configuration, _CONFIGURATION.substitute(cores=cores(), storage=storage))
    _check_storage(configuration)
    return folder


def _check_storage(configuration: Path) -> None:
    """Refuses records that are elsewhere than configured, or in a file that several machines share."""
    lines = configuration.read_text(encoding="utf-8").splitlines()
    is_empty = all(not line.strip() or line.lstrip().startswith("#") for line in lines)  # as Dagster allows
    written = {} if is_empty else read_yaml(configuration)
    storage = written.get("storage")
    in_postgres = isinstance(storage, dict) and ("postgres" in storage or "custom" in storage)
    postgres = os.environ.get(POSTGRES)
    if in_postgres and f"env: {POSTGRES}" in "\n".join(lines) and not postgres:
        raise FairnessError(
            f"{configuration}: Dagster's records of this workspace are in Postgres; set {POSTGRES} to its address "
            "(postgresql://user:password@host:5432/database)"
        )
    if postgres and not in_postgres:
        raise FairnessError(
            f"{configuration}: Dagster's records of this workspace are in this folder, but {POSTGRES} is set. Unset "
            f"it, or delete {configuration.parent}: the next command reports all existing partitions to the database, "
            "and only the history of runs is lost"
        )
    kind = shared_by_hosts(configuration.parent)
    if kind and _in_files(written) and os.environ.get(ONE_MACHINE) != "1":
        raise FairnessError(
            f"{configuration.parent} is on a file system that several machines can share ({kind}), where SQLite loses "
            f"Dagster's records. Set {POSTGRES} to a database, or FAIRNESS_HOME to a disk of this machine; if no other "
            f"machine uses this workspace: export {ONE_MACHINE}=1"
        )


def _in_files(configuration: dict[str, Any]) -> bool:
    """Whether Dagster keeps runs in SQLite: its default, also if only the events are named."""
    storage, runs = configuration.get("storage"), configuration.get("run_storage")
    if isinstance(storage, dict):
        return "sqlite" in storage
    module = str(runs.get("module", "")) if isinstance(runs, dict) else ""
    return not isinstance(runs, dict) or "sqlite" in module.lower() or module == "fairness_pipeline.defs.records"


def _check_database(locks: Path, profile: str) -> None:
    """Refuses a database other than the one that keeps this workspace's locks: two would grant a lock twice."""
    database = check_postgres(identity(locks), profile)
    if identity(locks, "database", database) != database:
        raise FairnessError(
            f"{POSTGRES}: {describe_database()} is another database than the one that keeps this workspace's locks and "
            f"records. Name that one; or, if nobody uses it any more, delete {locks / '.database'}: the next command "
            "reports all existing partitions to the new database"
        )


def warn_if_elsewhere(project: Project) -> None:
    """Warns if Dagster keeps its records elsewhere, where it would show the workspace as empty."""
    expected, used = project.workspace / "dagster", os.environ.get("DAGSTER_HOME")
    if used is None or Path(used).resolve() != expected.resolve():
        logging.getLogger("dagster").warning(
            f"DAGSTER_HOME is {used or 'not set'}, but the records of profile '{project.name}' are in {expected}, so "
            f"nothing looks made here. Open the UI with: fairness-pipeline ui --profile {project.name}, or set: "
            f"export DAGSTER_HOME={expected}"
        )


def open_instance(project: Project) -> dg.DagsterInstance:
    """The workspace's instance, which command, UI and schedules share.

    Raises:
        FairnessError: Postgres cannot be used, or the records are not where they should be.
    """
    folder = home(project)
    os.environ["DAGSTER_HOME"] = str(folder)
    show_signs_of_life(project.workspace)
    if os.environ.get(POSTGRES):
        _check_database(project.workspace / "locks", project.name)
    with leased(folder / _LOCK):  # two first runs at once would both make Dagster's tables
        for leftover in folder.glob(f"{MAKING}*"):  # of a first run that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        return dg.DagsterInstance.get()


def record_errors() -> tuple[type[Exception], ...]:
    """The errors that Dagster's records raise where they cannot be written, in a file or in Postgres."""
    from sqlalchemy.exc import SQLAlchemyError

    if not os.environ.get(POSTGRES):
        return OSError, SQLAlchemyError
    import psycopg2
    from dagster_postgres.utils import DagsterPostgresException

    return OSError, SQLAlchemyError, DagsterPostgresException, psycopg2.Error
