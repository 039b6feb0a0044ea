"""`run`: makes what is missing or stale, then prints the verdicts."""

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairness_pipeline.cli.arguments import add_selection, count, selection
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.engines.settings import ADDRESS, ENGINE, ENGINES, checked_address, ray_of
from fairness_pipeline.foundation.checksums import REHASH
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of, visible

if TYPE_CHECKING:
    from fairness_pipeline.cli.console import RunDisplay
    from fairness_pipeline.cli.gate import Rule
    from fairness_pipeline.cli.standing import Standing
    from fairness_pipeline.defs.instance import Instance
    from fairness_pipeline.lineage.plan import Outcome, Plan, Selection
    from fairness_pipeline.lineage.units import Workers
    from fairness_pipeline.project.project import Project

_LITTLE = 1 << 20  # bytes
_FEW = 40  # partitions
_REASON = 190  # characters
_NAMED = 3  # partitions
_OF_A_WORKER = 3 << 29  # bytes; docs/architecture.md, "The lake"


def add(command: Command) -> None:
    """Adds the command."""
    run = command("run", _run, "Make what is missing or stale, then print the verdicts.")
    add_selection(run)
    run.add_argument("--all", action="store_true", help="make also what the profile makes only when it is asked for")
    run.add_argument("--select", metavar="ASSET", help="only this asset and what it is made from")
    run.add_argument(
        "--force", action="store_true", help="also remake what is up to date; with --select that asset alone"
    )
    run.add_argument("--dry-run", action="store_true", help="say what would run and why, and stop")
    run.add_argument("--ask-again", action="store_true", help="ask endpoints and unpinned models anew")
    add_gate(run)


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the number of workers and for the conditions under which the command fails."""
    parser.add_argument(
        "--workers",
        metavar="N",
        type=count,
        help="partitions made side by side (default: the cores, and at most one for each 1.5 GiB of memory)",
    )
    parser.add_argument("--engine", choices=ENGINES, help="where the work is done (default: what the profile says)")
    parser.add_argument(
        "--address", metavar="ADDRESS", type=_address, help="of a Ray cluster: auto, local, or host:port of its head"
    )
    parser.add_argument(
        "--fail-on",
        metavar="A,B",
        type=_refusals,
        help="exit with status 3 on any of: biased, inconclusive, names (findings about one name)",
    )
    parser.add_argument("--measures", metavar="A,B", help="which verdicts --fail-on looks at (default: all)")
    parser.add_argument(
        "--tolerate", metavar="POINTS", type=_points, help="biased rates that differ by no more do not close the gate"
    )
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML; what closes the gate fails")
    parser.add_argument(
        "--budget", metavar="AMOUNT", type=_amount, help="ask endpoints no more when so much money is spent"
    )
    parser.add_argument("--mlflow", metavar="EXPERIMENT", help="log verdicts, settings and reports in MLflow")
    parser.add_argument("--summary", metavar="FILE", help="write the verdicts as Markdown, for a pull request")
    parser.add_argument(
        "--sign", metavar="KEYFILE", help="sign a summary of the run with this private key (Ed25519, PEM or OpenSSH)"
    )


def _refusals(text: str) -> tuple[str, ...]:
    from fairness_pipeline.cli.gate import refusals

    return refusals(text)


def _points(text: str) -> float:
    """Parses percentage points, for argparse."""
    try:
        points = float(text)
    except ValueError:
        points = math.nan
    if not 0 <= points <= 100:
        raise argparse.ArgumentTypeError(f"expected percentage points from 0 to 100, found '{text}'")
    return points


def _amount(text: str) -> float:
    """Parses an amount of money, for argparse."""
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 < amount < math.inf:
        raise argparse.ArgumentTypeError(f"expected an amount of money above 0, found '{text}'")
    return amount


def _address(text: str) -> str:
    try:
        return checked_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@contextmanager
def environment_of_options(arguments: argparse.Namespace) -> Iterator[None]:
    """Lets this process, and those that it starts in the block, use the engine that the options name.

    A gate or a signature also lets them hash large files anew: a checksum that is kept may be wrong, or forged.

    Raises:
        FairnessError: an address is given for an engine that has none.
    """
    if arguments.address and arguments.engine == "embedded":
        raise FairnessError("--address is that of a Ray cluster; add --engine ray")
    engine = arguments.engine or ("ray" if arguments.address else None)
    rehash = "1" if arguments.fail_on or arguments.sign else None
    asked = {ENGINE: engine, ADDRESS: arguments.address, REHASH: rehash}
    before = {name: os.environ.get(name) for name in asked}
    os.environ.update({name: own for name, own in asked.items() if own})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def check_gate(arguments: argparse.Namespace) -> None:
    """Raises FairnessError if an option of the gate is given without a gate, or a key is none."""
    if arguments.sign:
        from fairness_pipeline.workspace.signatures import private_key

        if getattr(arguments, "select", None):
            raise FairnessError("--sign signs verdicts, but --select may produce none; leave one out")
        private_key(Path(arguments.sign))  # before hours of work
    if arguments.mlflow:
        from fairness_pipeline.reporting.tracking import check_mlflow

        check_mlflow()
    for option in ("junit", "summary", "mlflow"):
        if getattr(arguments, option) and getattr(arguments, "select", None):
            raise FairnessError(f"--{option} writes verdicts, but --select may produce none; leave one out")
    for option in ("junit", "summary"):
        path = getattr(arguments, option)
        if path and not Path(path).absolute().parent.is_dir():
            raise FairnessError(f"--{option}: there is no folder {Path(path).absolute().parent}")
    for option in ("measures", "tolerate"):
        if getattr(arguments, option) is not None and not arguments.fail_on:
            says = {"measures": "which verdicts --fail-on looks at", "tolerate": "what --fail-on lets pass"}[option]
            raise FairnessError(f"--{option} says {says}; add --fail-on biased")


def _run(arguments: argparse.Namespace) -> int:
    check_gate(arguments)
    with environment_of_options(arguments):
        return _plan_and_run(arguments)


def _plan_and_run(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.plan import Plan
    from fairness_pipeline.lineage.query_epochs import begin_query_epochs
    from fairness_pipeline.project.project import Project

    if arguments.select and arguments.fail_on:
        raise FairnessError("--fail-on needs verdicts, but --select may produce none; leave one out")
    if arguments.ask_again and arguments.select:
        raise FairnessError("--ask-again asks whole models; leave out --select")
    project, chosen = Project(arguments.profile), selection(arguments)
    lineage = Lineage(project)
    plan = Plan(lineage, chosen, force=arguments.force)
    if arguments.ask_again or (arguments.force and not arguments.select and not arguments.dimension):
        begin_query_epochs(plan, arguments.model, keep=not arguments.dry_run)
        plan = Plan(lineage, chosen, force=arguments.force)
    if arguments.dry_run:
        for step in plan.stale:
            reason = step.reason or ""
            print(visible(f"{step.label}: {reason if len(reason) <= _REASON else reason[: _REASON - 3] + '...'}"))
        print(f"{len(plan.stale)} of {len(plan.steps)} partitions would run; {_requests(plan)}")
        for study in project.studies:
            if chosen.study in (None, study.name):
                for line in study.power_forecast(project.parts[study.name], plan.lake, chosen.dimension):
                    print(visible(line))
        return 0
    return bring_up_to_date(project, chosen, plan, arguments)


def bring_up_to_date(project: "Project", chosen: "Selection", plan: "Plan", arguments: argparse.Namespace) -> int:
    """Runs a plan with output, prints the verdicts and applies the gate; returns the exit status."""
    from fairness_pipeline.cli.check import check_as_written
    from fairness_pipeline.cli.console import RunDisplay, print_verdicts
    from fairness_pipeline.cli.for_machines import write_for_machines
    from fairness_pipeline.cli.gate import Rule, check_measures, examine, gate
    from fairness_pipeline.cli.standing import Standing
    from fairness_pipeline.defs.at_rest import is_told
    from fairness_pipeline.reporting import history
    from fairness_pipeline.reporting.index import write_index

    if arguments.fail_on:
        check_measures(plan, arguments.measures)
    started = time.monotonic()
    display = RunDisplay(project.name, len(plan.stale), len(plan.steps))
    standing = Standing(plan)
    outcomes: list[Outcome] = []
    with _paid(plan, arguments.budget) as spent:
        if plan.stale or not is_told(plan.lineage):
            outcomes = _make_stale(plan, arguments.workers, display, standing)
        else:
            history.prune(project.workspace, project.studies, project.profile.records.history)
    bad = [outcome for outcome in outcomes if outcome.lost]
    made = sum(outcome.state == "made" for outcome in outcomes)
    for study, audits in standing.of_all():
        print_verdicts(study, project, audits)
    print(f"\n{made} made, {len(plan.steps) - made - len(bad)} up to date, {len(bad)} not made, "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    for line in spent():
        print(visible(line))
    reports = [study.report for study in project.studies if any(step.name == study.report for step in plan.steps)]
    for report in reports:
        if plan.lake.document_path(report).exists():
            print(f"Report: {plan.lake.document_path(report)}")
    if (index := write_index(project, plan.lake)) and len(project.studies) > 1:
        print(f"All reports: {index}")
    _print_failures(bad)
    if arguments.fail_on or arguments.sign:
        check_as_written(project, plan)
    rule = Rule(arguments.fail_on or (), arguments.measures, arguments.tolerate or 0.0)
    found = examine(plan, rule) if arguments.fail_on or arguments.junit or arguments.summary else None
    reasons = list(dict.fromkeys(outcome.detail for outcome in bad if outcome.state == "failed"))
    if found and (files := write_for_machines(plan, rule, found, arguments.junit, arguments.summary, reasons)):
        print(f"Written: {', '.join(files)}")
    if arguments.mlflow:
        _log(plan, arguments.mlflow)
    try:
        made_now = {outcome.step.place for outcome in outcomes if outcome.state == "made"}
        status = (gate(plan, rule, found, made_now) if arguments.fail_on else 0) or (1 if bad else 0)
    except FairnessError:
        if bad:  # the failures explain why the gate saw too little
            return 1
        raise
    if arguments.sign and not bad:
        _sign(plan, rule, status, Path(arguments.sign))
    return status


def _make_stale(plan: "Plan", workers: int | None, display: "RunDisplay", standing: "Standing") -> list["Outcome"]:
    """Makes what is stale, tells Dagster of it, and prints each audit's verdicts as they stand."""
    from fairness_pipeline.cli.console import print_verdicts
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
            stack.enter_context(display)
            instance = stack.enter_context(open_instance(project))
            hands = _workers(stack, plan, workers, display, instance) if plan.stale else None
            display.forecast = plan.forecast(hands.idle) if hands else None
            for outcome in plan.run(hands, display.starting) if hands else ():
                outcomes.append(display.ended(outcome))
                for study, audits in standing.that_stand_now(outcome):
                    print_verdicts(study, project, audits, display.console)
            mark_ended(instance, project.workspace)
            prune(project, instance)
            for _ in range(2):  # the second time nothing is left to tell, which is noted for the next command
                sync(plan.lineage, instance)
    except not_recorded as error:
        raise _not_recorded(project, error) from None
    return outcomes


@contextmanager
def _paid(plan: "Plan", budget: float | None) -> "Iterator[Callable[[], Iterator[str]]]":
    """Lets the processes of this run know its budget; yields what says what the run's replies took.

    Raises:
        FairnessError: there is a budget, and the price of an endpoint's model is not known.
    """
    from fairness_pipeline.models import usage

    path, begin = plan.project.workspace / usage.FILE, usage.size(plan.project.workspace)
    if budget:
        if ray_of(plan.project.profile.engine):
            raise FairnessError("--budget does not reach the machines of a Ray cluster; use endpoint.max_requests")
        places = {(plan.lineage.study_of[step.name], own) for step in plan.stale for own in step.key.values()}
        subjects = [plan.project.parts[study].subjects.get(own) for study, own in places]
        endpoints = [endpoint for own in subjects if (endpoint := getattr(own, "endpoint", None))]
        usage.check_prices(endpoint.model for endpoint in endpoints)
        os.environ[usage.BUDGET] = str(usage.Budget(budget, begin))
    try:
        yield lambda: usage.told(usage.used_since(path, begin))
    finally:
        os.environ.pop(usage.BUDGET, None)


def _log(plan: "Plan", experiment: str) -> None:
    from fairness_pipeline.reporting.tracking import log

    print(f"MLflow: {number_of(len(log(plan, experiment)), 'run')} in the experiment '{experiment}'")


def _sign(plan: "Plan", rule: "Rule", status: int, key: Path) -> None:
    from fairness_pipeline.reporting.summary import write_summary
    from fairness_pipeline.workspace.signatures import private_key, sign

    summary = write_summary(plan, {**rule._asdict(), "status": status})
    print(f"Signed: {summary} and {sign(summary, private_key(key)).name}; whoever has the public key checks it with:")
    print(f"fairness-pipeline check --signed {summary} --key PUBLICKEY")


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
    alone = argparse.Namespace(
        workers=1,
        fail_on=None,
        measures=None,
        tolerate=None,
        sign=None,
        junit=None,
        summary=None,
        mlflow=None,
        budget=None,
    )
    if plan.stale and bring_up_to_date(project, chosen, plan, alone):
        raise FairnessError(f"{asset} could not be made; the reason is given above")


def _not_recorded(project: "Project", error: Exception) -> FairnessError:
    from fairness_pipeline.workspace.postgres import POSTGRES, place, told

    reason = getattr(error, "strerror", None) or told(error)
    if os.environ.get(POSTGRES) and not isinstance(error, OSError):
        return FairnessError(
            f"{POSTGRES}: {place()} does not keep Dagster's records any more ({reason}); what was made stands. Start "
            "it, or make room there, and run again: it goes on from here"
        )
    existing = next(folder for folder in (project.workspace, *project.workspace.parents) if folder.exists())
    full = shutil.disk_usage(existing).free < _LITTLE
    return FairnessError(
        f"{project.workspace}: Dagster's record of runs cannot be written "
        + ("(the disk is full): make room, or set" if full else f"({reason}); check the folder, or set")
        + " FAIRNESS_HOME to another disk, and run again: it goes on from here"
    )


def _print_failures(bad: "list[Outcome]") -> None:
    """Prints each cause once, with the steps that were skipped because of it."""
    failed: dict[str, list[str]] = {}
    for outcome in bad:
        if outcome.state == "failed":
            failed.setdefault(outcome.detail, []).append(outcome.step.label)
    for detail, labels in failed.items():
        print(f"failed: {_some(labels)}: {visible(detail, lines=True)}", file=sys.stderr)
    if skipped := [outcome.step.label for outcome in bad if outcome.state == "skipped"]:
        print(f"skipped because a step that they need failed: {_some(skipped)}", file=sys.stderr)


def _some(labels: list[str]) -> str:
    more = f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else ""
    return ", ".join(labels[:_NAMED]) + more


def _workers(
    stack: ExitStack, plan: "Plan", asked: int | None, display: "RunDisplay", instance: "Instance"
) -> "Workers":
    """The workers of the engine: on one machine a pool of processes, or this process if one is enough.

    Raises:
        FairnessError: the engine cannot be used.
    """
    if ray := ray_of(plan.project.profile.engine):
        from fairness_pipeline.defs.ray_workers import RayWorkers

        crew = RayWorkers(ray, plan.project, asked, len(plan.stale), display)
        display.console.print(f"Ray cluster {crew.cluster}", markup=False)
        return stack.enter_context(crew)
    from fairness_pipeline.defs.runs import Maker
    from fairness_pipeline.defs.workers import Pool, ThisProcess
    from fairness_pipeline.foundation.machine import cores, memory
    from fairness_pipeline.foundation.side_by_side import allow_cores

    trains = any(plan.lineage.assets[step.name].trains for step in plan.stale)
    most = asked or max(1, min(cores(), memory() // _OF_A_WORKER))
    number = min(most, len(plan.stale))
    # Loading the libraries in each process takes longer than a few tables; it pays for training or for many steps.
    if number > 1 and (asked or trains or len(plan.stale) > _FEW):
        return stack.enter_context(Pool(plan.project.name, number, display))
    allow_cores(lambda: most)
    return ThisProcess(Maker(plan.project, instance, display).make)


def _requests(plan: "Plan") -> str:
    """The number of endpoint requests that the remaining steps would make, as far as it is known."""
    known, unknown = plan.endpoint_requests()
    if not known and not unknown:
        return "no request to an endpoint"
    later = f", and those of {number_of(unknown, 'partition')} whose contexts are not made yet" if unknown else ""
    return f"{number_of(known, 'request')} to endpoints{later} (fewer where a stopped run has left answers)"
