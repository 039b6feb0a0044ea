"""Decides the release gate, the exit status of `--fail-on`."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from fairness_pipeline.cli.arguments import NAMES, WORSE
from fairness_pipeline.cli.rule import REFUSED
from fairness_pipeline.foundation.errors import FairnessError, unknown
from fairness_pipeline.foundation.plain_text import number_of, some
from fairness_pipeline.lineage.plan import Plan
from fairness_pipeline.lineage.state import State
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.project.thresholds import describe_margins, not_as_shipped
from fairness_pipeline.reporting.baselines import Earlier
from fairness_pipeline.reporting.changes import Changed, changes_since, corrected
from fairness_pipeline.reporting.results import (
    NEVER_SEEN,
    NOT_MEASURED,
    Audit,
    audits_of,
    could_be_biased,
    describe_judging,
    shown_verdict,
)
from fairness_pipeline.reporting.rule import Rule
from fairness_pipeline.statistics.intervals import quantile
from fairness_pipeline.statistics.units import UNITS
from fairness_pipeline.statistics.verdicts import ARTEFACT, FAIR_ON_AVERAGE, FINDING, FINDINGS
from fairness_pipeline.workspace.lake import Row

Baseline = Callable[[AnyStudy], Earlier]
"""Returns the results of an earlier run for a study."""
_NOT_SHOWN = ("inconclusive", FAIR_ON_AVERAGE)
"""Verdicts that do not show fairness, or not in every stratum. A row without a margin can never show it."""


class Entry(NamedTuple):
    """A row that the gate checks, with its study, its audit and the name of the row."""

    study: AnyStudy
    audit: Audit
    row: Row
    name: str

    @property
    def full_name(self) -> str:
        """The partition and the name of the row; a label that extends the name is used instead."""
        label = self.study.label(self.row)
        return " ".join([*self.audit.key.values(), label if label.startswith(self.name) else self.name])

    @property
    def audit_id(self) -> tuple[str, str]:
        """The study and the audit."""
        return self.study.name, self.audit.name


class Examined(NamedTuple):
    """The audits and rows that the gate examines.

    Attributes:
        audits: The audits of the plan's selection, measured or not.
        fresh: The audits that are measured and up to date.
        required: The names of the rows that count; empty if all count.
        looked_at: The rows that count.
        closing: The rows that close the gate.
        alone: Biased rows that are not significant after correction over all audits.
        tolerated: Biased rows that the rule lets pass.
        blind: The rows that count and could not have been biased.
        changes: The rows that count, compared with the baseline, if there is one.
        baseline: The baseline's name.
        margins: The margins and levels by which they are judged, in words.
        not_as_shipped: The margins, levels and thresholds that differ from the shipped ones, by key.
        open: Why the gate stays closed although no verdict closes it; empty if it does not.
    """

    audits: list[tuple[AnyStudy, Audit]]
    fresh: list[tuple[AnyStudy, Audit]]
    required: list[str]
    looked_at: list[Entry]
    closing: list[Entry]
    alone: list[Entry]
    tolerated: list[Entry]
    blind: list[Entry]
    changes: list[Changed]
    baseline: str
    margins: list[str]
    not_as_shipped: dict[str, str]
    open: str


def examine(plan: Plan, rule: Rule, state: State, baseline: Baseline | None = None) -> Examined:
    """Applies a rule to every verdict in a plan's selection.

    Args:
        plan: The plan with the selection.
        rule: The conditions that close the gate.
        state: The content of the lake.
        baseline: Returns the results of an earlier run for a study; without one nothing is compared.
    """
    project = plan.project
    audits = [
        (study, audit)
        for study in project.studies
        for audit in audits_of(
            study, project.parts[study.name], plan.lake, asked=partial(plan.selection.covers, study, project)
        )
        if plan.selection.covers(study, project, audit.key)
    ]
    fresh = [(study, audit) for study, audit in audits if audit.measured and not state.stale(study.table, audit.key)]
    required = row_names(plan, rule.measures)
    looked_at = [entry for study, audit in fresh for entry in _looked_at(study, audit, required)]
    biased = [entry for entry in looked_at if "biased" in rule.refused and entry.row["verdict"] in FINDINGS]
    significant = _after_correction(plan, looked_at)
    tolerated = [entry for entry in biased if _is_tolerated(entry, rule.tolerated)]
    refused = [entry for entry in biased if entry not in tolerated]
    closing = [entry for entry in refused if id(entry.row) in significant]
    alone = [entry for entry in refused if id(entry.row) not in significant]
    closing += [
        entry
        for entry in looked_at
        if "inconclusive" in rule.refused and shown_verdict(entry.row) in _NOT_SHOWN and entry.row["margin"]
    ]
    closing += [entry for study, audit in fresh if NAMES in rule.refused for entry in _findings(study, audit)]
    changes, name = _changes(plan, fresh, looked_at, baseline) if baseline else ([], "")
    worse = {id(changed.row) for changed in changes if changed.worse and WORSE in rule.refused}
    closing += [entry for entry in looked_at if id(entry.row) in worse and entry not in closing]
    blind = [entry for entry in looked_at if not could_be_biased(entry.row)]
    margins, not_shipped = _margins_and_changes(plan, audits)
    examined = Examined(
        audits, fresh, required, looked_at, closing, alone, tolerated, blind, changes, name, margins, not_shipped, ""
    )
    return examined._replace(open=_open(examined, rule))


def _margins_and_changes(plan: Plan, audits: list[tuple[AnyStudy, Audit]]) -> tuple[list[str], dict[str, str]]:
    """Returns the margins and levels of the audits' studies, and those that differ from the shipped ones."""
    parts = {study.name: plan.project.parts[study.name] for study, _ in audits}
    margins = [
        f"{name}.{margin}"
        for name, part in parts.items()
        for margin in describe_margins(part.settings, part.thresholds)
    ]
    changed = [(name, not_as_shipped(part.settings, part.thresholds).items()) for name, part in parts.items()]
    not_shipped = {f"{name}.{setting}": value for name, values in changed for setting, value in values}
    return margins, not_shipped


def _changes(
    plan: Plan, fresh: list[tuple[AnyStudy, Audit]], looked_at: list[Entry], baseline: Baseline
) -> tuple[list[Changed], str]:
    """Returns the rows that count, compared with the baseline and corrected over all rows; and the baseline's name."""
    counted, changes, names = {id(entry.row) for entry in looked_at}, list[Changed](), dict[str, None]()
    for study in plan.project.studies:
        of_study = [audit for owner, audit in fresh if owner is study]
        if of_study:
            earlier = baseline(study)
            names[earlier.name] = None
            changes += changes_since(study, plan.project, plan.lake, of_study, earlier.rows, earlier.gaps)
    compared = [changed for changed in changes if id(changed.row) in counted]
    return corrected(compared, _level(plan, looked_at)), ", ".join(names)


def _open(examined: Examined, rule: Rule) -> str:
    """Returns what the gate has not seen or cannot judge; empty if there is nothing."""
    audits, looked_at, blind = examined.audits, examined.looked_at, examined.blind
    fresh = {(study.name, audit.name) for study, audit in examined.fresh}
    missing = [(study, audit) for study, audit in audits if (study.name, audit.name) not in fresh]
    if missing:
        never = [audit.name for _, audit in missing if not audit.measured]
        stale = [audit.name for _, audit in missing if audit.measured]
        states = [
            f"{state}: {', '.join(names)}" for state, names in ((NOT_MEASURED, never), ("out of date", stale)) if names
        ]
        return "; ".join(states)
    if not audits:
        return "nothing was measured"
    if degenerate := [f"{audit.name}: {audit.degenerate}" for _, audit in audits if audit.degenerate]:
        return f"nothing to judge: {'; '.join(degenerate)}"
    if unseen := [name for name in examined.required if name not in {entry.name for entry in looked_at}]:
        return f"{', '.join(unseen)}: not measured in the selected part of the profile"
    if len(blind) == len(looked_at):
        return f"no verdict could have been biased: {_by_name(blind)}; {_ADVICE}"
    if rule.strict and blind:
        return f"--strict: verdicts that could not have been biased: {_by_name(blind)}; {_ADVICE}"
    if WORSE in rule.refused and not any(changed.then for changed in examined.changes):
        return f"nothing can be compared: {examined.baseline} holds none of these verdicts; name another baseline"
    return ""


_ADVICE = "ask more pairs ('What to do now' says how many), or look at other measures"


def _by_name(entries: list[Entry]) -> str:
    """Lists rows by verdict, name and audit: `never seen: offense_rate (gender our-bot)`."""
    by_verdict: dict[str, dict[str, list[str]]] = {}
    for entry in entries:
        by_verdict.setdefault(shown_verdict(entry.row), {}).setdefault(entry.name, []).append(
            " ".join(entry.audit.key.values())
        )
    texts = {
        verdict: ", ".join(f"{name} ({some(audits)})" for name, audits in audits_of_name.items())
        for verdict, audits_of_name in by_verdict.items()
    }
    return "; ".join(f"{verdict}: {names}" for verdict, names in texts.items())


def describe_blind_verdicts(examined: Examined) -> list[str]:
    """Returns the note above the verdicts: which of the gate's verdicts could not have been biased."""
    if not examined.blind:
        return []
    return [
        f"{len(examined.blind)} of {number_of(len(examined.looked_at), 'verdict')} of the gate could not have been "
        f"biased, and passing says nothing about them (--strict fails on them): {_by_name(examined.blind)}"
    ]


def gate(plan: Plan, rule: Rule, examined: Examined) -> int:
    """Checks every verdict in a plan's selection; returns 0, or `REFUSED`.

    Raises:
        FairnessError: no verdict is refused, but a part was not measured, is out of date, or is degenerate; or no
            verdict that counts could have been biased. A gate that saw nothing stays closed.
    """
    closing, alone, tolerated = examined.closing, examined.alone, examined.tolerated
    if alone:
        names = ", ".join(entry.full_name for entry in alone)
        print(f"biased within its own table, but not after correction over all verdicts: {names}", file=sys.stderr)
    if tolerated:
        names = ", ".join(entry.full_name for entry in tolerated)
        print(f"biased by at most {rule.tolerated:g} points, which --tolerate allows: {names}", file=sys.stderr)
    summary = _summary(plan, examined, rule)
    if closing:  # a finding closes the gate, whatever is missing
        print(f"{summary}\nThe gate stops the run (exit status {REFUSED})", file=sys.stderr)
        print(f"--fail-on {','.join(rule.refused)}: {', '.join(entry.full_name for entry in closing)}", file=sys.stderr)
        return REFUSED
    if examined.open:
        raise FairnessError(f"--fail-on: {examined.open}; the gate stays closed")
    print(f"{summary}\nThe gate lets the run pass (exit status 0)")
    return 0


def _looked_at(study: AnyStudy, audit: Audit, row_names: list[str]) -> Iterator[Entry]:
    """Yields the rows of an audit that count: rows with a verdict, and rows without one that are named.

    If a named measure has a verdict, its strata are not added.
    """
    column = study.identity[len(study.axes)]
    judged = {row[column] for row in audit.rows if study.gated(row)}
    for row in audit.rows:
        name = str(row[column])
        if study.gated(row) if not row_names else name in row_names and (study.gated(row) or row[column] not in judged):
            yield Entry(study, audit, row, name)


def _findings(study: AnyStudy, audit: Audit) -> Iterator[Entry]:
    """Yields findings about single names, which are not verdicts."""
    for row in audit.rows:
        if row["verdict"] == FINDING:
            yield Entry(study, audit, row, " ".join(str(row[name]) for name in study.identity[len(study.axes) :]))


def _is_tolerated(entry: Entry, points: float) -> bool:
    """Whether a row is a rate that differs by at most `points`. Diversity is a percentage too, but not a rate.

    By default no difference is tolerated.
    """
    row = entry.study.decisive(entry.row)
    is_rate = row["unit"] == "percent" and row["effect_size"] is not None
    return bool(points and is_rate and abs(row["difference"]) <= points)


def _after_correction(plan: Plan, entries: list[Entry]) -> set[int]:
    """Returns the rows (by `id`) that remain significant when the gate is corrected over all audits that it checks.

    `p_holm` is corrected within its table. The smallest `p_holm` of a table is a valid p of "nothing in it differs".
    Holm's step-down over the tables' smallest values thus bounds the chance that a gate closes although nothing
    differs anywhere.
    """
    smallest: dict[tuple[str, str], float] = {}
    for entry in entries:
        smallest[entry.audit_id] = min(smallest.get(entry.audit_id, 1.0), entry.row["p_holm"])
    remaining, significant = len(smallest), set()
    for audit_id in sorted(smallest, key=smallest.__getitem__):
        level = plan.project.parts[audit_id[0]].level
        table_rows = [entry.row for entry in entries if entry.audit_id == audit_id]
        passing = {id(row) for row in table_rows if remaining * row["p_holm"] < level}
        if not passing:
            break
        significant |= passing
        remaining -= 1
    return significant


def _summary(plan: Plan, examined: Examined, rule: Rule) -> str:
    """Describes the gate's rule and margins, its assumptions, and the smallest gap that it detects with 80% power."""
    rows = examined.looked_at
    audits, level = {entry.audit_id for entry in rows}, _level(plan, rows)
    closings = {"biased": "biased or differs", WORSE: "what became worse than the baseline"}
    refused = [closings.get(name, name) for name in rule.refused]
    closes = f"it closes on {' or '.join(refused)}"
    if rule.tolerated:
        closes += f", but on no rate that differs by {rule.tolerated:g} points at most"
    text = (
        f"The gate looked at {number_of(len(rows), 'verdict')} of {number_of(len(audits), 'audit')} and is corrected "
        f"over all of them: if nothing differs, it closes in at most {100 * level:g}% of runs; {closes}"
    )
    artefacts = sum(entry.row["verdict"] == ARTEFACT for entry in rows)
    if artefacts:
        text += f"; it passes over {number_of(artefacts, 'artefact')}, which a control explains"
    return "\n".join([*describe_rule(examined, rule), text, *detectable(plan, rows)])


def describe_rule(examined: Examined, rule: Rule) -> list[str]:
    """Returns the rule, the margins and levels, and those that differ from the shipped ones."""
    margins = f"Margins and levels: {', '.join(examined.margins)}"
    return [f"Rule: {rule.text}", margins, describe_judging(examined.not_as_shipped)]


def _level(plan: Plan, entries: list[Entry]) -> float:
    return max((plan.project.parts[entry.study.name].level for entry in entries), default=0.05)


def detectable(plan: Plan, rows: list[Entry]) -> list[str]:
    """Returns the smallest true gap that would close the gate four times in five: the range over rows, by unit."""
    audits, level = {entry.audit_id for entry in rows}, _level(plan, rows)
    single_test = quantile(1 - level / 2) + quantile(0.8)
    gaps_by_unit: dict[str, list[tuple[float, str]]] = {}
    for entry in rows:
        least, unit = entry.row["minimum_detectable"], entry.row["unit"]
        # Diversity is a percentage but not a rate; a measure that no response shows has no gap to find.
        compares = shown_verdict(entry.row) != NEVER_SEEN and (
            unit != "percent" or entry.row["effect_size"] is not None
        )
        if least and compares:  # `least` is for a single test; the gate's first step corrects over all
            family = len(audits) * sum(other.audit_id == entry.audit_id for other in rows)
            needed = least * (quantile(1 - level / (2 * family)) + quantile(0.8)) / single_test
            gaps_by_unit.setdefault(unit, []).append((needed, entry.full_name))
    return [
        f"smallest gap that it detects with 80% power: {min(gaps)[0]:.3g}{UNITS[unit]} ({min(gaps)[1]})"
        + (f" to {max(gaps)[0]:.3g} ({max(gaps)[1]})" if len(gaps) > 1 else "")
        for unit, gaps in gaps_by_unit.items()
    ]


def row_names(plan: Plan, measures: str | None) -> list[str]:
    """Returns the names of the rows that count; empty if all count. No table is needed for this.

    Raises:
        FairnessError: a name is none of the plan's measures.
    """
    if measures is None:
        return []
    names = [*Rule(measures=measures).names]
    studies = [study for study in plan.project.studies if plan.selection.study in (None, study.name)]
    parts = [plan.project.parts[study.name] for study in studies]
    known = list(dict.fromkeys(name for part in parts for name in part.measures()))
    readings = [name for part in parts for name in part.readings()]
    if others := [name for name in names if known and name not in (*known, *readings)]:
        raise FairnessError(f"--measures: {unknown('measure', others[0], known)}")
    return names
