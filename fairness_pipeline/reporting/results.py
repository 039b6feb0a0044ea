"""What the lake holds of a study's verdicts, put together for a reader; knows no study."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fairness_pipeline.lake import Card, Key, Lake, Row
from fairness_pipeline.study import Part, Study

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Audit:
    """One partition of a study's significance table: its rows, or none where it was not measured.

    One that is `stale` was made with other settings, data or answers than the profile has now.
    """

    key: Key
    rows: list[Row]
    card: Card | None = None
    stale: bool = False

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
        """Of its section in a report."""
        return "-".join(self.key.values())


def audits_of(study: Study, part: Part, lake: Lake, stale: Collection[Key] = ()) -> list[Audit]:
    """Every audit of a profile, measured or not; without those that wait to be asked for.

    Args:
        study: Whose.
        part: The profile's part of it.
        lake: What has been made.
        stale: The partitions that are out of date.
    """
    audits = []
    for key in part.expected():
        card = lake.card(study.table, key)
        if card or part.by_default(key):
            rows = lake.read(study.table, key).to_pylist() if card else []
            audits.append(Audit(key, rows, card, card is not None and key in stale))
    return audits


def flat(study: Study, audits: list[Audit]) -> list[Row]:
    """The audits as rows that start with their partition; one that was not measured is a row that says so."""
    rows: list[Row] = []
    empty: Mapping[str, Any] = {study.identity[len(study.axes)]: None, "verdict": NOT_MEASURED}
    for audit in audits:
        rows += [{**audit.key, **row} for row in audit.rows] or [{**audit.key, **empty}]
    return rows
