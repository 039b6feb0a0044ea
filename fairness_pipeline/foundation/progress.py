"""Lets a long stage report its progress without knowing who listens."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[int, int | None, str], None]
"""Called with (done, total or None, note), about once a batch. It must return quickly."""

T = TypeVar("T")
_EVERY = 1000


def report(progress: Progress | None, done: int, total: int | None, note: str = "") -> None:
    """Calls `progress`, if there is one."""
    if progress:
        progress(done, total, note)


def within(progress: Progress | None, number: int, parts: int, name: str = "") -> Progress:
    """The progress of one of several parts of a stage, numbered from 1; `name` comes before its notes."""
    return lambda done, total, note: report(
        progress, (number - 1) * (total or 0) + done, parts * (total or 0), ", ".join(filter(None, (name, note)))
    )


def track(items: Iterable[T], progress: Progress | None, total: int | None = None, note: str = "") -> Iterator[T]:
    """Yields `items`, and reports now and then how many have passed."""
    done = 0
    for done, item in enumerate(items, start=1):
        if done % _EVERY == 0:
            report(progress, done, total, note)
        yield item
    report(progress, done, total, note)
