"""The release gate: the exit status of `--fail-on`."""

import sys
from collections.abc import Callable

from fairness_pipeline.defs.lineage import State
from fairness_pipeline.defs.plan import Plan
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.lake import Key
from fairness_pipeline.reporting.results import audits_of
from fairness_pipeline.study import Study

REFUSED = 3
"""The exit status where a verdict is the refused one; not 2, which says that the command was called wrongly."""


def gate(plan: Plan, refused: str, measures: str | None = None) -> int:
    """Looks at every verdict that a plan's selection asks for; gives 0, or `REFUSED`.

    Args:
        plan: What was asked for.
        refused: The verdict that closes the gate.
        measures: The names of the rows that count, with commas between them; all where it is None.

    Raises:
        FairnessError: no verdict is the refused one, but some of it was not measured, is out of date, or leaves nothing
            to judge; or no row has a name of `measures`. A gate that saw nothing must not open.
    """
    project, state = plan.project, State(plan.lineage, plan.lake)
    audits = [
        (study, audit)
        for study in project.studies
        for audit in audits_of(study, project.parts[study.name], plan.lake, asked=_asked(plan, study))
        if plan.selection.covers(study, project, audit.key)
    ]
    fresh = [(study, audit) for study, audit in audits if audit.measured and not state.stale(study.table, audit.key)]
    wanted = _wanted(plan, measures)
    rows = [
        (audit, row, str(row[study.identity[len(study.axes)]]))
        for study, audit in fresh
        for row in audit.rows
        if study.gated(row)
    ]
    found = [
        " ".join([*audit.key.values(), name])
        for audit, row, name in rows
        if row["verdict"] == refused and (name in wanted or not wanted)
    ]
    if found:  # whatever else is missing: this much was found
        print(f"--fail-on {refused}: {', '.join(found)}", file=sys.stderr)
        return REFUSED
    there = {(study.name, audit.name) for study, audit in fresh}
    if missing := [audit.name for study, audit in audits if (study.name, audit.name) not in there]:
        raise FairnessError(f"--fail-on: not measured: {', '.join(missing)}; a gate that saw nothing must not open")
    if not audits:
        raise FairnessError("--fail-on: nothing was measured; a gate that saw nothing must not open")
    if unfit := [f"{audit.name}: {audit.unfit}" for _, audit in audits if audit.unfit]:
        raise FairnessError(f"--fail-on: nothing to judge: {'; '.join(unfit)}")
    if unseen := [name for name in wanted if name not in {name for _, _, name in rows}]:
        raise FairnessError(f"--measures: {', '.join(unseen)}: measured in none of what was asked for")
    return 0


def _asked(plan: Plan, study: Study) -> Callable[[Key], bool]:
    return lambda key: plan.selection.covers(study, plan.project, key)


def check_measures(plan: Plan, measures: str | None) -> None:
    """Raises FairnessError if what is to count is none of what a plan's verdicts are about; nothing need be made."""
    _wanted(plan, measures)


def _wanted(plan: Plan, measures: str | None) -> list[str]:
    """The names of the rows that count; none where all do."""
    if measures is None:
        return []
    wanted = [name.strip() for name in measures.split(",")]
    asked = [study for study in plan.project.studies if plan.selection.study in (None, study.name)]
    known = list(dict.fromkeys(name for study in asked for name in plan.project.parts[study.name].measures()))
    if unknown := [name for name in wanted if known and name not in known]:
        raise FairnessError(f"--measures: unknown measure '{unknown[0]}'; choose from: {', '.join(known)}")
    return wanted
