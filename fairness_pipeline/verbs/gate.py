"""The release gate: the exit status of `--fail-on`."""

import sys

from fairness_pipeline.defs.lineage import State
from fairness_pipeline.defs.plan import Plan
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.reporting.results import audits_of

REFUSED = 3
"""The exit status where a verdict is the refused one; not 2, which says that the command was called wrongly."""


def gate(plan: Plan, refused: str, measures: str | None = None) -> int:
    """Looks at every verdict that a plan's selection asks for; gives 0, or `REFUSED`.

    Args:
        plan: What was asked for.
        refused: The verdict that closes the gate.
        measures: The names of the rows that count, with commas between them; all where it is None.

    Raises:
        FairnessError: some of it was not measured, is out of date, or leaves nothing to judge; or no row has a name
            of `measures`. A gate that saw nothing must not open.
    """
    project, state = plan.project, State(plan.lineage, plan.lake)
    audits = [
        (study, audit)
        for study in project.studies
        for audit in audits_of(study, project.parts[study.name], plan.lake)
        if plan.selection.covers(study, project, audit.key)
    ]
    missing = [audit.name for study, audit in audits if not audit.measured or state.stale(study.table, audit.key)]
    if missing or not audits:
        raise FairnessError(
            f"--fail-on: not measured: {', '.join(missing) or 'anything'}; a gate that saw nothing must not open"
        )
    if unfit := [f"{audit.name}: {audit.unfit}" for _, audit in audits if audit.unfit]:
        raise FairnessError(f"--fail-on: nothing to judge: {'; '.join(unfit)}")
    rows = [
        (audit, row, str(row[study.identity[len(study.axes)]]))
        for study, audit in audits
        for row in audit.rows
        if study.gated(row)
    ]
    if measures is not None:
        wanted = [name.strip() for name in measures.split(",")]
        known = dict.fromkeys(name for _, _, name in rows)
        if unknown := [name for name in wanted if name not in known]:
            raise FairnessError(f"--measures: unknown measure '{unknown[0]}'; known here: {', '.join(known)}")
        rows = [(audit, row, name) for audit, row, name in rows if name in wanted]
    found = [" ".join([*audit.key.values(), name]) for audit, row, name in rows if row["verdict"] == refused]
    if found:
        print(f"--fail-on {refused}: {', '.join(found)}", file=sys.stderr)
    return REFUSED if found else 0
