"""Prepares the verdicts that the lake holds of a study for readers; knows no study."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairness_pipeline.project.study import AnyPart, AnyStudy
from fairness_pipeline.project.thresholds import not_as_shipped
from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL
from fairness_pipeline.statistics.comparison import AT_THE_END, exact_bound
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
    why its verdicts mean nothing. `sha256` holds the hashes of what it is about, where a report shows them.
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
        """The partition, for readers."""
        return " × ".join(self.key.values())

    @property
    def anchor(self) -> str:
        """The `id` of its section in a report."""
        return "-".join(self.key.values())


def audits_of(
    study: AnyStudy, part: AnyPart, lake: Lake, stale: Collection[Key] = (), asked: Callable[[Key], bool] | None = None
) -> list[Audit]:
    """Returns every audit of a profile, measured or not. Audits made only on request are left out until they are made.

    Args:
        study: The study.
        part: The profile's part of it.
        lake: What has been made.
        stale: The partitions that are out of date.
        asked: Whether a partition is requested; if None, those that the profile makes by default are.
    """
    requested = asked or part.by_default
    audits = []
    for key in part.expected():
        card = lake.card(study.table, key)
        if card or requested(key):
            rows = (
                [{**row, **study.older, **row} for row in lake.read_small(study.table, key).to_pylist()] if card else []
            )
            degenerate = study.degenerate(part, key, lake) if rows else None
            if degenerate:
                rows = [{**row, "verdict": NOTHING_TO_JUDGE} for row in rows]
            audits.append(Audit(key, rows, card, card is not None and key in stale, degenerate))
    return audits


def flat(study: AnyStudy, audits: list[Audit]) -> list[Row]:
    """Returns the audits as rows that start with their partition. An unmeasured audit becomes one row that says so."""
    rows: list[Row] = []
    empty: Mapping[str, Any] = {study.identity[len(study.axes)]: None, "verdict": NOT_MEASURED}
    for audit in audits:
        rows += [{**audit.key, **row} for row in audit.rows] or [{**audit.key, **empty}]
    return rows


def shown_verdict(row: Row) -> str:
    """Returns a row's verdict as readers see it: `NEVER_SEEN` where neither side shows the measure, `CANNOT_TELL` where
    it is at its floor or ceiling, `HERE_ONLY` where another row shows that something differs."""
    if row["verdict"] == "fair" and HERE_ONLY in (row.get("note") or ""):
        return HERE_ONLY
    unseen = row["value_a"] == row["value_b"] == 0 and row["unit"] != "score"
    if row["verdict"] != "inconclusive":
        return str(row["verdict"])
    at_the_end = any(phrase in (row.get("note") or "") for phrase in (AT_THE_END, TOO_FEW))
    return NEVER_SEEN if unseen else CANNOT_TELL if at_the_end else "inconclusive"


def could_be_biased(row: Row) -> bool:
    """Whether the verdict could have been `biased`: the measure was seen, it is not at its floor or ceiling, there are
    enough pairs and clusters, and the smallest detectable gap of rates is possible."""
    if shown_verdict(row) in (NEVER_SEEN, CANNOT_TELL) or row["n"] < FEWEST_TO_TELL:
        return False
    least = row.get("minimum_detectable")
    if row["verdict"] == "inconclusive" and row["unit"] == "percent" and least and least > _LARGEST_GAP:
        return False
    nothing_known = row.get("ci_low") is None and row.get("p_paired") == 1.0
    return row["verdict"] != "inconclusive" or not nothing_known


def in_margins(row: Row, name: str = "difference") -> float | None:
    """Returns a difference, or an end of its interval, as a multiple of the margin, one scale for all units."""
    return row[name] / row["margin"] if row["margin"] and row[name] is not None else None


def together(row: Row) -> bool:
    """Whether a row describes all responses together (diversity) instead of single ones."""
    return row["unit"] == "percent" and row.get("effect_size") is None


Severity = tuple[int, bool, bool, float]


def severity(study: AnyStudy) -> Callable[[Row], Severity]:
    """Returns a sort key with the worst rows first: by verdict, then what harms, then by the difference in margins.

    Measures of single responses come before those of all together (diversity), which have no effect size.
    """
    return lambda row: (
        _ORDER.index(shown_verdict(row)), together(row), not study.harmful(row), -abs(in_margins(row) or 0.0)
    )  # fmt: skip


def gravest(study: AnyStudy, audit: Audit) -> tuple[bool, Severity]:
    """Returns a sort key of audits: by their worst row; those not measured, or with nothing to judge, last."""
    rows = [severity(study)(row) for row in audit.rows if study.gated(row)]
    return not rows or audit.degenerate is not None, min(rows, default=(len(_ORDER), True, True, 0.0))


def worst_first(study: AnyStudy, audits: Iterable[Audit]) -> list[Audit]:
    """Sorts audits by their worst row."""
    return sorted(audits, key=lambda audit: gravest(study, audit))


def beside_subject(study: AnyStudy, audit: Audit) -> str:
    """Returns the audit's partition without its subject: its dimension, its corpus; empty if there is nothing else."""
    return " · ".join(value for axis, value in audit.key.items() if axis != study.subject)


def warnings_of(study: AnyStudy, part: AnyPart, lake: Lake) -> list[str]:
    """Returns what to read before any verdict: settings that are not as shipped, and the study's warnings."""
    otherwise = not_as_shipped(part.settings, part.thresholds)
    return [*([describe_judging(otherwise)] if otherwise else []), *study.warnings(part, lake)]


def describe_judging(otherwise: Mapping[str, str]) -> str:
    """Returns in words whether verdicts are decided as shipped, and which settings differ, by key."""
    if not otherwise:
        return "Margins, levels and thresholds as shipped"
    changed = "; ".join(f"{setting} {value}" for setting, value in otherwise.items())
    return f"Margins, levels or thresholds not as shipped: {changed}"


def findings(study: AnyStudy, part: AnyPart, audits: Iterable[Audit]) -> list[str]:
    """Returns a sentence about the worst row of each audit that shows a difference, with its other such rows;
    what harms, and what has no reservations, comes first."""
    sentences = []
    for audit in audits:
        rows = sorted((row for row in audit.rows if study.gated(row)), key=severity(study))
        biased = [row for row in rows if shown_verdict(row) in FINDINGS]
        if biased:
            worst, others = biased[0], ", ".join(study.label(row) for row in biased[1:])
            reservations = study.reservations(part, audit.key, worst)
            sentence = study.finding(part, audit.key, worst) + (
                f"; but {'; '.join(reservations)}" if reservations else ""
            )
            sentence += f"; also found: {others}" if others else ""
            sentences.append(((together(worst), bool(reservations) and not study.harmful(worst)), sentence))
    return [sentence for _, sentence in sorted(sentences, key=lambda entry: entry[0])]


def artefacts(study: AnyStudy, part: AnyPart, audits: Iterable[Audit]) -> list[str]:
    """Returns a sentence for each artefact, with the control's figure."""
    return [
        f"{study.finding(part, audit.key, row)}; {study.control(part, audit.key, row)}"
        for audit in audits
        for row in sorted((row for row in audit.rows if study.gated(row)), key=severity(study))
        if not audit.degenerate and shown_verdict(row) == ARTEFACT
    ]


def ends(study: AnyStudy, audits: Iterable[Audit]) -> list[str]:
    """Returns the last three lines of an audit: what was shown absent, what could remain, what was not looked at."""
    judged = [audit for audit in audits if audit.measured and not audit.degenerate]
    rows = [(audit, row) for audit in judged for row in audit.rows if study.gated(row)]
    if not rows:
        return []
    fair = [(audit, row) for audit, row in rows if shown_verdict(row) == "fair"]
    names = "; ".join(f"{audit.name} {study.label(row)}" for audit, row in fair[:_NAMED])
    more = f" and {len(fair) - _NAMED} more" if len(fair) > _NAMED else ""
    widest: dict[str, tuple[float, str]] = {}
    for audit, row in rows:
        exact = exact_bound(row.get("note") or "")  # wider than the interval
        reach = [abs(row[end]) for end in ("ci_low", "ci_high") if row.get(end) is not None]
        reach += [exact] if exact and reach else []
        if shown_verdict(row) not in FINDINGS and reach and not together(row):
            gap = max(reach), f"{audit.name} {study.label(row)}"
            widest[row["unit"]] = max(widest.get(row["unit"], gap), gap)
    remaining = "; ".join(f"{size:.3g}{UNITS[unit]} ({name})" for unit, (size, name) in widest.items())
    blind = [shown_verdict(row) for _, row in rows if shown_verdict(row) in (NEVER_SEEN, CANNOT_TELL)]
    return [
        f"Shown absent: {f'differences beyond the margin in {names}{more}' if fair else 'nothing; no verdict is fair'}",
        f"Largest gap that could remain where none was found (95%): {remaining or 'none; see each interval'}",
        f"Not looked at: {study.unseen}"
        + (f"; {len(blind)} of {len(rows)} measures saw too little to judge" if blind else ""),
    ]


_NAMED = 4
"""The number of verdicts that are named."""
_LARGEST_GAP = 100.0
"""Percentage points: no two rates differ by more."""


def counted(study: AnyStudy, audits: Iterable[Audit]) -> dict[str, int]:
    """Counts the gated rows with each verdict, the gravest first. Verdicts that do not occur are left out."""
    verdicts = [
        shown_verdict(row) for audit in audits if not audit.degenerate for row in audit.rows if study.gated(row)
    ]
    return {name: verdicts.count(name) for name in _ORDER if name in verdicts}


def gravest_rows(study: AnyStudy, audits: Iterable[Audit]) -> list[tuple[Audit, Row]]:
    """Returns every row whose verdict counts, with its audit, the worst first; without audits with nothing to judge."""
    judged = ((audit, row) for audit in audits if not audit.degenerate for row in audit.rows if study.gated(row))
    graveness = severity(study)
    return sorted(judged, key=lambda entry: graveness(entry[1]))


def folded(names: Sequence[str], rows: Iterable[Row], name: Callable[[Row], str | None]) -> tuple[list[str], list[str]]:
    """Returns the columns of a table of verdicts, and those that it leaves out because no row under them was ever
    seen. If that were all of them, it leaves out none.

    Args:
        names: The columns, in their order.
        rows: The rows of all audits.
        name: The column of a row.
    """
    known = [(name(row), shown_verdict(row) != NEVER_SEEN) for row in rows]
    present, seen = {column for column, _ in known}, {column for column, is_seen in known if is_seen}
    kept = [column for column in names if column in seen]
    return (kept, [column for column in names if column in present - seen]) if kept else (list(names), [])


def drawn_rows(study: AnyStudy, part: AnyPart, rows: Iterable[tuple[Audit, Row]]) -> list[tuple[str, Row, str]]:
    """Returns the rows that a picture of differences in margins can show, each with its label and what its sign says.
    What was never seen is left out: it has no difference.

    Args:
        study: The study.
        part: The profile's part of it.
        rows: Rows of its significance table, in the order in which they are drawn.
    """
    return [
        (
            " · ".join([*audit.key.values(), study.label(row)]),
            decisive,
            study.direction(decisive, study.compared(part, audit.key, decisive)),
        )
        for audit, row in rows
        if row["n"] and shown_verdict(row) != NEVER_SEEN and in_margins(row) is not None  # n = 0: nothing measured
        for decisive in [study.decisive(row)]
    ]
