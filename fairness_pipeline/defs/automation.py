"""Defines what runs by itself: sensors, schedules and jobs.

Always: a sensor that reports to Dagster what the lake holds. Once switched on in the UI: automation, which makes what
is out of date in runs of Dagster's own; a sensor for changed files and a weekly schedule, which start the job
`bring_up_to_date`. The job runs the command in its own process, which sees a new YAML file at once, while this process
must be reloaded to show its partitions.
"""

import json
import os
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import dagster as dg

from fairness_pipeline.defs.assets import ONLY_IF_STALE
from fairness_pipeline.defs.dagster_internals import AssetKeyPartitionKey
from fairness_pipeline.defs.names import Names
from fairness_pipeline.defs.partitions import to_dagster
from fairness_pipeline.defs.processes import mark_ended
from fairness_pipeline.defs.sync import sync
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.notifications import Message, NotifySettings, notify, shortened
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.foundation.processes import PARENT
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.workspace.lake import Key

_TICK = 30  # seconds
_FAST_TICK = 10
_OP = "run_command"


_LIMITS = ("study", "dimension", "model", "corpus", "condition")
_ALL = "(all)"
"""No key of a profile can be this; a condition may be called `all`."""


def command_op(lineage: Lineage, names: Names) -> dg.OpDefinition:
    """The op that runs `fairness-pipeline run` for a profile; each partition that it makes is a separate run.

    `ask_again` asks endpoints and unpinned models again. `study`, `dimension`, `model`, `corpus` and `condition` limit
    the run, also to partitions made only on request; `everything` includes all of these.
    """
    profile, values = lineage.project.name, _values(lineage)
    # Dagster confuses two enumerations of one name, such as those of another profile in this process.
    enums = {name: dg.Enum(f"{profile}_{name}", [*map(dg.EnumValue, choices)]) for name, choices in values}
    schema = {name: dg.Field(enum, default_value=_ALL) for name, enum in enums.items()}
    switches = {name: dg.Field(bool, default_value=False) for name in ("ask_again", "everything")}

    @dg.op(name=names.other(_OP), description=command_op.__doc__, config_schema=schema | switches)
    def run_command(context: dg.OpExecutionContext) -> None:
        command = [sys.executable, "-m", "fairness_pipeline.cli", "run", "--profile", profile]
        command += options(context.op_config)
        environment = {**os.environ, PARENT: context.run_id}
        with subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None
            lines = deque[str](maxlen=20)
            try:
                for line in process.stdout:
                    lines.append(line.rstrip())
                    context.log.info(lines[-1])
            except BaseException:  # the run is being ended, so end the command, which can be run again
                process.terminate()
                raise
        if process.returncode:
            raise dg.Failure("\n".join(lines), allow_retries=False)

    return run_command


def options(config: Mapping[str, Any]) -> list[str]:
    """The options of the command, from the configuration of the op."""
    limits = [(name, config[name]) for name in _LIMITS if config.get(name, _ALL) != _ALL]
    switched = {"everything": "--all", "ask_again": "--ask-again"}
    return [f"--{name}={value}" for name, value in limits] + [
        switch for name, switch in switched.items() if config.get(name)
    ]


def bring_up_to_date(lineage: Lineage, names: Names, command: dg.OpDefinition) -> dg.JobDefinition:
    """The job that brings the whole profile up to date, in lineage order."""
    every: dict[str, Any] = {name: _ALL for name, _ in _values(lineage)}
    return dg.GraphDefinition(name=names.other("bring_up_to_date"), node_defs=[command]).to_job(
        description="Makes what is missing or stale in this profile, as `fairness-pipeline run` does.",
        config=_configured(command.name, every),
        executor_def=dg.in_process_executor,
    )


def audits(lineage: Lineage, names: Names, command: dg.OpDefinition) -> list[dg.JobDefinition]:
    """A job for each study whose partitions are its audits, such as a model in a dimension.

    Dagster refuses a job of assets whose partitions are of several kinds, and what an audit needs upstream is.
    """
    return [_audits(lineage, study, names, command) for study in lineage.project.studies if lineage.keys(study.table)]


def _audits(lineage: Lineage, study: AnyStudy, names: Names, command: dg.OpDefinition) -> dg.JobDefinition:
    keys = {str(to_dagster(key)): key for key in lineage.keys(study.table)}

    def of_partition(name: str) -> dict[str, Any]:
        # A corpus that is the subject is passed as the model, as in the command.
        key = {"model" if axis == study.subject else axis: value for axis, value in keys[name].items()}
        return _configured(command.name, {"study": study.name, **key})

    return dg.GraphDefinition(name=names.other(f"audit_{study.name}"), node_defs=[command]).to_job(
        description=f"{study.title}: brings one audit ({' and '.join(study.axes)}) up to date, with all that it needs "
        "upstream and the report.",
        config=dg.PartitionedConfig(
            dg.StaticPartitionsDefinition([*keys]), run_config_for_partition_key_fn=of_partition
        ),
        executor_def=dg.in_process_executor,
    )


def _values(lineage: Lineage) -> list[tuple[str, list[str]]]:
    """The possible values of each limit."""
    parts = lineage.project.parts
    subjects = [name for part in parts.values() for name in part.subjects]
    known = {"study": list(parts), "model": subjects}
    for axis in _LIMITS:
        known.setdefault(axis, [value for part in parts.values() for value in part.axes.get(axis, ())])
    return [(name, [_ALL, *dict.fromkeys(known[name])]) for name in _LIMITS if known[name]]


def weekly(job: dg.JobDefinition, names: Names) -> dg.ScheduleDefinition:
    """Off until it is switched on. Mondays at three (UTC) it starts the job `bring_up_to_date` for the whole profile.

    Endpoints and unpinned models are asked again; results that come out the same stand.
    """

    @dg.schedule(
        name=names.other("weekly"),
        job=job,
        cron_schedule="0 3 * * 1",
        execution_timezone="UTC",
        description=weekly.__doc__,
    )
    def schedule() -> dg.RunRequest:
        return dg.RunRequest(run_config=_configured(names.other(_OP), {"ask_again": True}))

    return schedule


def changed_files(job: dg.JobDefinition, profile: str, names: Names) -> dg.SensorDefinition:
    """Off until it is switched on. Looks every minute for a changed or new file, and starts `bring_up_to_date` then.

    It watches YAML files, corpora, folders of models, imported answers and scores, from its first look on. What depends
    on a changed file is made again, and nothing else. A new file's partitions show after Reload.
    """

    @dg.sensor(
        name=names.other("changed_files"), job=job, minimum_interval_seconds=60, description=changed_files.__doc__
    )
    def sensor(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        now = _file_states(profile)
        before: dict[str, str] = json.loads(context.cursor) if context.cursor else {}
        context.update_cursor(json.dumps(now))
        changed = sorted(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))
        if not before:
            yield dg.SkipReason(f"{len(now)} files are watched from now on")
        elif not changed:
            yield dg.SkipReason(f"none of {len(now)} files has changed")
        else:
            context.log.info(f"changed: {', '.join(changed)}")
            yield dg.RunRequest()

    return sensor


def lake(profile: str, names: Names) -> dg.SensorDefinition:
    """Reports to Dagster every half minute what it does not know of the lake: what was made without it or has changed.

    In the workspace's own records it also marks runs whose process is gone as failed, so that they do not block the
    queue.
    """

    @dg.sensor(
        name=names.other("lake"),
        minimum_interval_seconds=_TICK,
        description=lake.__doc__,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        project = Project(profile)
        is_project_instance = (
            Path(context.instance.root_directory).resolve() == (project.workspace / "dagster").resolve()
        )
        ended = mark_ended(context.instance, project.workspace) if is_project_instance else 0
        report = sync(Lineage(project), context.instance, names)
        return dg.SkipReason(
            f"reported {number_of(report.made, 'partition')} made outside Dagster and {report.versions} changed; "
            f"marked {number_of(ended, 'dead run')}"
        )

    return sensor


def failures(
    profile: str, settings: NotifySettings, names: Names, jobs: Collection[str], assets: Collection[dg.AssetKey]
) -> dg.SensorDefinition:
    """Notifies whoever the profile's `notify` names of each failed run of Dagster's. Runs of the command notify
    themselves.

    Args:
        profile: The profile's key.
        settings: Its `notify` when the definitions are loaded, because a later profile may be what fails.
        names: The names of its definitions.
        jobs: The names of its jobs.
        assets: The keys of its assets; runs of other assets are ignored.
    """
    steps = {"__".join(key.path) for key in assets}

    @dg.run_failure_sensor(
        name=names.other("failures"),
        minimum_interval_seconds=_TICK,
        description="Tells whoever the profile's `notify` names of each run that fails.",
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def sensor(context: dg.RunFailureSensorContext) -> None:
        run, failed = context.dagster_run, context.get_step_failure_events()
        keys = (run.asset_selection or frozenset()) & {*assets}
        if not (run.job_name in jobs or keys or any(event.step_key in steps for event in failed)):
            return
        partition = run.tags.get("dagster/partition", "")
        subject = ", ".join(sorted(key.path[-1] for key in keys)) or run.job_name
        reasons = [event.message or "" for event in failed] if settings.texts else []
        link = f"{settings.link}/runs/{run.run_id}" if settings.link else f"run {run.run_id} in Dagster's UI"
        title = f"a run failed: {' '.join(filter(None, (subject, partition)))}"
        notify(settings, Message("failure", profile, title, shortened(reasons), link))

    return sensor


@dataclass(frozen=True)
class OutOfDate(dg.AutomationCondition[dg.AssetKey]):
    """Partitions that `run` would make now: out of date, made by default, and with nothing upstream out of date."""

    profile: str

    @property
    def description(self) -> str:
        """For the UI."""
        return "out of date, and nothing that it is made from is"

    @property
    def name(self) -> str:
        """For the UI."""
        return "out_of_date"

    def evaluate(self, context: dg.AutomationContext[dg.AssetKey]) -> dg.AutomationResult[dg.AssetKey]:
        """Called at each tick for each asset; the lake is read once per tick."""
        name = context.key.path[-1]
        ready = _ready(self.profile, context.evaluation_time)
        partitions = {to_dagster(key) for asset, key in ready if asset == name}
        subset = context.asset_graph_view.get_asset_subset_from_asset_partitions(
            context.key, {AssetKeyPartitionKey(context.key, partition) for partition in partitions}
        )
        return dg.AutomationResult(context, true_subset=context.candidate_subset.compute_intersection(subset))


@lru_cache(maxsize=4)  # one entry per profile
def _ready(profile: str, tick: datetime) -> list[tuple[str, Key]]:
    return Versions(Lineage(Project(profile))).ready


def condition(profile: str) -> dg.AutomationCondition[dg.AssetKey]:
    """Returns the condition that makes what is out of date; what failed waits until somebody runs it again."""
    out_of_date = OutOfDate(profile=profile)
    return out_of_date & ~dg.AutomationCondition.in_progress() & ~dg.AutomationCondition.execution_failed()


def automation(names: Names, keys: Sequence[dg.AssetKey]) -> dg.AutomationConditionSensorDefinition:
    """Off until it is switched on. Makes what is out of date, wave by wave, in runs that queue and can be cancelled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # pinned in pyproject.toml
        return dg.AutomationConditionSensorDefinition(
            names.other("automation"),
            target=dg.AssetSelection.assets(*keys),
            use_user_code_server=True,  # the condition is this project's own
            minimum_interval_seconds=_FAST_TICK,
            run_tags={ONLY_IF_STALE: "true"},
            description=automation.__doc__,
        )


def _configured(op: str, config: Mapping[str, Any]) -> dict[str, Any]:
    switches = {"ask_again": False, "everything": False}
    return {"ops": {op: {"config": switches | dict(config)}}}


def _file_states(profile: str) -> dict[str, str]:
    """Time and size of every YAML file, and of every local file that the profile's studies are made from."""
    files = [path for folder in paths.data_folders() for path in folder.glob("*/*.yaml")]
    with suppress(FairnessError):  # an unreadable file is watched nevertheless; the run reports the error
        files += Lineage(Project(profile)).files()
    return {str(path): _state(path) for path in files if path.is_file()}


def _state(path: Path) -> str:
    status = path.stat()
    return f"{status.st_mtime_ns} {status.st_size}"
