"""Computes the age of answers: a subject that passed a gate yesterday may have changed since."""

from datetime import UTC, datetime, timedelta

from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.workspace.lake import Card, Key, Lake


def asked_at(lineage: Lineage, lake: Lake, name: str, key: Key, card: Card | None = None) -> datetime | None:
    """Returns when a partition's answers were asked for; None if it has none, or asks no subject.

    Answers count from the start of their query epoch: a stopped run may have asked for some of them then.
    """
    if not lineage.assets[name].asks or (card := card or lake.card(name, key)) is None:
        return None
    written, began = lake.written(name, key), card.inputs["settings"].get("round")
    return min(filter(None, (written, began and datetime.fromisoformat(began))), default=None)


def too_old(lineage: Lineage, asked: datetime) -> timedelta | None:
    """How old answers are, if they are older than the profile allows; otherwise None."""
    limit, age = lineage.project.profile.max_answer_age, datetime.now(UTC) - asked
    return age if limit is not None and age > limit else None


def age_in_words(age: timedelta) -> str:
    """An age in its largest unit.

    Examples:
        >>> age_in_words(timedelta(days=3, hours=5)), age_in_words(timedelta(minutes=1)), age_in_words(timedelta())
        ('3 days old', '1 minute old', 'new')
    """
    for unit in ("day", "hour", "minute"):
        if count := age // timedelta(**{f"{unit}s": 1}):
            return f"{number_of(count, unit)} old"
    return "less than a minute old" if age else "new"
