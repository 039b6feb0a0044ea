"""The Dagster instance of a workspace: its runs, events and schedules lie beside the data they describe."""

import logging
import os
from pathlib import Path
from string import Template

import dagster as dg

from fairness_pipeline.foundation.files import locked, replacing
from fairness_pipeline.foundation.machine import cores
from fairness_pipeline.project.project import Project

Instance = dg.DagsterInstance
"""For other rooms, which do not import Dagster."""
_LOCK = ".opening.lock"
_CONFIGURATION = Template("""\
# Written by fairness-pipeline; yours to change. A backfill's runs are started by Dagster, so many at once.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: $cores
# One file for the events of all runs; Dagster's default is one file a run.
event_log_storage:
  module: dagster._core.storage.event_log
  class: ConsolidatedSqliteEventLogStorage
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
    """The instance's folder (Dagster's `DAGSTER_HOME`), made ready."""
    folder = project.workspace / "dagster"
    configuration = folder / "dagster.yaml"
    with locked(folder / _LOCK):
        if not configuration.exists():
            with replacing(configuration) as temporary:
                temporary.write_text(_CONFIGURATION.substitute(cores=cores()), encoding="utf-8")
    return folder


def warn_if_elsewhere(project: Project) -> None:
    """Warns if Dagster keeps its records elsewhere, where it would show the workspace as empty."""
    own, used = project.workspace / "dagster", os.environ.get("DAGSTER_HOME")
    if used is None or Path(used).resolve() != own.resolve():
        logging.getLogger("dagster").warning(
            f"DAGSTER_HOME is {used or 'not set'}, but the records of profile '{project.name}' are in {own}, so "
            f"nothing looks made here. Open the UI with: fairness-pipeline ui --profile {project.name}, or set: "
            f"export DAGSTER_HOME={own}"
        )


def open_instance(project: Project) -> dg.DagsterInstance:
    """The workspace's instance, which command, UI and schedules share."""
    folder = home(project)
    os.environ["DAGSTER_HOME"] = str(folder)
    with locked(folder / _LOCK):  # two first runs at once would both make Dagster's tables
        return dg.DagsterInstance.get()
