"""The release gate: the exit status of `--fail-on`."""

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fairness_pipeline.cli.rule import NAMES, REFUSED, WORSE
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import number_of, some
from fairness_pipeline.lineage.plan import Plan
from fairness_pipeline.lineage.state import State
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.project.thresholds import not_as_shipped, told_margins
from fairness_pipeline.reporting.baselines import Earlier
from fairness_pipeline.reporting.changes import Changed, changes_since, corrected
from fairness_pipeline.reporting.results import (
    NEVER_SEEN,
    NOT_MEASURED,
    Audit,
    audits_of,
    could_tell,
    said,
    told_judging,
)
from fairness_pipeline.reporting.rule import Rule
from fairness_pipeline.statistics.intervals import quantile
from fairness_pipeline.statistics.units import UNITS
from fairness_pipeline.statistics.verdicts import ARTEFACT, FAIR_ON_AVERAGE, FINDING, FINDINGS
from fairness_pipeline.workspace.lake import Key, Row

Baseline = Callable[[AnyStudy], Earlier]
"""Gives what an earlier run found of a study."""
_NOT_SHOWN = ("inconclusive", FAIR_ON_AVERAGE)
"""Verdicts that do not show fairness, or not in every stratum. A row without a margin can never show it."""


class Entry(NamedTuple):
    """A row that the gate checks, with its study, its audit and the name of the row."""

    study: AnyStudy
    audit: Audit
    row: Row
    name: str

    @property
    def told(self) -> str:
        """The partition and the name of the row; a label that extends the name is used instead."""
        label = self.study.label(self.row)
        return " ".join([*self.audit.key.values(), label if label.startswith(self.name) else self.name])

    @property
    def place(self) -> tuple[str, str]:
        """The study and the audit."""
        return self.study.name, self.audit.name


class Examined(NamedTuple):
    """What the gate sees.

    Attributes:
        audits: Those of the plan's selection, measured or not.
        fresh: Those that are measured and up to date.
        wanted: The names of the rows that count; empty if all count.
        looked_at: The rows that count.
        closing: The rows that close the gate.
        alone: Biased rows that are not significant after correction over all audits.
        tolerated: Biased rows that the rule lets pass.
        blind: The rows that count and could not have been biased.
        changes: The rows that count beside those of the baseline, if there is one.
        baseline: What it is called.
        margins: The margins and levels by which they are judged, in words.
        not_as_shipped: What decides verdicts otherwise than as shipped, by its place.
        open: Why the gate stays closed although no verdict closes it; empty if it does not.
    """

    audits: list[tuple[AnyStudy, Audit]]
    fresh: list[tuple[AnyStudy, Audit]]
    wanted: list[str]
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
    """What a rule makes of every verdict in a plan's selection.

    Args:
        plan: The plan with the selection.
        rule: The conditions that close the gate.
        state: The content of the lake.
        baseline: Gives what an earlier run found of a study; without one nothing is compared.
    """
    project = plan.project
    audits = [
        (study, audit)
        for study in project.studies
        for audit in audits_of(study, project.parts[study.name], plan.lake, asked=_asked(plan, study))
        if plan.selection.covers(study, project, audit.key)
    ]
    fresh = [(study, audit) for study, audit in audits if audit.measured and not state.stale(study.table, audit.key)]
    wanted = _wanted(plan, rule.measures)
    looked_at = [entry for study, audit in fresh for entry in _looked_at(study, audit, wanted)]
    biased = [entry for entry in looked_at if "biased" in rule.refused and entry.row["verdict"] in FINDINGS]
    kept = _after_correction(plan, looked_at)
    tolerated = [entry for entry in biased if _is_tolerated(entry, rule.tolerated)]
    standing = [entry for entry in biased if entry not in tolerated]
    closing = [entry for entry in standing if id(entry.row) in kept]
    alone = [entry for entry in standing if id(entry.row) not in kept]
    closing += [
        entry
        for entry in looked_at
        if "inconclusive" in rule.refused and said(entry.row) in _NOT_SHOWN and entry.row["margin"]
    ]
    closing += [entry for study, audit in fresh if NAMES in rule.refused for entry in _findings(study, audit)]
    changes, name = _changes(plan, fresh, looked_at, baseline) if baseline else ([], "")
    worse = {id(changed.row) for changed in changes if changed.worse and WORSE in rule.refused}
    closing += [entry for entry in looked_at if id(entry.row) in worse and entry not in closing]
    blind = [entry for entry in looked_at if not could_tell(entry.row)]
    margins, otherwise = _judging(plan, audits)
    found = Examined(
        audits, fresh, wanted, looked_at, closing, alone, tolerated, blind, changes, name, margins, otherwise, ""
    )
    return found._replace(open=_open(found, rule))


def _judging(plan: Plan, audits: list[tuple[AnyStudy, Audit]]) -> tuple[list[str], dict[str, str]]:
    """The margins and levels of the audits' studies, and what decides otherwise than as shipped, by its place."""
    parts = {study.name: plan.project.parts[study.name] for study, _ in audits}
    margins = [
        f"{name}.{margin}" for name, part in parts.items() for margin in told_margins(part.settings, part.thresholds)
    ]
    changed = [(name, not_as_shipped(part.settings, part.thresholds).items()) for name, part in parts.items()]
    otherwise = {f"{name}.{place}": value for name, values in changed for place, value in values}
    return margins, otherwise


def _changes(
    plan: Plan, fresh: list[tuple[AnyStudy, Audit]], looked_at: list[Entry], baseline: Baseline
) -> tuple[list[Changed], str]:
    """The rows that count beside those of the baseline, corrected over all of them; and the baseline's name."""
    counts, changes, names = {id(entry.row) for entry in looked_at}, list[Changed](), dict[str, None]()
    for study in plan.project.studies:
        of_study = [audit for other, audit in fresh if other is study]
        if of_study:
            earlier = baseline(study)
            names[earlier.name] = None
            changes += changes_since(study, plan.project, plan.lake, of_study, earlier.rows, earlier.gaps)
    compared = [changed for changed in changes if id(changed.row) in counts]
    return corrected(compared, _level(plan, looked_at)), ", ".join(names)


def _open(found: Examined, rule: Rule) -> str:
    """What the gate has not seen, or cannot judge."""
    audits, looked_at, blind = found.audits, found.looked_at, found.blind
    there = {(study.name, audit.name) for study, audit in found.fresh}
    missing = [(study, audit) for study, audit in audits if (study.name, audit.name) not in there]
    if missing:
        never = [audit.name for _, audit in missing if not audit.measured]
        stale = [audit.name for _, audit in missing if audit.measured]
        told = [f"{what}: {', '.join(own)}" for what, own in ((NOT_MEASURED, never), ("out of date", stale)) if own]
        return "; ".join(told)
    if not audits:
        return "nothing was measured"
    if degenerate := [f"{audit.name}: {audit.degenerate}" for _, audit in audits if audit.degenerate]:
        return f"nothing to judge: {'; '.join(degenerate)}"
    if unseen := [name for name in found.wanted if name not in {entry.name for entry in looked_at}]:
        return f"{', '.join(unseen)}: not measured in the selected part of the profile"
    if len(blind) == len(looked_at):
        return f"no verdict could have been biased: {_by_name(blind)}; {_MORE}"
    if rule.strict and blind:
        return f"--strict: verdicts that could not have been biased: {_by_name(blind)}; {_MORE}"
    if WORSE in rule.refused and not any(changed.then for changed in found.changes):
        return f"nothing can be compared: {found.baseline} holds none of these verdicts; name another baseline"
    return ""


_MORE = "ask more pairs ('What to do now' says how many), or look at other measures"


def _by_name(entries: list[Entry]) -> str:
    """Rows by what is said of them, their names and audits: `never seen: offense_rate (gender our-bot)`."""
    by_verdict: dict[str, dict[str, list[str]]] = {}
    for entry in entries:
        by_verdict.setdefault(said(entry.row), {}).setdefault(entry.name, []).append(" ".join(entry.audit.key.values()))
    told = {
        verdict: ", ".join(f"{name} ({some(audits)})" for name, audits in audits_of_name.items())
        for verdict, audits_of_name in by_verdict.items()
    }
    return "; ".join(f"{verdict}: {names}" for verdict, names in told.items())


def told_before(found: Examined) -> list[str]:
    """What stands above the verdicts: which of those that count could not have been biased."""
    if not found.blind:
        return []
    return [
        f"{len(found.blind)} of {number_of(len(found.looked_at), 'verdict')} of the gate could not have been biased, "
        f"and passing says nothing about them (--strict fails on them): {_by_name(found.blind)}"
    ]


def gate(plan: Plan, rule: Rule, found: Examined) -> int:
    """Checks every verdict in a plan's selection; returns 0, or `REFUSED`.

    Args:
        plan: The plan with the selection.
        rule: The conditions that close the gate.
        found: What `examine` has found.

    Raises:
        FairnessError: no verdict is refused, but a part was not measured, is out of date, or is degenerate; or no
            verdict that counts could have been biased. A gate that saw nothing stays closed.
    """
    closing, alone, tolerated = found.closing, found.alone, found.tolerated
    if alone:
        told = ", ".join(entry.told for entry in alone)
        print(f"biased within its own table, but not after correction over all verdicts: {told}", file=sys.stderr)
    if tolerated:
        told = ", ".join(entry.told for entry in tolerated)
        print(f"biased by at most {rule.tolerated:g} points, which --tolerate allows: {told}", file=sys.stderr)
    told = _told(plan, found, rule)
    if closing:  # whatever else is missing: this much was found
        print(told, file=sys.stderr)
        print(f"--fail-on {','.join(rule.refused)}: {', '.join(entry.told for entry in closing)}", file=sys.stderr)
        return REFUSED
    if found.open:
        raise FairnessError(f"--fail-on: {found.open}; the gate stays closed")
    print(f"{told}\nThe gate lets the run pass (exit status 0)")
    return 0


def _looked_at(study: AnyStudy, audit: Audit, wanted: list[str]) -> Iterator[Entry]:
    """The rows of an audit that count, with their names: rows with a verdict, and rows without one that are named.

    If a named measure has a verdict, its strata are not added.
    """
    column = study.identity[len(study.axes)]
    judged = {row[column] for row in audit.rows if study.gated(row)}
    for row in audit.rows:
        name = str(row[column])
        if study.gated(row) if not wanted else name in wanted and (study.gated(row) or row[column] not in judged):
            yield Entry(study, audit, row, name)


def _findings(study: AnyStudy, audit: Audit) -> Iterator[Entry]:
    """Findings about single names, which are not verdicts."""
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


def _after_correction(plan: Plan, rows: list[Entry]) -> set[int]:
    """The rows (by `id`) that remain significant when the gate is corrected over all audits that it checks.

    `p_holm` is corrected within its table. The smallest `p_holm` of a table is a valid p of "nothing in it differs".
    Holm's step-down over the tables' smallest values thus bounds the chance that a gate closes although nothing
    differs anywhere.
    """
    smallest: dict[tuple[str, str], float] = {}
    for entry in rows:
        smallest[entry.place] = min(smallest.get(entry.place, 1.0), entry.row["p_holm"])
    left, kept = len(smallest), set()
    for place in sorted(smallest, key=smallest.__getitem__):
        level = plan.project.parts[place[0]].level
        own = [entry.row for entry in rows if entry.place == place]
        standing = {id(row) for row in own if left * row["p_holm"] < level}
        if not standing:
            break
        kept |= standing
        left -= 1
    return kept


def _told(plan: Plan, found: Examined, rule: Rule) -> str:
    """The gate's rule and margins, its assumptions, and the smallest gap that it detects with 80% power."""
    rows = found.looked_at
    audits, level = {entry.place for entry in rows}, _level(plan, rows)
    closings = {"biased": "biased or differs", WORSE: "what became worse than the baseline"}
    refused = [closings.get(name, name) for name in rule.refused]
    closes = f"it closes on {' or '.join(refused)}"
    if rule.tolerated:
        closes += f", but on no rate that differs by {rule.tolerated:g} points at most"
    told = (
        f"The gate looked at {number_of(len(rows), 'verdict')} of {number_of(len(audits), 'audit')} and is corrected "
        f"over all of them: if nothing differs, it closes in at most {100 * level:g}% of runs; {closes}"
    )
    artefacts = sum(entry.row["verdict"] == ARTEFACT for entry in rows)
    if artefacts:
        told += f"; it passes over {number_of(artefacts, 'artefact')}, which a control explains"
    return "\n".join([*told_rule(found, rule), told, *detectable(plan, rows)])


def told_rule(found: Examined, rule: Rule) -> list[str]:
    """The rule, the margins and levels, and what decides otherwise than as shipped."""
    margins = f"Margins and levels: {', '.join(found.margins)}"
    return [f"Rule: {rule.told}", margins, told_judging(found.not_as_shipped)]


def _level(plan: Plan, rows: list[Entry]) -> float:
    return max((plan.project.parts[entry.study.name].level for entry in rows), default=0.05)


def detectable(plan: Plan, rows: list[Entry]) -> list[str]:
    """The smallest true gap that would have closed the gate four times in five: the range over rows, by unit."""
    audits, level = {entry.place for entry in rows}, _level(plan, rows)
    plain = quantile(1 - level / 2) + quantile(0.8)
    found: dict[str, list[tuple[float, str]]] = {}
    for entry in rows:
        least, unit = entry.row["minimum_detectable"], entry.row["unit"]
        # Diversity is a percentage but not a rate; a row that nobody shows has no gap to find.
        compares = said(entry.row) != NEVER_SEEN and (unit != "percent" or entry.row["effect_size"] is not None)
        if least and compares:  # this is the level of a single test; the gate's first step uses the level of all
            family = len(audits) * sum(other.place == entry.place for other in rows)
            needed = least * (quantile(1 - level / (2 * family)) + quantile(0.8)) / plain
            found.setdefault(unit, []).append((needed, entry.told))
    return [
        f"smallest gap that it detects with 80% power: {min(own)[0]:.3g}{UNITS[unit]} ({min(own)[1]})"
        + (f" to {max(own)[0]:.3g} ({max(own)[1]})" if len(own) > 1 else "")
        for unit, own in found.items()
    ]


def _asked(plan: Plan, study: AnyStudy) -> Callable[[Key], bool]:
    return lambda key: plan.selection.covers(study, plan.project, key)


def check_measures(plan: Plan, measures: str | None) -> None:
    """Raises FairnessError if a name to count is none of the plan's measures; nothing needs to be made for this."""
    _wanted(plan, measures)


def _wanted(plan: Plan, measures: str | None) -> list[str]:
    """The names of the rows that count; empty if all count."""
    if measures is None:
        return []
    wanted = [*Rule(measures=measures).names]
    asked = [study for study in plan.project.studies if plan.selection.study in (None, study.name)]
    parts = [plan.project.parts[study.name] for study in asked]
    known = list(dict.fromkeys(name for part in parts for name in part.measures()))
    readings = [name for part in parts for name in part.readings()]
    if unknown := [name for name in wanted if known and name not in (*known, *readings)]:
        raise FairnessError(f"--measures: unknown measure '{unknown[0]}'; choose from: {', '.join(known)}")
    return wanted
