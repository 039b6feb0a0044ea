"""The release gate: the exit status of `--fail-on`."""

import sys
from collections.abc import Callable, Iterator

from fairness_pipeline.defs.lineage import State
from fairness_pipeline.defs.plan import Plan
from fairness_pipeline.errors import FairnessError
from fairness_pipeline.lake import Key, Row
from fairness_pipeline.reporting.results import Audit, audits_of
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
    looked_at = [entry for study, audit in fresh for entry in _looked_at(study, audit, wanted)]
    refused_rows = [entry for entry in looked_at if entry[2]["verdict"] == refused]
    kept = _after_correction(plan, looked_at)
    found, alone = (
        [" ".join([*audit.key.values(), name]) for _, audit, row, name in refused_rows if (id(row) in kept) == stands]
        for stands in (True, False)
    )
    if alone:
        print(f"{refused} by its own table, but not after the correction over all: {', '.join(alone)}", file=sys.stderr)
    if found:  # whatever else is missing: this much was found
        print(_told(plan, looked_at), file=sys.stderr)
        print(f"--fail-on {refused}: {', '.join(found)}", file=sys.stderr)
        return REFUSED
    there = {(study.name, audit.name) for study, audit in fresh}
    if missing := [audit.name for study, audit in audits if (study.name, audit.name) not in there]:
        raise FairnessError(f"--fail-on: not measured: {', '.join(missing)}; a gate that saw nothing must not open")
    if not audits:
        raise FairnessError("--fail-on: nothing was measured; a gate that saw nothing must not open")
    if unfit := [f"{audit.name}: {audit.unfit}" for _, audit in audits if audit.unfit]:
        raise FairnessError(f"--fail-on: nothing to judge: {'; '.join(unfit)}")
    if unseen := [name for name in wanted if name not in {name for _, _, _, name in looked_at}]:
        raise FairnessError(f"--measures: {', '.join(unseen)}: measured in none of what was asked for")
    print(_told(plan, looked_at))
    return 0


_Entry = tuple[Study, Audit, Row, str]


def _looked_at(study: Study, audit: Audit, wanted: list[str]) -> Iterator[_Entry]:
    """The rows of an audit that count, with their names: what has a verdict, or what is wanted by name and has none.

    A name that is wanted adds no strata of what has a verdict.
    """
    column = study.identity[len(study.axes)]
    judged = {row[column] for row in audit.rows if study.gated(row)}
    for row in audit.rows:
        name = str(row[column])
        if study.gated(row) if not wanted else name in wanted and (study.gated(row) or row[column] not in judged):
            yield study, audit, row, name


def _after_correction(plan: Plan, rows: list[_Entry]) -> set[int]:
    """The rows that are still significant when the gate is corrected over all audits that it looks at (their `id`).

    `p_holm` is corrected over its table. The smallest of a table is a valid p of "nothing in it differs", so Holm's
    step-down over the tables' smallest bounds the chance that a gate closes although nothing differs anywhere.
    """
    smallest: dict[tuple[str, str], float] = {}
    for study, audit, row, _ in rows:
        place = study.name, audit.name
        smallest[place] = min(smallest.get(place, 1.0), row["p_holm"])
    left, kept = len(smallest), set()
    for place in sorted(smallest, key=smallest.__getitem__):
        level = plan.project.parts[place[0]].level
        own = [row for study, audit, row, _ in rows if (study.name, audit.name) == place]
        standing = {id(row) for row in own if left * row["p_holm"] < level}
        if not standing:
            break
        kept |= standing
        left -= 1
    return kept


def _told(plan: Plan, rows: list[_Entry]) -> str:
    audits = {(study.name, audit.name) for study, audit, _, _ in rows}
    level = max((plan.project.parts[name].level for name, _ in audits), default=0.05)
    return (
        f"The gate looked at {len(rows)} verdicts of {len(audits)} audits and is corrected over all of them: where "
        f"nothing differs it closes in at most {100 * level:g}% of runs"
    )


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
    parts = [plan.project.parts[study.name] for study in asked]
    known = list(dict.fromkeys(name for part in parts for name in part.measures()))
    readings = [name for part in parts for name in part.readings()]
    if unknown := [name for name in wanted if known and name not in (*known, *readings)]:
        raise FairnessError(f"--measures: unknown measure '{unknown[0]}'; choose from: {', '.join(known)}")
    return wanted
