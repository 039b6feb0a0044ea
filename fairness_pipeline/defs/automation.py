"""What runs by itself, once it is switched on in the UI: a sensor for changed files, and a weekly schedule.

Both start the job `bring_up_to_date`, which runs the command in a process of its own: a new YAML file is seen there at
once, while this process must be reloaded to show its partitions.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import dagster as dg

from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project


class BringUpToDate(dg.Config):
    """How the command is run: `ask_again` asks endpoints and unpinned models anew."""

    ask_again: bool = False


def bring_up_to_date(profile: str) -> dg.JobDefinition:
    """The job that brings the whole profile up to date, in lineage order."""

    @dg.op
    def run_command(context: dg.OpExecutionContext, config: BringUpToDate) -> None:
        """Runs `fairness-pipeline run` for this profile; each partition it makes is a run of its own."""
        command = [sys.executable, "-m", "fairness_pipeline.cli", "run", "--profile", profile]
        command += ["--ask-again"] if config.ask_again else []
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace"
        ) as process:
            assert process.stdout is not None
            lines = []
            try:
                for line in process.stdout:
                    lines.append(line.rstrip())
                    context.log.info(lines[-1])
            except BaseException:  # the run is being ended: so is the command, which can be run again
                process.terminate()
                raise
        if process.returncode:
            raise dg.Failure("\n".join(lines[-20:]), allow_retries=False)

    @dg.job(
        name="bring_up_to_date",
        description="Makes what is missing or stale in this profile, as `fairness-pipeline run` does.",
    )
    def job() -> None:
        run_command()

    return job


def weekly(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Off until it is switched on. Mondays at three (UTC) it starts the job `bring_up_to_date` for the whole profile.

    Endpoints and unpinned models are asked anew; what comes out as before stands.
    """

    @dg.schedule(
        name="weekly", job=job, cron_schedule="0 3 * * 1", execution_timezone="UTC", description=weekly.__doc__
    )
    def schedule() -> dg.RunRequest:
        return dg.RunRequest(run_config=_configured(ask_again=True))

    return schedule


def changed_files(job: dg.JobDefinition, profile: str) -> dg.SensorDefinition:
    """Off until it is switched on. Looks every minute for a changed or new file, and starts `bring_up_to_date` then.

    It watches YAML files, corpora, folders of models, imported answers and scores, from its first look on. What depends
    on a changed file is made again, and nothing else. A new file's partitions show after Reload.
    """

    @dg.sensor(name="changed_files", job=job, minimum_interval_seconds=60, description=changed_files.__doc__)
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
            yield dg.RunRequest(run_config=_configured(ask_again=False))

    return sensor


def _configured(*, ask_again: bool) -> dict[str, object]:
    return {"ops": {"run_command": {"config": {"ask_again": ask_again}}}}


def _file_states(profile: str) -> dict[str, str]:
    """Time and size of every YAML file, and of every local file that the profile's studies are made from."""
    files = [path for folder in paths.data_folders() for path in folder.glob("*/*.yaml")]
    with suppress(FairnessError):  # a file that cannot be read yet is watched all the same; the run says what is wrong
        files += [path for part in Project(profile).parts.values() for path in part.files()]
    return {str(path): _state(path) for path in files if path.is_file()}


def _state(path: Path) -> str:
    status = path.stat()
    return f"{status.st_mtime_ns} {status.st_size}"
