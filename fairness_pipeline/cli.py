"""The command `fairness-pipeline`: the verbs that all studies share; each study adds its own."""

import argparse
import csv
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fairness_pipeline import __version__
from fairness_pipeline.errors import FairnessError

if TYPE_CHECKING:
    from fairness_pipeline.console import RunDisplay
    from fairness_pipeline.defs.lineage import Lineage, State
    from fairness_pipeline.defs.plan import Outcome, Plan, Selection, Step
    from fairness_pipeline.defs.workers import Workers
    from fairness_pipeline.lake import Lake, Row
    from fairness_pipeline.project import Project
    from fairness_pipeline.reporting.results import Audit
    from fairness_pipeline.study import Study

_BIASED = 2
_LITTLE = 1 << 20  # bytes
_FEW = 40  # partitions


def main(words: list[str] | None = None) -> None:
    """Runs the command line; exits with 0 when all is done, 1 when something failed, 2 when `--fail-on` bites."""
    try:
        arguments = _parser().parse_args(words)
        status = arguments.command(arguments)
    except FairnessError as error:
        print(f"fairness-pipeline: {error}", file=sys.stderr)
        status = 1
    except BrokenPipeError:
        sys.stderr.close()
        status = 1
    except KeyboardInterrupt:
        print("\nfairness-pipeline: stopped; run the same command again to go on from here", file=sys.stderr)
        status = 130
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    from fairness_pipeline.project import profile_of_environment
    from fairness_pipeline.study import studies

    parser = argparse.ArgumentParser(
        prog="fairness-pipeline", description="Audit dialogue and language models for social bias."
    )
    parser.add_argument("--version", action="version", version=f"fairness-pipeline {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--profile", default=profile_of_environment(), help="which profile (default: %(default)s)")
        added.set_defaults(command=run)
        return added

    run = command("run", _run, "Make what is missing or stale, then print the verdicts.")
    results = command("results", _results, "Print the significance tables.")
    for selecting, dimension in ((run, "only this dimension"), (results, "only this dimension")):
        selecting.add_argument("--study", help="only this study")
        selecting.add_argument("--dimension", help=dimension)
        selecting.add_argument("--model", help="only this model or other thing that is audited")
    run.add_argument("--all", action="store_true", help="make also what the profile makes only when it is asked for")
    run.add_argument("--select", metavar="ASSET", help="only this asset and what it is made from")
    run.add_argument("--workers", metavar="N", type=_count, help="partitions made side by side (default: the cores)")
    run.add_argument("--force", action="store_true", help="make also what is up to date")
    run.add_argument("--dry-run", action="store_true", help="say what would run and why, and stop")
    run.add_argument("--ask-again", action="store_true", help="ask endpoints and unpinned models anew")
    run.add_argument("--fail-on", choices=["biased"], help="exit with status 2 if any verdict is this")
    results.add_argument(
        "--against", metavar="TIME", help="beside what was found then: a time such as 2026-11-20, or 'previous'"
    )
    sql = command("sql", _sql, "Query the tables with SQL (DuckDB); each table is a view.")
    sql.add_argument("query", help="for example: select * from dialogue_significance where dimension = 'gender'")
    sql.add_argument("--all", action="store_true", help="also what is stale, or named by the profile no longer")
    for printing in (results, sql):
        printing.add_argument("--format", choices=["table", "csv", "json"], default="table")
    for study in studies():
        if module := study.load("commands"):
            module.add_commands(command)
    command("report", _report, "Print the paths of the HTML reports.")
    ui = command("ui", _ui, "Open Dagster on the profile's workspace.")
    ui.add_argument("--port", default="3000")
    ui.add_argument("--host", default="127.0.0.1")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found '{text}'")
    return int(text)


def _selection(arguments: argparse.Namespace) -> "Selection":
    from fairness_pipeline.defs.plan import Selection

    everything, asset = getattr(arguments, "all", False), getattr(arguments, "select", None)
    return Selection(arguments.study, arguments.dimension, arguments.model, asset, everything)


def _run(arguments: argparse.Namespace) -> int:
    from sqlalchemy.exc import DatabaseError

    from fairness_pipeline.console import RunDisplay, print_verdicts
    from fairness_pipeline.defs.lineage import Lineage
    from fairness_pipeline.defs.plan import Plan
    from fairness_pipeline.defs.workers import NotRecorded
    from fairness_pipeline.project import Project

    if arguments.select and arguments.fail_on:
        raise FairnessError("--fail-on looks at verdicts, --select may make none; leave one out")
    if arguments.ask_again and (arguments.select or arguments.dimension):
        raise FairnessError("--ask-again asks whole models; leave out --select and --dimension")
    project = Project(arguments.profile)
    lineage, selection = Lineage(project), _selection(arguments)
    plan = Plan(lineage, selection, force=arguments.force)
    if arguments.ask_again or (arguments.force and not arguments.select and not arguments.dimension):
        _begin_rounds(plan, arguments.model, keep=not arguments.dry_run)
        plan = Plan(lineage, selection, force=arguments.force)
    if arguments.dry_run:
        for step in plan.stale:
            print(f"{step.label}: {step.reason}")
        print(f"{len(plan.stale)} of {len(plan.steps)} partitions would run; {_requests(plan)}")
        return 0

    started = time.monotonic()
    display = RunDisplay(project.name, len(plan.stale), len(plan.steps))
    verdicts = _Verdicts(plan)
    outcomes = []
    try:
        with ExitStack() as stack:
            stack.enter_context(display)
            workers = _workers(stack, plan, arguments.workers, display)
            for outcome in plan.run(workers, display.starting):
                outcomes.append(display.ended(outcome))
                for study, audits in verdicts.that_stand_now(outcome):
                    print_verdicts(study, project, audits, display.console)
    except (NotRecorded, DatabaseError, OSError) as error:
        reason = getattr(error, "orig", None) or getattr(error, "strerror", None) or error
        full = shutil.disk_usage(project.workspace).free < _LITTLE
        raise FairnessError(
            f"{project.workspace}: Dagster's record of runs cannot be written "
            + ("(the disk is full): make room, or set" if full else f"({reason}); check the folder, or set")
            + " FAIRNESS_HOME to another disk, and run again: it goes on from here"
        ) from None
    bad = [outcome for outcome in outcomes if outcome.lost]
    made = sum(outcome.state == "made" for outcome in outcomes)
    for study, audits in verdicts.of_all():
        print_verdicts(study, project, audits)
    print(f"\n{made} made, {len(plan.steps) - made - len(bad)} up to date, {len(bad)} not made, "
          f"{time.monotonic() - started:.0f} s")  # fmt: skip
    for study in project.studies:
        if any(step.name == study.report for step in plan.steps) and plan.lake.document_path(study.report).exists():
            print(f"Report: {plan.lake.document_path(study.report)}")
    for outcome in bad:
        print(f"{outcome.state}: {outcome.step.label}: {outcome.detail}", file=sys.stderr)
    if bad:
        return 1
    return _gate(plan, arguments.fail_on) if arguments.fail_on else 0


def _workers(stack: ExitStack, plan: "Plan", asked: int | None, display: "RunDisplay") -> "Workers":
    """As many processes as there are cores, or as are asked for; this one where one is enough."""
    from fairness_pipeline.defs.instance import home, open_instance
    from fairness_pipeline.defs.runs import Maker
    from fairness_pipeline.defs.workers import Pool, ThisProcess
    from fairness_pipeline.threads import cores

    trains = any(plan.lineage.recipes[step.name].kind == "checkpoint" for step in plan.stale)
    count = min(asked or cores(), len(plan.stale))
    # To load the libraries anew takes longer than a few tables do; a training pays, and so do many of anything.
    if count > 1 and (asked or trains or len(plan.stale) > _FEW):
        home(plan.project)  # made once, before several look for it
        return stack.enter_context(Pool(plan.project.name, count, display))
    instance = stack.enter_context(open_instance(plan.project))
    return ThisProcess(Maker(plan.project, instance, display).make)


class _Verdicts:
    """Which audits of a plan stand when.

    Args:
        plan: What is made.
    """

    def __init__(self, plan: "Plan") -> None:
        self._plan = plan
        self._left = {step.place for step in plan.stale if not plan.lineage.recipes[step.name].tolerant}
        self._lost: set[tuple[str, str]] = set()
        self._waiting = {
            study.name: {step.place for step in self._plain(study) if step.reason} for study in plan.project.studies
        }

    def that_stand_now(self, outcome: "Outcome") -> list[tuple["Study", list["Audit"]]]:
        """A study with the audits of what was made from nothing else, once the last of them is; not at the very end."""
        place = outcome.step.place
        self._left.discard(place)
        if outcome.lost:
            self._lost.add(place)
        for study in self._plan.project.studies:
            waiting = self._waiting[study.name]
            if place in waiting:
                waiting.discard(place)
                audits = self._audits(study, self._plain(study)) if not waiting and self._left else []
                return [(study, audits)] if audits else []
        return []

    def of_all(self) -> list[tuple["Study", list["Audit"]]]:
        """Every study with all audits of the plan, but those that were lost."""
        found = [(study, self._audits(study, self._steps(study))) for study in self._plan.project.studies]
        return [(study, audits) for study, audits in found if audits]

    def _steps(self, study: "Study") -> "list[Step]":
        return [step for step in self._plan.steps if step.name == study.table]

    def _plain(self, study: "Study") -> "list[Step]":
        part = self._plan.project.parts[study.name]
        return [step for step in self._steps(study) if part.base_of(step.key) is None]

    def _audits(self, study: "Study", steps: "list[Step]") -> "list[Audit]":
        from fairness_pipeline.lake import partition_name
        from fairness_pipeline.reporting.results import audits_of

        names = {partition_name(step.key) for step in steps if step.place not in self._lost}
        audits = audits_of(study, self._plan.project.parts[study.name], self._plan.lake)
        return [audit for audit in audits if partition_name(audit.key) in names]


def _begin_rounds(plan: "Plan", only: str | None, *, keep: bool) -> None:
    """Begins a new round of asking for all of a plan (or the `only` one of it) that may have changed.

    One whose round is not through goes on in it: so does a run that was stopped and is called again.
    """
    from fairness_pipeline.defs.lineage import State
    from fairness_pipeline.rounds import write_round

    project, now = plan.project, datetime.now(UTC).isoformat(timespec="seconds")
    state = State(plan.lineage, plan.lake)
    for study in project.studies:
        asked = [step for step in plan.steps if step.name == study.asked]
        going_on = {
            step.key[study.subject]
            for step in asked
            if _in_a_round(state, step, project.rounds.get((study.name, step.key[study.subject])))
        }
        subjects = project.parts[study.name].subjects
        for key in dict.fromkeys(step.key[study.subject] for step in asked):
            if subjects[key].may_change and key not in going_on and only in (None, key):
                project.rounds[study.name, key] = now
                if keep:
                    write_round(project.workspace, study.name, key, now)


def _in_a_round(state: "State", step: "Step", began: str | None) -> bool:
    """Whether a partition is yet to be asked for in the present round, or a run that asked for it was stopped."""
    from fairness_pipeline.lake import fingerprint

    card = state.lake.card(step.name, step.key)
    if card is not None:
        return bool(card.inputs["settings"].get("round") != began)
    try:
        folder = state.lake.folder(step.name, step.key, fingerprint(state.inputs(step.name, step.key)))
    except FairnessError:  # a file cannot be read: making it says so
        return False
    return folder.is_dir()


def _gate(plan: "Plan", refused: str) -> int:
    """The exit status of `--fail-on`, over all that was asked for.

    Raises:
        FairnessError: some of it was not measured, or is out of date.
    """
    from fairness_pipeline.defs.lineage import State
    from fairness_pipeline.reporting.results import audits_of

    project, state = plan.project, State(plan.lineage, plan.lake)
    audits = [
        (study, audit)
        for study in project.studies
        for audit in audits_of(study, project.parts[study.name], plan.lake)
        if plan.selection.covers(study, project, audit.key)
    ]
    missing = [
        " x ".join(audit.key.values())
        for study, audit in audits
        if not audit.measured or state.stale(study.table, audit.key)
    ]
    if missing or not audits:
        raise FairnessError(
            f"--fail-on: not measured: {', '.join(missing) or 'anything'}; a gate that saw nothing must not open"
        )
    found = [
        " ".join([*audit.key.values(), str(row[study.identity[len(study.axes)]])])
        for study, audit in audits
        for row in audit.rows
        if study.gated(row) and row["verdict"] == refused
    ]
    if found:
        print(f"--fail-on {refused}: {', '.join(found)}", file=sys.stderr)
    return _BIASED if found else 0


def _requests(plan: "Plan") -> str:
    """How many requests the steps to come would make of endpoints, where that is known."""
    known, unknown = plan.endpoint_requests()
    if not known and not unknown:
        return "no request to an endpoint"
    later = f", and those of {unknown} partitions whose pairs are not made yet" if unknown else ""
    return f"{known:,} requests to endpoints{later} (fewer where a stopped run has left answers)"


def _results(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.defs.lineage import Lineage, State
    from fairness_pipeline.lake import Lake
    from fairness_pipeline.project import Project
    from fairness_pipeline.reporting.history import against, find_entry
    from fairness_pipeline.reporting.results import audits_of, flat

    project = Project(arguments.profile)
    selection = _selection(arguments).resolved(project)
    lake, lineage = Lake(project.workspace), Lineage(project)
    state = State(lineage, lake)
    # Tables of two studies have other columns: one at a time, the first that has any unless another is asked for.
    chosen = [study for study in project.studies if selection.study in (None, study.name)]
    study = next((study for study in chosen if project.parts[study.name].subjects), chosen[0])
    stale = [key for key in lineage.keys(study.table) if lake.card(study.table, key) and state.stale(study.table, key)]
    every = audits_of(study, project.parts[study.name], lake, stale)
    shown = [
        audit
        for audit in every
        if selection.dimension in (None, audit.key.get("dimension"))
        and selection.model in (None, audit.key[study.subject])
    ]
    rows = flat(study, shown)
    if arguments.against:
        everything = flat(study, every)
        entry = find_entry(project.workspace, study, arguments.against, everything)
        rows = against(project.workspace, study, entry, rows)
    else:
        marks = [audit.stale for audit in shown for _ in range(max(1, len(audit.rows)))]
        rows = [{**row, "stale": mark} for row, mark in zip(rows, marks, strict=True)]
        if arguments.format == "table":
            names = (*study.shown, *(["stale"] if any(marks) else []))
            rows = [{name: row.get(name) for name in names} for row in rows]
    if not rows:
        print(f"nothing is audited in profile '{project.name}' by {study.name}", file=sys.stderr)
    _print_rows(list(dict.fromkeys(name for row in rows for name in row)), rows, arguments.format)
    if stale:
        by_default = all(project.parts[study.name].by_default(key) for key in stale)
        _say_stale(project, [" ".join(key.values()) for key in stale], "" if by_default else " --all")
    return 0


def _say_stale(project: "Project", names: list[str], options: str) -> None:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    print(
        f"stale (made with other settings, data or answers than now): {', '.join(names[:5])}{more}; "
        f"run: fairness-pipeline run --profile {project.name}{options}",
        file=sys.stderr,
    )


def _sql(arguments: argparse.Namespace) -> int:
    import duckdb

    from fairness_pipeline.defs.lineage import Lineage, State
    from fairness_pipeline.lake import Lake
    from fairness_pipeline.project import Project
    from fairness_pipeline.sql import connect

    project = Project(arguments.profile)
    lake, lineage = Lake(project.workspace), Lineage(project)
    left_out = [] if arguments.all else _outdated(lineage, lake, State(lineage, lake), arguments.query)
    if left_out:
        names = [name for name, _ in left_out]
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        print(
            f"left out (stale, or named by the profile no longer): {', '.join(names[:5])}{more}; --all shows them",
            file=sys.stderr,
        )
    try:
        with connect(project.workspace, leave_out=[path for _, path in left_out]) as connection:
            result = connection.execute(arguments.query)
            names = _distinct([column[0] for column in result.description or []])
            _print_rows(names, [dict(zip(names, row, strict=True)) for row in result.fetchall()], arguments.format)
    except duckdb.CatalogException as error:
        made = ", ".join(lake.tables()) or "none"
        raise FairnessError(
            f"the query failed: {str(error).splitlines()[0]}\n  (tables made so far: {made}; the others come with: "
            f"fairness-pipeline run --profile {project.name})"
        ) from None
    except duckdb.Error as error:
        raise FairnessError(f"the query failed: {error}") from None
    return 0


def _outdated(lineage: "Lineage", lake: "Lake", state: "State", query: str) -> list[tuple[str, str]]:
    """The partitions of the tables that a query names which are stale, or which the profile has no longer.

    Returns:
        A name for a reader and the file of each.
    """
    found = []
    for table in lake.tables():
        if table.lower() in query.lower():
            current = {
                str(lake.table_path(table, key))
                for key in (lineage.keys(table) if table in lineage.recipes else ())
                if not state.stale(table, key)
            }
            for path in lake.partitions(table):
                if str(path) not in current:
                    where = " ".join(part.partition("=")[2] for part in path.parts if "=" in part)
                    found.append((f"{table} {where}".strip(), str(path)))
    return found


def _report(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.lake import Lake
    from fairness_pipeline.project import Project

    project = Project(arguments.profile)
    paths = [Lake(project.workspace).document_path(study.report) for study in project.studies]
    made = [path for path in paths if path.exists()]
    if not made:
        raise FairnessError(f"no report yet; run: fairness-pipeline run --profile {arguments.profile}")
    print("\n".join(map(str, made)))
    return 0


def _ui(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.defs.instance import home
    from fairness_pipeline.project import PROFILE, Project

    os.environ["DAGSTER_HOME"] = str(home(Project(arguments.profile)))
    os.environ[PROFILE] = arguments.profile
    print(
        f"Dagster on profile '{arguments.profile}': http://{arguments.host}:{arguments.port} (Ctrl-C ends it)",
        flush=True,
    )
    where = ["--host", arguments.host, "--port", arguments.port]
    os.execv(
        sys.executable,
        [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-m", "fairness_pipeline.definitions", *where],
    )


def _distinct(names: list[str]) -> list[str]:
    """Column names, numbered from their second use on, so that a join keeps all its columns."""
    uses: dict[str, int] = {}
    distinct = []
    for name in names:
        uses[name] = uses.get(name, 0) + 1
        distinct.append(name if uses[name] == 1 else f"{name}_{uses[name]}")
    return distinct


def _print_rows(names: list[str], rows: "list[Row]", form: str) -> None:
    if form == "json":
        print(json.dumps(rows, indent=1, default=str))
    elif form == "csv":
        writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        from fairness_pipeline.console import print_table

        print_table(names, rows)


if __name__ == "__main__":
    main()
