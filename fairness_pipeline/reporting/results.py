"""What the lake holds of a study's verdicts, put together for a reader; knows no study."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairness_pipeline.project.study import AnyPart, AnyStudy
from fairness_pipeline.project.thresholds import not_as_shipped
from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL
from fairness_pipeline.statistics.comparison import AT_THE_END
from fairness_pipeline.statistics.units import UNITS
from fairness_pipeline.statistics.verdicts import (
    ARTEFACT,
    DIFFERS,
    DIFFERS_BY_LENGTH,
    FAIR_ON_AVERAGE,
    FINDINGS,
    HERE_ONLY,
    NOTHING_TO_JUDGE,
    TOO_FEW,
)
from fairness_pipeline.workspace.lake import Card, Key, Lake, Row

if TYPE_CHECKING:
    pass

NOT_MEASURED = "not measured"
CANNOT_TELL = "cannot tell"
"""The verdict of a measure at its floor or ceiling on both sides, or of too few words: its note has the bound."""
NEVER_SEEN = "never seen"
"""The verdict of a measure that no response shows on either side: nothing could differ."""

_ORDER = (
    "biased", DIFFERS, ARTEFACT, DIFFERS_BY_LENGTH, "inconclusive", FAIR_ON_AVERAGE, HERE_ONLY, "fair", CANNOT_TELL,
    NEVER_SEEN, NOTHING_TO_JUDGE,
)  # fmt: skip


@dataclass(frozen=True)
class Audit:
    """One partition of a study's significance table: its rows, or none where it was not measured.

    `stale` says that the profile's settings, data or answers have changed since it was made. `degenerate` is the reason
    why its verdicts mean nothing. `sha256` are the hashes of what it is about, where a report shows them.
    """

    key: Key
    rows: list[Row]
    card: Card | None = None
    stale: bool = False
    degenerate: str | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> bool:
        """Whether the lake holds it."""
        return bool(self.rows)

    @property
    def name(self) -> str:
        """For a reader."""
        return " × ".join(self.key.values())

    @property
    def anchor(self) -> str:
        """The `id` of its section in a report."""
        return "-".join(self.key.values())


def audits_of(
    study: AnyStudy, part: AnyPart, lake: Lake, stale: Collection[Key] = (), asked: Callable[[Key], bool] | None = None
) -> list[Audit]:
    """Every audit of a profile, measured or not. Audits that are made only on request are left out.

    Args:
        study: Whose.
        part: The profile's part of it.
        lake: What has been made.
        stale: The partitions that are out of date.
        asked: Which are asked for; those that the profile makes by default, where it is None.
    """
    wanted = asked or part.by_default
    audits = []
    for key in part.expected():
        card = lake.card(study.table, key)
        if card or wanted(key):
            rows = [{**row, **study.older, **row} for row in lake.read(study.table, key).to_pylist()] if card else []
            degenerate = study.degenerate(part, key, lake) if rows else None
            if degenerate:
                rows = [{**row, "verdict": NOTHING_TO_JUDGE} for row in rows]
            audits.append(Audit(key, rows, card, card is not None and key in stale, degenerate))
    return audits


def flat(study: AnyStudy, audits: list[Audit]) -> list[Row]:
    """The audits as rows that start with their partition. An unmeasured audit becomes one row that says so."""
    rows: list[Row] = []
    empty: Mapping[str, Any] = {study.identity[len(study.axes)]: None, "verdict": NOT_MEASURED}
    for audit in audits:
        rows += [{**audit.key, **row} for row in audit.rows] or [{**audit.key, **empty}]
    return rows


def said(row: Row) -> str:
    """A row's verdict as readers see it: `NEVER_SEEN` where neither side shows the measure, `CANNOT_TELL` where it is
    at its floor or ceiling, `HERE_ONLY` where another row shows that something differs."""
    if row["verdict"] == "fair" and HERE_ONLY in (row.get("note") or ""):
        return HERE_ONLY
    unseen = row["value_a"] == row["value_b"] == 0 and row["unit"] != "score"
    if row["verdict"] != "inconclusive":
        return str(row["verdict"])
    at_the_end = any(told in (row.get("note") or "") for told in (AT_THE_END, TOO_FEW))
    return NEVER_SEEN if unseen else CANNOT_TELL if at_the_end else "inconclusive"


def could_tell(row: Row) -> bool:
    """Whether the verdict could have been `biased`: the measure was seen, is not at an end, there are enough pairs and
    clusters, and the smallest gap of rates that would be found is a possible one."""
    if said(row) in (NEVER_SEEN, CANNOT_TELL) or row["n"] < FEWEST_TO_TELL:
        return False
    least = row.get("minimum_detectable")
    if row["verdict"] == "inconclusive" and row["unit"] == "percent" and least and least > _ALL:
        return False
    nothing_known = row.get("ci_low") is None and row.get("p_paired") == 1.0
    return row["verdict"] != "inconclusive" or not nothing_known


def in_margins(row: Row, name: str = "difference") -> float | None:
    """A difference, or an end of its interval, as a multiple of the margin. This puts all units on one scale."""
    return row[name] / row["margin"] if row["margin"] and row[name] is not None else None


def together(row: Row) -> bool:
    """Whether a row describes all responses together (diversity) instead of single ones."""
    return row["unit"] == "percent" and row.get("effect_size") is None


Severity = tuple[int, bool, bool, float]


def severity(study: AnyStudy) -> Callable[[Row], Severity]:
    """A sort key that puts the worst rows first: by verdict, then what harms, then by the difference in margins.

    Measures of single responses come before those of all together (diversity), which have no effect size.
    """
    return lambda row: (
        _ORDER.index(said(row)), together(row), not study.harmful(row), -abs(in_margins(row) or 0.0)
    )  # fmt: skip


def gravest(study: AnyStudy, audit: Audit) -> tuple[bool, Severity]:
    """A sort key of audits: by their worst row; those that were not measured, or leave nothing to judge, last."""
    rows = [severity(study)(row) for row in audit.rows if study.gated(row)]
    return not rows or audit.degenerate is not None, min(rows, default=(len(_ORDER), True, True, 0.0))


def worst_first(study: AnyStudy, audits: Iterable[Audit]) -> list[Audit]:
    """Audits sorted by their worst row."""
    return sorted(audits, key=lambda audit: gravest(study, audit))


def beside_subject(study: AnyStudy, audit: Audit) -> str:
    """The audit's partition beside its subject: its dimension, its corpus; empty if there is nothing."""
    return " · ".join(value for axis, value in audit.key.items() if axis != study.subject)


def warnings_of(study: AnyStudy, part: AnyPart, lake: Lake) -> list[str]:
    """What to read before any verdict: what decides otherwise than as shipped, and what the study says."""
    otherwise = not_as_shipped(part.settings, part.thresholds)
    return [*([told_judging(otherwise)] if otherwise else []), *study.warnings(part, lake)]


def told_judging(otherwise: Mapping[str, str]) -> str:
    """Whether verdicts are decided as shipped, and what is not so, by its place."""
    if not otherwise:
        return "Margins, levels and thresholds as shipped"
    changed = "; ".join(f"{place} {value}" for place, value in otherwise.items())
    return f"Margins, levels or thresholds not as shipped: {changed}"


def findings(study: AnyStudy, part: AnyPart, audits: Iterable[Audit]) -> list[str]:
    """One sentence about the worst row of each audit that shows a difference, with the names of its other such rows;
    what harms, and what has no reservations, comes first."""
    found = []
    for audit in audits:
        rows = sorted((row for row in audit.rows if study.gated(row)), key=severity(study))
        shown = [row for row in rows if said(row) in FINDINGS]
        if shown:
            worst, others = shown[0], ", ".join(study.label(row) for row in shown[1:])
            but = study.reservations(part, audit.key, worst)
            told = study.finding(part, audit.key, worst) + (f"; but {'; '.join(but)}" if but else "")
            told += f"; also found: {others}" if others else ""
            found.append(((together(worst), bool(but) and not study.harmful(worst)), told))
    return [told for _, told in sorted(found, key=lambda entry: entry[0])]


def artefacts(study: AnyStudy, part: AnyPart, audits: Iterable[Audit]) -> list[str]:
    """One sentence for each artefact, with the control's figure."""
    return [
        f"{study.finding(part, audit.key, row)}; {study.control(part, audit.key, row)}"
        for audit in audits
        for row in sorted((row for row in audit.rows if study.gated(row)), key=severity(study))
        if not audit.degenerate and said(row) == ARTEFACT
    ]


def ends(study: AnyStudy, audits: Iterable[Audit]) -> list[str]:
    """The three lines that an audit ends with: what was shown absent, what could remain, what was not looked at."""
    seen = [audit for audit in audits if audit.measured and not audit.degenerate]
    rows = [(audit, row) for audit in seen for row in audit.rows if study.gated(row)]
    if not rows:
        return []
    fair = [(audit, row) for audit, row in rows if said(row) == "fair"]
    shown = "; ".join(f"{audit.name} {study.label(row)}" for audit, row in fair[:_NAMED])
    more = f" and {len(fair) - _NAMED} more" if len(fair) > _NAMED else ""
    widest: dict[str, tuple[float, str]] = {}
    for audit, row in rows:
        reach = [abs(row[end]) for end in ("ci_low", "ci_high") if row.get(end) is not None]
        if said(row) not in FINDINGS and reach and not together(row):
            gap = max(reach), f"{audit.name} {study.label(row)}"
            widest[row["unit"]] = max(widest.get(row["unit"], gap), gap)
    could = "; ".join(f"{size:.3g}{UNITS[unit]} ({where})" for unit, (size, where) in widest.items())
    blind = [said(row) for _, row in rows if said(row) in (NEVER_SEEN, CANNOT_TELL)]
    return [
        f"Shown absent: {f'differences beyond the margin in {shown}{more}' if fair else 'nothing; no verdict is fair'}",
        f"Largest gap that could remain where none was found (95%): {could or 'not known'}",
        f"Not looked at: {study.unseen}" + (f"; {len(blind)} of {len(rows)} verdicts cannot tell" if blind else ""),
    ]


_NAMED = 4
"""Verdicts that are named."""
_ALL = 100.0
"""Points: no two rates differ by more."""


def counted(study: AnyStudy, audits: Iterable[Audit]) -> dict[str, int]:
    """The number of gated rows with each verdict, the gravest first. Verdicts that do not occur are left out."""
    found = [said(row) for audit in audits if not audit.degenerate for row in audit.rows if study.gated(row)]
    return {name: found.count(name) for name in _ORDER if name in found}


def gravest_rows(study: AnyStudy, audits: Iterable[Audit]) -> list[tuple[Audit, Row]]:
    """Every row whose verdict counts, with its audit, the worst first; without audits that leave nothing to judge."""
    judged = ((audit, row) for audit in audits if not audit.degenerate for row in audit.rows if study.gated(row))
    graveness = severity(study)
    return sorted(judged, key=lambda each: graveness(each[1]))


def folded(names: Sequence[str], rows: Iterable[Row], name: Callable[[Row], str | None]) -> tuple[list[str], list[str]]:
    """The columns of a table of verdicts, and those that it leaves out because no row under them was ever seen. If
    that were all of them, all are shown.

    Args:
        names: The columns, in their order.
        rows: The rows of all audits.
        name: The column of a row.
    """
    known = [(name(row), said(row) != NEVER_SEEN) for row in rows]
    there, seen = {own for own, _ in known}, {own for own, is_seen in known if is_seen}
    shown = [own for own in names if own in seen]
    return (shown, [own for own in names if own in there - seen]) if shown else (list(names), [])


def drawn_rows(study: AnyStudy, part: AnyPart, rows: Iterable[tuple[Audit, Row]]) -> list[tuple[str, Row, str]]:
    """The rows that a picture of differences in margins can show: each with its label, and what its sign says.

    Args:
        study: The study.
        part: The profile's part of it.
        rows: Rows of its significance table, in the order in which they are drawn.
    """
    return [
        (
            " · ".join([*audit.key.values(), study.label(row)]),
            read,
            study.direction(read, study.compared(part, audit.key, read)),
        )
        for audit, row in rows
        if row["n"] and in_margins(row) is not None  # n = 0: nothing measured
        for read in [study.decisive(row)]
    ]
