"""Advises what to do now, a line for each kind of verdict, below every report, table of verdicts and page of the UI."""

from collections.abc import Sequence
from typing import NamedTuple

from fairness_pipeline.foundation.plain_text import some
from fairness_pipeline.project.study import AnyPart, AnyStudy, Judged
from fairness_pipeline.reporting.results import (
    CANNOT_TELL,
    NEVER_SEEN,
    NOT_MEASURED,
    Audit,
    severity,
    shown_verdict,
    worst_first,
)
from fairness_pipeline.reporting.viewer.address import address_of
from fairness_pipeline.statistics.verdicts import (
    ARTEFACT,
    DIFFERS,
    DIFFERS_BY_LENGTH,
    FAIR_ON_AVERAGE,
    HERE_ONLY,
    NOTHING_TO_JUDGE,
    TOO_FEW,
)

_READ = ("biased", DIFFERS, DIFFERS_BY_LENGTH, FAIR_ON_AVERAGE, HERE_ONLY)
"""Verdicts whose pairs should be read."""


class NextStep(NamedTuple):
    """A line: the kind of verdict, the rows that have it, what to do, and where the viewer shows the worst row's pairs
    (empty if there is nothing to read)."""

    verdict: str
    rows: str
    advice: str
    pairs: str = ""

    @property
    def line(self) -> str:
        """The line for a terminal."""
        pairs = f"; the pairs, while it runs: {self.pairs}" if self.pairs else ""
        return f"{self.verdict} ({self.rows}): {self.advice}{pairs}"


def next_steps(study: AnyStudy, part: AnyPart, audits: Sequence[Audit]) -> list[NextStep]:
    """Returns a line for each kind of verdict that the audits have, the gravest first; never an empty list."""
    profile, steps = part.project.name, list[NextStep]()
    by_verdict: dict[str, list[tuple[Audit, Judged]]] = {}
    judged = [audit for audit in audits if audit.measured and not audit.degenerate]
    rows = [(audit, row) for audit in worst_first(study, judged) for row in audit.rows if study.gated(row)]
    for audit, row in sorted(rows, key=lambda entry: severity(study)(entry[1])):
        by_verdict.setdefault(shown_verdict(row), []).append((audit, Judged(audit.key, row)))
    for verdict, entries in by_verdict.items():
        names = [f"{audit.name} {study.label(entry.row)}" for audit, entry in entries]
        advice, first = _advice(study, part, verdict, [entry for _, entry in entries]), entries[0][1]
        measure = str({**first.key, **first.row}[study.identity[len(study.axes)]])
        pairs = address_of(study, first.key, measure) if verdict in _READ else ""
        steps.append(NextStep(verdict, some(names), advice, pairs))
    run = f"fairness-pipeline run --profile {profile} --study {study.name}"
    if degenerate := [audit.name for audit in audits if audit.degenerate]:
        advice = "train or choose another model; this one gives the same answer to everything, or guesses"
        steps.append(NextStep(NOTHING_TO_JUDGE, some(degenerate), advice))
    if stale := [audit.name for audit in judged if audit.stale]:
        steps.append(NextStep("out of date", some(stale), f"make it again: {run}"))
    if missing := [audit.name for audit in audits if not audit.measured]:
        steps.append(NextStep(NOT_MEASURED, some(missing), f"measure it: {run}; the run says why it failed"))
    return steps or [NextStep(NOT_MEASURED, "everything", f"name something to audit, then {run}")]


def _advice(study: AnyStudy, part: AnyPart, verdict: str, rows: list[Judged]) -> str:
    """Returns what to do about rows with the same verdict."""
    profile = part.project.name
    view = f"fairness-pipeline view --profile {profile}"
    if verdict in ("biased", DIFFERS):
        words = next((f" of {judged.row['carried_by']}" for judged in rows if judged.row.get("carried_by")), "")
        cure = study.cure(part, rows)
        return f"read the {study.observed}s{words} ({view})" + (f"; {cure}" if cure else "")
    if verdict == DIFFERS_BY_LENGTH:
        return f"read the words that tell the answers apart ({view}); more words in the dimension's file would tell"
    if verdict == ARTEFACT:
        return "nothing to mend in the system: show the control's figure beside it, or choose another instrument"
    if verdict in ("inconclusive", NEVER_SEEN):
        return study.more(part, rows)
    if verdict == CANNOT_TELL:
        notes = [judged.row["note"] for judged in rows if TOO_FEW in (judged.row["note"] or "")]
        return (
            notes[0]
            if notes
            else "report the bound given in the note; more pairs or items narrow it, and other questions may show more"
        )
    if verdict in (FAIR_ON_AVERAGE, HERE_ONLY):
        return f"show it with this reservation, and read where it does not hold ({view})"
    return f"nothing: show this (fairness-pipeline evidence --profile {profile})"
