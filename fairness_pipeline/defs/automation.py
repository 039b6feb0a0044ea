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

from fairness_pipeline import paths
from fairness_pipeline.defs.resources import current_project
from fairness_pipeline.defs.sentiment_equity import equity_files
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.models.huggingface import folder_files
from fairness_pipeline.project import Project

_KINDS = ("corpora", "dimensions", "models", "profiles", "systems")


class BringUpToDate(dg.Config):
    """How the command is run: `ask_again` asks endpoints and unpinned models anew."""

    ask_again: bool = False


@dg.op
def run_command(context: dg.OpExecutionContext, config: BringUpToDate) -> None:
    """Runs `fairness-pipeline run` for this profile; each partition it makes is a run of its own."""
    profile = current_project().name
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


@dg.job(description="Makes what is missing or stale in this profile, as `fairness-pipeline run` does.")
def bring_up_to_date() -> None:
    """The whole profile, in lineage order."""
    run_command()


def _configured(*, ask_again: bool) -> dict[str, object]:
    return {"ops": {"run_command": {"config": {"ask_again": ask_again}}}}


@dg.schedule(job=bring_up_to_date, cron_schedule="0 3 * * 1", execution_timezone="UTC")
def weekly() -> dg.RunRequest:
    """Mondays at three (UTC): the whole profile, endpoints and unpinned models asked anew."""
    return dg.RunRequest(run_config=_configured(ask_again=True))


@dg.sensor(job=bring_up_to_date, minimum_interval_seconds=60)
def changed_files(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """A changed or new YAML file, corpus, model folder or score file: what depends on it is made again."""
    now = _file_states()
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


def _file_states() -> dict[str, str]:
    """Time and size of every YAML file, and of every local file that the profile's corpora and models are made from."""
    files = [path for kind in _KINDS for path in paths.yaml_files(kind).values()]
    with suppress(FairnessError):  # a file that cannot be read yet is watched all the same; the run says what is wrong
        files += list(_sources(Project(current_project().name)))
    states = {}
    for path in files:
        if path.is_file():
            status = path.stat()
            states[str(path)] = f"{status.st_mtime_ns} {status.st_size}"
    return states


def _sources(project: Project) -> Iterator[Path]:
    for corpus, folder in project.corpora.values():
        with suppress(FairnessError):
            yield from (file.resolve(folder) for file in corpus.files if not file.is_address)
        yield from corpus.dataset.files(folder) if corpus.dataset else ()
        yield from [paths.data_file(corpus.grammar.file)] if corpus.grammar else ()
    for model in project.models.values():
        yield from folder_files(model.huggingface.name) if model.huggingface else ()
    for system in project.systems.values():
        yield from folder_files(system.huggingface.name) if system.huggingface else ()
    yield from project.score_files.values()
    yield from equity_files(project)
    yield from folder_files(project.profile.measures.offence_classifier)
    yield from (project.workspace / "imports").glob("*/*.parquet")
