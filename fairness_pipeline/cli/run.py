"""`run`: makes what is missing or stale, then prints the verdicts."""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairness_pipeline.cli.arguments import WORSE, add_selection, selection
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.cli.run_options import add_run_options, asks_anew, environment_of_options
from fairness_pipeline.engines.settings import ray_of
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of, some, visible

if TYPE_CHECKING:
    from fairness_pipeline.cli.console import RunDisplay
    from fairness_pipeline.cli.gate import Examined
    from fairness_pipeline.cli.standing import Standing
    from fairness_pipeline.defs.instance import Instance
    from fairness_pipeline.lineage.plan import Outcome, Plan, Selection
    from fairness_pipeline.lineage.units import Workers
    from fairness_pipeline.project.project import Project
    from fairness_pipeline.reporting.rule import Gate

_LITTLE_SPACE = 1 << 20  # bytes
_FEW_STEPS = 40  # partitions
_LONGEST = 190  # characters
_MEMORY_OF_WORKER = 3 << 29  # bytes; docs/architecture.md, "The lake"


def add(command: Command) -> None:
    """Adds the command."""
    run = command(
        "run",
        _run,
        "Make what is missing or stale, then print the verdicts.",
        example="--dimension gender --dry-run",
    )
    add_selection(run)
    run.add_argument("--all", action="store_true", help="also make what the profile marks as on_request")
    run.add_argument("--select", metavar="ASSET", help="only this asset and what it is made from")
    run.add_argument(
        "--force", action="store_true", help="also remake what is up to date; with --select that asset alone"
    )
    run.add_argument("--dry-run", action="store_true", help="say what would run and why, and stop")
    add_run_options(run)


def _run(arguments: argparse.Namespace) -> int:
    with environment_of_options(arguments):
        return _plan_and_run(arguments)


def _plan_and_run(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.project.project import Project

    if arguments.select and arguments.fail_on:
        raise FairnessError("--fail-on needs verdicts, but --select may produce none; leave one out")
    if arguments.ask_again and arguments.select:
        raise FairnessError("--ask-again queries whole models; leave out --select")
    project = Project(arguments.profile)
    try:
        return _run_project(project, arguments)
    except FairnessError as error:
        if (settings := project.profile.notify) and not arguments.dry_run:
            _notify(project, "it could not go on", [str(error)] if settings.texts else [])
        raise


def _run_project(project: "Project", arguments: argparse.Namespace) -> int:
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.plan import Plan

    chosen = selection(arguments)
    if not arguments.dry_run:
        seal_older_imports(project)
    lineage = Lineage(project)
    plan = Plan(lineage, chosen, force=arguments.force)
    anew = asks_anew(arguments) or (arguments.force and not arguments.select and not arguments.dimension)
    if with_new_epochs(plan, [arguments.model] if arguments.model else None, arguments, anew=anew):
        plan = Plan(lineage, chosen, force=arguments.force)
    if arguments.dry_run:
        for step in plan.stale:
            reason = step.reason or ""
            print(visible(f"{step.label}: {reason if len(reason) <= _LONGEST else reason[: _LONGEST - 3] + '...'}"))
        print_format(plan)
        requests = _requests(plan) or "no request to an endpoint"
        print(f"{len(plan.stale)} of {len(plan.steps)} partitions would run; {requests}")
        for study in project.studies:
            if chosen.study in (None, study.name):
                for line in study.power_forecast(project.parts[study.name], plan.lake, chosen.dimension):
                    print(visible(line))
        return 0
    print_format(plan)
    print_requests(plan)
    return bring_up_to_date(project, chosen, plan, arguments)


def with_new_epochs(plan: "Plan", only: list[str] | None, arguments: argparse.Namespace, *, anew: bool) -> bool:
    """Begins query epochs for answers that a gate must not reuse or that are too old, and prints which answers of a
    stopped run are used. Returns whether any was begun, so that the plan changes.

    Raises:
        FairnessError: `--reuse` is given, and answers are older than the profile allows.
    """
    from fairness_pipeline.lineage.answer_ages import age_in_words
    from fairness_pipeline.lineage.query_epochs import begin_query_epochs, too_old_answers

    old, keep = too_old_answers(plan), not getattr(arguments, "dry_run", False)
    if old and arguments.reuse:
        ages = ", ".join(f"those of {name} are {age_in_words(age)}" for name, age in old.items())
        raise FairnessError(
            f"--reuse: {ages}, older than max_answer_age in {plan.project.path.name} allows; leave out --reuse"
        )
    if not anew and not old:
        return False
    resume = not (arguments.ask_again and arguments.fail_on)
    continued = begin_query_epochs(plan, only if anew else list(old), keep=keep, resume=resume)
    for name, began in continued.items():
        print(
            f"{name}: uses the answers of a run that began at {began:%H:%M:%S} UTC and was stopped; if {name} has "
            "changed since, add --ask-again to --fail-on, which asks all of them anew",
            flush=True,
        )
    return True


def seal_older_imports(project: "Project") -> None:
    """Seals the imports of an earlier version, and prints their number."""
    from fairness_pipeline.workspace.imports import seal_earlier

    if count := seal_earlier(project.workspace):
        print(f"{number_of(count, 'file')} imported by an earlier version: sealed as they are now", flush=True)


def print_format(plan: "Plan") -> None:
    """Prints how many partitions of an older format are read unchanged, and which are made again."""
    if not plan.unsealed:
        return
    again = list(dict.fromkeys(step.name for step in plan.unsealed if step.reason))
    kept = sum(step.reason is None for step in plan.unsealed)
    remade = f"; {number_of(len(plan.unsealed) - kept, 'partition')} to be made again: {some(again)}" if again else ""
    print(f"{plan.lake.root}: made by an earlier version, without seals: {number_of(kept, 'partition')} read as "
          f"{'it is' if kept == 1 else 'they are'}{remade}", flush=True)  # fmt: skip


def print_requests(plan: "Plan") -> None:
    """Prints how many requests to endpoints will be made, and how long they may take, before any is made."""
    if requests := _requests(plan):
        steps = [step for step in plan.stale if plan.lineage.assets[step.name].asks]
        seconds = sum(map(plan.expected, steps))
        known = all(plan.durations.knows(step.name) for step in steps)
        duration = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
        time = (
            f"about {duration} at the pace of earlier runs" if known else "the time is estimated once some are answered"
        )
        print(f"{requests}; {time}; Ctrl-C stops, and what was answered is kept", flush=True)


def bring_up_to_date(project: "Project", chosen: "Selection", plan: "Plan", arguments: argparse.Namespace) -> int:
    """Runs a plan with output, prints the verdicts and applies the gate; returns the exit status."""
    from fairness_pipeline.cli.check import check_as_written
    from fairness_pipeline.cli.console import RunDisplay, print_verdicts
    from fairness_pipeline.cli.for_machines import write_for_machines
    from fairness_pipeline.cli.gate import describe_blind_verdicts, examine, gate, row_names
    from fairness_pipeline.cli.rule import REFUSED
    from fairness_pipeline.cli.standing import Standing
    from fairness_pipeline.defs.at_rest import is_synchronised
    from fairness_pipeline.lineage.query_epochs import end_query_epochs
    from fairness_pipeline.lineage.state import State
    from fairness_pipeline.reporting import history
    from fairness_pipeline.reporting.answers import answer_ages
    from fairness_pipeline.reporting.baselines import find_baseline, named_with_hash, write_baseline
    from fairness_pipeline.reporting.index import write_index
    from fairness_pipeline.reporting.rule import Gate, Rule

    if arguments.fail_on:
        row_names(plan, arguments.measures)  # refuses an unknown name before anything is made
    key = Path(arguments.baseline_key) if arguments.baseline and arguments.baseline_key else None
    gated = WORSE in (arguments.fail_on or ())
    baseline = find_baseline(project, arguments.baseline, key, gated=gated) if arguments.baseline else None
    baseline_name = named_with_hash(arguments.baseline) if baseline else ""
    started = time.monotonic()
    display = RunDisplay(project.name, len(plan.stale), len(plan.steps))
    standing = Standing(plan)
    outcomes: list[Outcome] = []
    with _budgeted(plan, arguments.budget) as spent:
        if plan.stale or not is_synchronised(plan.lineage, plan.state):
            outcomes = _make_stale(plan, arguments.workers, display, standing)
        else:
            history.prune(project.workspace, project.studies, project.profile.records.history)
    lost = [outcome for outcome in outcomes if outcome.lost]
    end_query_epochs(plan, [outcome.step for outcome in lost])
    made_now = {outcome.step.partition_id for outcome in outcomes if outcome.state == "made"}
    rule = Rule(arguments.fail_on or (), arguments.measures, arguments.tolerate or 0.0, arguments.strict)
    if arguments.fail_on or arguments.sign:
        check_as_written(project.name, plan.lake, [(step.name, step.key) for step in plan.steps])
    state = State(plan.lineage, plan.lake) if plan.stale else plan.state
    examined = examine(plan, rule, state, baseline)
    for line in describe_blind_verdicts(examined) if arguments.fail_on else ():
        print(visible(line))
    for study, audits in standing.of_all():
        print_verdicts(study, project, audits)
    for study in project.studies if chosen.asset else ():  # without a table of verdicts, nothing else prints them
        for warning in study.warnings(project.parts[study.name], plan.lake):
            print(visible(warning))
    fresh_audits = [] if chosen.asset else examined.fresh
    for line in (*answer_ages(plan.lineage, plan.lake, fresh_audits, made_now), *_change_lines(examined, arguments)):
        print(visible(line))
    made = len(made_now)
    print(f"\n{made} made, {len(plan.steps) - made - len(lost)} up to date, {len(lost)} not made, "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    for line in spent():
        print(visible(line))
    reports = [study.report for study in project.studies if any(step.name == study.report for step in plan.steps)]
    for report in reports:
        if plan.lake.document_path(report).exists():
            print(f"Report: {plan.lake.document_path(report)}")
    if (index := write_index(project, plan.lake, state)) and len(project.studies) > 1:
        print(f"All reports: {index}")
    _print_failures(lost)
    _notify_failures(project, lost)
    reasons = list(dict.fromkeys(outcome.detail for outcome in lost if outcome.state == "failed"))
    files = write_for_machines(plan, rule, examined, arguments.junit, arguments.summary, reasons)
    if arguments.write_baseline:
        write_baseline(Path(arguments.write_baseline), project, plan.lake, examined.fresh)
        files.append(arguments.write_baseline)
    if files:
        print(f"Written: {', '.join(files)}")
    if arguments.mlflow:
        _log(plan, arguments.mlflow)
    try:
        status = (gate(plan, rule, examined) if arguments.fail_on else 0) or (1 if lost else 0)
    except FairnessError:
        if lost:  # the failures explain why the gate saw too little
            return 1
        raise
    for study in project.studies if status == REFUSED else ():
        closing_keys = {entry.audit.name: entry.audit.key for entry in examined.closing if entry.study is study}
        if closing_keys:
            history.note_refusal(project.workspace, study, closing_keys.values())
    if arguments.sign and not lost:
        count, not_shipped = len(examined.looked_at), examined.not_as_shipped
        gate_record = Gate(
            **rule._asdict(), status=status, verdicts=count, not_as_shipped=not_shipped, baseline=baseline_name
        )
        _sign(plan, gate_record, Path(arguments.sign), arguments.write_baseline)
    return status


def _notify_failures(project: "Project", lost: "list[Outcome]") -> None:
    """Notifies the recipients in the profile of partitions that could not be made."""
    settings, failed = project.profile.notify, [outcome for outcome in lost if outcome.state == "failed"]
    if settings and failed:
        lines = [
            f"{failure.step.label}: {failure.detail}" if settings.texts else failure.step.label for failure in failed
        ]
        _notify(project, f"{number_of(len(failed), 'partition')} of {len(lost)} that are not made", lines)


def _notify(project: "Project", why: str, lines: list[str]) -> None:
    """Sends a notice of a failure. If a run of Dagster called this command, Dagster's sensor reports that run."""
    from fairness_pipeline.foundation.notifications import Message, notify, shortened
    from fairness_pipeline.foundation.processes import PARENT

    settings = project.profile.notify
    if settings and PARENT not in os.environ:
        link = f"{settings.link}/runs" if settings.link else str(project.workspace)
        notify(settings, Message("failure", project.name, f"a run failed: {why}", shortened(lines), link))


def _change_lines(examined: "Examined", arguments: argparse.Namespace) -> Iterator[str]:
    """Yields what changed since the baseline."""
    from fairness_pipeline.reporting.changes import worth_telling

    if not arguments.baseline:
        return
    yield f"Compared with {examined.baseline}:"
    changes, others = worth_telling(examined.changes)
    yield from (f"  {line}" for line in (*(change.sentence for change in changes), others))


def _make_stale(plan: "Plan", requested: int | None, display: "RunDisplay", standing: "Standing") -> list["Outcome"]:
    """Makes stale partitions, reports them to Dagster, and prints a line for each audit once its verdicts are final."""
    from fairness_pipeline.cli.console import print_standing
    from fairness_pipeline.defs.instance import open_instance, record_errors
    from fairness_pipeline.defs.processes import mark_ended
    from fairness_pipeline.defs.pruning import prune
    from fairness_pipeline.defs.sync import sync
    from fairness_pipeline.defs.workers import NotRecorded

    project = plan.project
    outcomes: list[Outcome] = []
    not_recorded: tuple[type[Exception], ...] = (NotRecorded, *record_errors())
    try:
        with ExitStack() as stack:
            stack.callback(plan.durations.save)
            stack.enter_context(display.bars)
            instance = stack.enter_context(open_instance(project))
            workers = _workers(stack, plan, requested, display, instance) if plan.stale else None
            display.forecast = plan.forecast(workers.idle) if workers else None
            for outcome in plan.run(workers, display.starting) if workers else ():
                outcomes.append(display.ended(outcome))
                for study, audits in standing.that_stand_now(outcome):
                    print_standing(study, audits, display.console)
            mark_ended(instance, project.workspace)
            prune(project, instance)
            for _ in range(2):  # the second call finds nothing to report, and records this for the next command
                sync(plan.lineage, instance)
    except not_recorded as error:
        raise _not_recorded(project, error) from None
    return outcomes


@contextmanager
def _budgeted(plan: "Plan", budget: float | None) -> "Iterator[Callable[[], Iterator[str]]]":
    """Passes the budget to the processes of this run; yields a function that reports the tokens of its replies.

    Raises:
        FairnessError: there is a budget, and the price of an endpoint's model is not known.
    """
    from fairness_pipeline.models import usage

    path, start = plan.project.workspace / usage.FILE, usage.size(plan.project.workspace)
    if budget:
        if ray_of(plan.project.profile.engine):
            raise FairnessError("--budget does not reach the machines of a Ray cluster; use endpoint.max_requests")
        names = {(plan.lineage.study_of[step.name], name) for step in plan.stale for name in step.key.values()}
        subjects = [plan.project.parts[study].subjects.get(name) for study, name in names]
        endpoints = [endpoint for subject in subjects if (endpoint := getattr(subject, "endpoint", None))]
        usage.check_prices(endpoint.model for endpoint in endpoints)
        os.environ[usage.BUDGET] = str(usage.Budget(budget, start))
    try:
        yield lambda: usage.describe(usage.used_since(path, start))
    finally:
        os.environ.pop(usage.BUDGET, None)


def _log(plan: "Plan", experiment: str) -> None:
    from fairness_pipeline.reporting.tracking import log

    print(f"MLflow: {number_of(len(log(plan, experiment)), 'run')} in the experiment '{experiment}'")


def _sign(plan: "Plan", gate: "Gate", key: Path, baseline: str | None) -> None:
    from fairness_pipeline.cli.rule import Requirement
    from fairness_pipeline.reporting.rule import Rule
    from fairness_pipeline.reporting.summary import write_summary
    from fairness_pipeline.workspace.signatures import private_key, sign

    summary = write_summary(plan, gate)
    print(f"Signed: {summary} and {sign(summary, private_key(key)).name}; whoever has the public key checks it with:")
    rule = Rule(gate.refused)  # suggested to others if the gate meets it
    demand = f" --require '{rule.text}'" if not any(Requirement(rule).lacks(gate)) else ""
    print(f"fairness-pipeline check --signed {summary} --key PUBLICKEY{demand}")
    if baseline:
        print(
            f"Signed: {baseline} and {sign(Path(baseline), private_key(key)).name}; --baseline-key PUBLICKEY checks it"
        )


def make(project: "Project", study: str, asset: str, dimension: str | None = None, subject: str | None = None) -> None:
    """Makes an asset and its inputs if they are missing or stale; prints nothing if they are not.

    Args:
        project: The profile.
        study: The study of the asset.
        asset: The name of the asset.
        dimension: Limits it to one dimension.
        subject: Limits it to one model, corpus, or other subject of the study.

    Raises:
        FairnessError: the asset could not be made.
    """
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.plan import Plan, Selection

    chosen = Selection(study, dimension, subject, asset)
    plan = Plan(Lineage(project), chosen)
    unset = "fail_on measures tolerate sign junit summary mlflow budget baseline write_baseline".split()
    options = argparse.Namespace(workers=1, strict=False, **dict.fromkeys(unset))
    if plan.stale and bring_up_to_date(project, chosen, plan, options):
        raise FairnessError(f"{asset} could not be made; the reason is given above")


def _not_recorded(project: "Project", error: Exception) -> FairnessError:
    from fairness_pipeline.workspace.postgres import POSTGRES, describe_database, describe_error

    reason = getattr(error, "strerror", None) or describe_error(error)
    if os.environ.get(POSTGRES) and not isinstance(error, OSError):
        return FairnessError(
            f"{POSTGRES}: {describe_database()} does not keep Dagster's records any more ({reason}); finished "
            "partitions are kept. Start it, or make room there, and run again: it goes on from here"
        )
    existing = next(folder for folder in (project.workspace, *project.workspace.parents) if folder.exists())
    full = shutil.disk_usage(existing).free < _LITTLE_SPACE
    return FairnessError(
        f"{project.workspace}: Dagster's record of runs cannot be written "
        + ("(the disk is full): make room, or set" if full else f"({reason}); check the folder, or set")
        + " FAIRNESS_HOME to another disk, and run again: it goes on from here"
    )


def _print_failures(lost: "list[Outcome]") -> None:
    """Prints each cause once, with the steps that were skipped because of it."""
    failed: dict[str, list[str]] = {}
    for outcome in lost:
        if outcome.state == "failed":
            failed.setdefault(outcome.detail, []).append(outcome.step.label)
    for detail, labels in failed.items():
        print(f"failed: {some(labels)}: {visible(detail, lines=True)}", file=sys.stderr)
    if skipped := [outcome.step.label for outcome in lost if outcome.state == "skipped"]:
        print(f"skipped because a step that they need failed: {some(skipped)}", file=sys.stderr)


def _workers(
    stack: ExitStack, plan: "Plan", requested: int | None, display: "RunDisplay", instance: "Instance"
) -> "Workers":
    """Returns the workers of the engine: on one machine a pool of processes, or this process if one is enough.

    Raises:
        FairnessError: the engine cannot be used.
    """
    if ray := ray_of(plan.project.profile.engine):
        from fairness_pipeline.defs.ray_workers import RayWorkers

        workers = RayWorkers(ray, plan.project, requested, len(plan.stale), display)
        display.console.print(f"Ray cluster {workers.cluster}", markup=False)
        return stack.enter_context(workers)
    from fairness_pipeline.defs.runs import Maker
    from fairness_pipeline.defs.workers import Pool, ThisProcess
    from fairness_pipeline.foundation.machine import cores, memory
    from fairness_pipeline.foundation.side_by_side import allow_cores

    trains = any(plan.lineage.assets[step.name].trains for step in plan.stale)
    limit = requested or max(1, min(cores(), memory() // _MEMORY_OF_WORKER))
    number = min(limit, len(plan.stale))
    # Loading the libraries in each process takes longer than a few tables; it pays for training or for many steps.
    if number > 1 and (requested or trains or len(plan.stale) > _FEW_STEPS):
        return stack.enter_context(Pool(plan.project.name, number, display))
    allow_cores(lambda: limit)
    return ThisProcess(Maker(plan.project, instance, display).make)


def _requests(plan: "Plan") -> str:
    """Returns the number of endpoint requests of the remaining steps, as far as it is known; empty if none."""
    known, unknown = plan.endpoint_requests()
    if not known and not unknown:
        return ""
    pending = f", and those of {number_of(unknown, 'partition')} whose contexts are not made yet" if unknown else ""
    return f"{number_of(known, 'request')} to endpoints{pending} (fewer where a stopped run has left answers)"
