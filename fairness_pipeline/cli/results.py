"""`results`: prints the verdicts and the tables behind them, or the verdicts that turned since an earlier run."""

import argparse
import sys
from typing import TYPE_CHECKING

from fairness_pipeline.cli.arguments import add_format, add_selection, selection
from fairness_pipeline.cli.commands import Command
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.paths import workspace_folder
from fairness_pipeline.foundation.plain_text import number_of, some
from fairness_pipeline.project.project import Project

if TYPE_CHECKING:
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.plan import Selection
    from fairness_pipeline.lineage.state import State
    from fairness_pipeline.project.study import AnyStudy
    from fairness_pipeline.reporting.results import Audit


def add(command: Command) -> None:
    """Adds the command."""
    results = command(
        "results",
        _results,
        "Print the verdicts with their numbers; as CSV or JSON, all rows.",
        example="--dimension gender --format csv",
    )
    add_selection(results)
    results.add_argument(
        "--against",
        metavar="TIME",
        help="print the verdicts that turned and the gaps that changed since a time such as 2026-11-20, or since the "
        "'previous' run, and why",
    )
    add_format(results)


def _results(arguments: argparse.Namespace) -> int:
    from fairness_pipeline.lineage.lineage import Lineage
    from fairness_pipeline.lineage.plan import other_workspaces
    from fairness_pipeline.lineage.state import State
    from fairness_pipeline.workspace.lake import Lake

    project = Project(arguments.profile)
    chosen = selection(arguments).resolved(project)
    lineage = Lineage(project)
    state = State(lineage, Lake(project.workspace))
    studies = [study for study in project.studies if chosen.study in (None, study.name)]
    if arguments.against:
        return _print_turned(arguments, lineage, state, studies, chosen)
    audits = {study.name: _audits(state, study, chosen) for study in studies}
    measured = [study for study in studies if any(audit.measured for audit in audits[study.name][1])]
    if not measured and (others := [name for name in other_workspaces(project) if _has_results(project, name)]):
        print(f"nothing of that was measured here; with results: --profile {' or '.join(others)}", file=sys.stderr)
    # Rows of two studies have different columns: a file has those of one.
    with_subjects = [study for study in studies if project.parts[study.name].subjects]
    shown = measured or (with_subjects or studies)[:1]
    shown = shown[: None if arguments.format == "table" else 1]
    for number, study in enumerate(shown):
        if number:
            print()
        if len(shown) > 1:
            print(f"{study.title}, profile {project.name}")
        _print_results(arguments, project, study, *audits[study.name], chosen)
    if others := [study.name for study in measured if study not in shown]:
        print(f"left out: {', '.join(others)}; for each of them: --study NAME", file=sys.stderr)
    return 0


def _has_results(project: Project, profile: str) -> bool:
    return any((workspace_folder(profile) / "tables" / study.table).is_dir() for study in project.studies)


def _print_results(
    arguments: argparse.Namespace,
    project: Project,
    study: "AnyStudy",
    all_audits: list["Audit"],
    selected: list["Audit"],
    chosen: "Selection",
) -> None:
    from fairness_pipeline.cli.console import print_next_steps, print_rows
    from fairness_pipeline.reporting.paper import verdict_rows
    from fairness_pipeline.reporting.results import flat

    part = project.parts[study.name]
    every = [{**row, "stale": audit.stale} for audit in selected for row in flat(study, [audit])]
    verdicts = [
        {**row, **({"stale": "stale"} if audit.stale else {})}
        for audit in selected
        for row in verdict_rows(study, part, [audit])
    ]
    rows = every if arguments.format in ("csv", "json") else verdicts
    if not rows:
        names = " and ".join(f"{axis} '{value}'" for axis, value in chosen.axes.items())
        about = f" of {names}" if names else ""
        print(f"profile '{project.name}' has no audit{about} in study {study.name}", file=sys.stderr)
    needed = (*study.axes, "measure", "difference", "verdict", "stale")
    print_rows(list(dict.fromkeys(name for row in rows for name in row)), rows, arguments.format, needed)
    if rows and arguments.format == "table":
        if more := len(every) - len(verdicts):
            print(f"({number_of(more, 'further row')} (parts, other readings), all columns: --format csv)")
        print_next_steps(study, project, selected)
    stale = [audit.key for audit in all_audits if audit.stale]
    if stale:
        by_default = all(part.by_default(key) for key in stale)
        print(
            "stale (made with other settings, data or answers than now): "
            f"{some([' '.join(key.values()) for key in stale], 5)}; "
            f"run: fairness-pipeline run --profile {project.name}{'' if by_default else ' --all'}",
            file=sys.stderr,
        )


def _audits(state: "State", study: "AnyStudy", chosen: "Selection") -> tuple[list["Audit"], list["Audit"]]:
    """Returns all audits of a study, and the selected ones."""
    from fairness_pipeline.reporting.results import audits_of

    part = state.lineage.project.parts[study.name]
    all_audits = audits_of(study, part, state.lake, state.stale_keys(study.table))
    return all_audits, [audit for audit in all_audits if chosen.matches(study, part, audit.key)]


def _print_turned(
    arguments: argparse.Namespace, lineage: "Lineage", state: "State", studies: list["AnyStudy"], chosen: "Selection"
) -> int:
    """Prints the verdicts that turned in each study that has kept an earlier run."""
    from fairness_pipeline.cli.console import print_rows
    from fairness_pipeline.lineage.origins import origins_of
    from fairness_pipeline.reporting.changes import changes_since, corrected, with_changes
    from fairness_pipeline.reporting.history import against, find_entry, gaps_at, rows_at
    from fairness_pipeline.reporting.results import flat

    project, rows, entries, errors = lineage.project, [], [], []
    for study in studies:
        all_audits, selected = _audits(state, study, chosen)
        try:
            entry = find_entry(project.workspace, study, arguments.against, flat(study, all_audits))
        except FairnessError as error:
            errors.append(error)
            continue
        entries.append(entry)
        origins = origins_of(lineage, state.lake, study.table, [audit.key for audit in selected if audit.measured])
        turned = against(project.workspace, study, entry, flat(study, selected), origins)
        earlier_rows, pairs = rows_at(project.workspace, study, entry), gaps_at(project.workspace, study, entry)
        changes = changes_since(study, project, state.lake, selected, earlier_rows, pairs)
        changes = corrected(changes, project.parts[study.name].level)
        rows += [{"study": study.name, **row} for row in with_changes(study, turned, changes)]
    if not entries:
        raise errors[0]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if arguments.format != "table":
        print_rows(names, rows, arguments.format)
        return 0
    for row in rows:
        differences = " -> ".join(
            "none" if value is None else f"{value:.3g}" for value in (row["difference_then"], row["difference_now"])
        )
        label = " ".join(str(row[name]) for name in names if name in row and name not in _NOT_IN_LABEL)
        print(f"{label}: {row['verdict_then']} -> {row['verdict_now']} ({differences})")
        print("\n".join(f"  {line}" for line in (row["change"], row["why"]) if line))
    count = sum(row["verdict_then"] != row["verdict_now"] for row in rows)
    changed = f", and {number_of(len(rows) - count, 'other gap')} changed," if len(rows) > count else ""
    summary = f"{number_of(count, 'verdict')} turned{changed} since {', '.join(dict.fromkeys(entries))}"
    print(summary, file=sys.stderr)
    return 0


_NOT_IN_LABEL = (
    "study", "difference_then", "difference_now", "verdict_then", "verdict_now", "change", "change_low", "change_high",
    "change_p_holm", "why",
)  # fmt: skip
