"""Compares gaps with those of an earlier run: did they become smaller, or larger?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyStudy
from fairness_pipeline.reporting.gaps import Gaps, gaps_in, gaps_of
from fairness_pipeline.reporting.results import Audit, shown_verdict
from fairness_pipeline.reporting.samples import AS_ANSWERED
from fairness_pipeline.statistics.change import Change, change_of_difference, change_of_estimates, change_of_groups
from fairness_pipeline.statistics.controls import TOO_SMALL
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.intervals import Estimate, of_interval
from fairness_pipeline.statistics.units import UNITS
from fairness_pipeline.statistics.verdicts import FINDINGS
from fairness_pipeline.workspace.lake import Lake, Row

_FEWEST = 30
"""With fewer pairs in common two runs are compared by their intervals."""


@dataclass(frozen=True)
class Changed:
    """A verdict, compared with that of the earlier run.

    Args:
        study: The study.
        audit: The present audit.
        row: Its row.
        then: The row of the earlier run; None if that has none.
        change: How the gap changed, in the row's unit; None if no test can say it.
        basis: What was compared: `400 same pairs`, `two intervals`, or why nothing was.
        p_holm: The p of the change (or of the row, where no test can compare), adjusted over all comparisons.
        level: The level below which a change is shown.
    """

    study: AnyStudy
    audit: Audit
    row: Row
    then: Row | None
    change: Change | None
    basis: str
    p_holm: float = 1.0
    level: float = 0.05

    @property
    def name(self) -> str:
        """The audit and the row, for readers."""
        return f"{self.audit.name} {self.study.label(self.row)}"

    @property
    def shown(self) -> bool:
        """Whether the change is shown."""
        return self.change is not None and self.p_holm < self.level

    @property
    def turned(self) -> bool:
        """Whether the verdict has changed."""
        return self.then is not None and shown_verdict(self.then) != shown_verdict(self.row)

    @property
    def worse(self) -> bool:
        """Whether the gap is shown to be larger and not shown to be small; or whether there is a finding that the
        earlier run does not have, and no test can say whether that is a change."""
        if self.change is None:
            new = self.then is None or shown_verdict(self.then) not in FINDINGS
            return new and shown_verdict(self.row) in FINDINGS and self.p_holm < self.level
        return self.shown and self.change.change > 0 and self.row["verdict"] != "fair"

    @property
    def is_news(self) -> bool:
        """Whether it is reported by name."""
        return self.shown or self.turned or self.worse

    @property
    def sentence(self) -> str:
        """The verdicts, and the change of the gap."""
        verdicts = (
            f"{shown_verdict(self.then)} -> {shown_verdict(self.row)}"
            if self.then and self.turned
            else shown_verdict(self.row)
        )
        return f"{self.name}: {verdicts}; {self.description}"

    @property
    def description(self) -> str:
        """The change of the gap: `the gap shrank by 0.97 a response (0.6 to 1.3), 400 same pairs`."""
        if self.change is None:
            return f"no test of a change: {self.basis}"
        unit, change = UNITS[self.row["unit"]], self.change
        if not self.shown:
            sign, interval = "+" if change.change > 0 else "", f"{_short(change.low)} to {_short(change.high)}"
            return f"no change of the gap is shown: {sign}{_short(change.change)}{unit} ({interval}), {self.basis}"
        low, high = sorted((abs(change.low), abs(change.high)))
        text = f"the gap {'shrank' if change.change < 0 else 'grew'} by {_short(abs(change.change))}{unit}"
        levels = f"from {_short(abs(change.before))} to {_short(abs(change.after))}"
        return f"{text} ({_short(low)} to {_short(high)}), {levels}, {self.basis}"


def _short(value: float) -> str:
    """Formats a number with two digits; large ones without decimals."""
    return f"{value:.2g}" if abs(value) < 99.5 else f"{value:.0f}"


def changes_since(
    study: AnyStudy, project: Project, lake: Lake, audits: Sequence[Audit], then: Sequence[Row], gaps: pa.Table | None
) -> list[Changed]:
    """Returns every verdict compared with that of an earlier run, before correction.

    The gap's change is tested over the pairs that both runs asked, with the clusters of the verdict. Where a verdict
    rests on all answers together or is out of date, the earlier run kept no pairs, or few are the same, the two
    intervals are compared as if the runs were independent.

    Args:
        study: The study.
        project: The profile.
        lake: What has been made.
        audits: The present audits.
        then: The rows of the earlier run.
        gaps: The pairs of the earlier run, as `gaps_table` makes them.
    """
    earlier_rows = {tuple(row[name] for name in study.identity): row for row in then}
    changes = []
    for audit in audits:
        if not audit.measured or audit.degenerate:
            continue
        earlier = gaps_in(gaps, audit.key) if gaps is not None else None
        now = gaps_of(study, project, lake, audit.key) if earlier and not audit.stale else None
        for row in filter(study.gated, audit.rows):
            full_row = {**audit.key, **row}
            earlier_row = earlier_rows.get(tuple(full_row[name] for name in study.identity))
            changes.append(_changed(study, audit, row, earlier_row, now, earlier))
    return changes


def corrected(changes: Sequence[Changed], level: float) -> list[Changed]:
    """Returns the changes with p adjusted over all of them. A new finding that no test can compare counts as worse,
    so its own p belongs to the same family."""
    p_values = [changed.change.p if changed.change else changed.row["p_holm"] for changed in changes]
    return [replace(changed, p_holm=p, level=level) for changed, p in zip(changes, holm(p_values), strict=True)]


def worth_telling(changes: Sequence[Changed]) -> tuple[list[Changed], str]:
    """Returns the verdicts that turned and the gaps that changed, worse ones first; and a line about the others."""
    news = [changed for changed in changes if changed.is_news]
    new = sum(changed.then is None and not changed.is_news for changed in changes)
    unchanged = len(changes) - len(news) - new
    line = f"no change is shown in {number_of(unchanged, 'other verdict' if news else 'verdict')}"
    return sorted(news, key=lambda changed: not changed.worse), f"{line}; {new} are new" if new else line


def _changed(
    study: AnyStudy, audit: Audit, row: Row, then: Row | None, now: Gaps | None, earlier: Gaps | None
) -> Changed:
    if then is None:
        return Changed(study, audit, row, None, None, "the earlier run has no such verdict")
    if any(study.decisive(run_row).get("ci_low") is None for run_row in (then, row)):  # one stratum, or single items
        return Changed(study, audit, row, then, None, "what its verdict rests on has no interval")
    measure = str(row[study.identity[len(study.axes)]])
    common = set(now.differences) & set(earlier.differences) if now and earlier else set()
    if TOO_SMALL in (row.get("note") or "") and measure + AS_ANSWERED in common:
        measure += AS_ANSWERED
    over_pairs = _over_pairs(now, earlier, measure, row) if now and earlier and measure in common else None
    return Changed(study, audit, row, then, *(over_pairs or (_over_intervals(study, row, then), "two intervals")))


def _over_intervals(study: AnyStudy, row: Row, then: Row) -> Change:
    """Returns the change by the intervals of both runs, as if they were independent."""
    before, after = (_estimate(study, run_row) for run_row in (then, row))
    means, opposite = (before.centre, after.centre), before._replace(centre=-before.centre)
    return change_of_estimates(means, after.minus(before), after.minus(opposite), "z")


def _estimate(study: AnyStudy, row: Row) -> Estimate:
    """Returns the difference that the row's verdict rests on, or would rest on if it were biased."""
    decisive = study.decisive({**row, "verdict": "biased", "note": (row.get("note") or "").replace(TOO_SMALL, "")})
    decisive = row if decisive.get("ci_low") is None else decisive
    return of_interval(decisive["difference"], decisive.get("ci_low"), decisive.get("ci_high"))


def _over_pairs(now: Gaps, earlier: Gaps, measure: str, row: Row) -> tuple[Change, str] | None:
    """Returns the change over the pairs that both runs have; None if these are few, or few of the smaller run's."""
    _, now_index, earlier_index = np.intersect1d(now.pairs, earlier.pairs, assume_unique=True, return_indices=True)
    after, before = now.differences[measure][now_index], earlier.differences[measure][earlier_index]
    finite = np.isfinite(after) & np.isfinite(before)
    now_index, after, before = now_index[finite], after[finite], before[finite]
    smaller = min(np.isfinite(gaps.differences[measure]).sum() for gaps in (now, earlier))
    if len(after) < max(_FEWEST, smaller / 2):
        return None
    clusters = [cluster[now_index] for cluster in now.clusters]
    step = 0.0 if row["unit"] == "score" else 1.0
    if now.on_a is None:
        change, units = change_of_difference(before, after, step, clusters), "same pairs"
    else:
        on_a = now.on_a[now_index]
        if not 1 < on_a.sum() < len(on_a) - 1:
            return None
        change, units = change_of_groups(before, after, on_a, step, clusters), "same texts"
    scale = 100.0 if row["unit"] == "percent" else 1.0
    return change.scaled(scale), f"{len(after):,} {units}"


def with_changes(study: AnyStudy, turned: Sequence[Row], changes: Sequence[Changed]) -> list[Row]:
    """Returns the verdicts that turned, as `history.against` gives them, each with the change of its gap; then the rows
    with the same verdict whose gap is shown to have changed.
    """
    by_identity = {
        tuple({**changed.audit.key, **changed.row}[name] for name in study.identity): changed for changed in changes
    }
    rows = [{**row, **_columns(by_identity.pop(tuple(row[name] for name in study.identity), None))} for row in turned]
    for identity, changed in by_identity.items():
        if changed.shown and changed.then:
            values = {
                f"{name}_{when}": value
                for name, getter in (("difference", lambda row: row["difference"]), ("verdict", shown_verdict))
                for when, value in (("then", getter(changed.then)), ("now", getter(changed.row)))
            }
            rows.append({**dict(zip(study.identity, identity, strict=True)), **values, **_columns(changed), "why": ""})
    return rows


def _columns(changed: Changed | None) -> Row:
    """Returns the change of a gap in words and numbers."""
    change = changed.change if changed else None
    return {
        "change": changed.description if changed else "",
        "change_low": change.low if change else None,
        "change_high": change.high if change else None,
        "change_p_holm": changed.p_holm if changed and change else None,
    }
