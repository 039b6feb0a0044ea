"""What a person sees in the terminal: progress while it runs, verdicts as soon as they stand."""

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairness_pipeline.defs.listener import Listener
from fairness_pipeline.defs.plan import Outcome, Step
from fairness_pipeline.lake import Key, Row, partition_name
from fairness_pipeline.progress import Progress as ProgressFunction
from fairness_pipeline.project import Project
from fairness_pipeline.reporting.results import NOT_MEASURED, Audit
from fairness_pipeline.study import Study

_STYLES = {"biased": "red", "fair": "green", "inconclusive": "yellow", NOT_MEASURED: "dim"}
_FORMATS = {"percent": "{:+.3g}%", "score": "{:+.4f}"}
_PLAIN_EVERY = 10.0


class RunDisplay(Listener):
    """Shows a run: one line a finished step, a bar for each that is being made (a line now and then without terminal).

    Args:
        profile: The profile's name.
        stale: Steps that will run.
        total: All steps of the selection.
    """

    def __init__(self, profile: str, stale: int, total: int) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self._stale = stale
        self._done = 0
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(), console=self.console, transient=True, disable=not self.console.is_terminal,
        )  # fmt: skip
        self._tasks: dict[str, TaskID] = {}
        self.console.print(f"Profile [b]{profile}[/b]: {stale} of {total} partitions to make")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def starting(self, step: Step) -> None:
        """A step begins."""
        self._bar(step.key, step.label)

    def ended(self, outcome: Outcome) -> Outcome:
        """A step has ended; gives the outcome back."""
        self._done += 1
        if task := self._tasks.pop(partition_name(outcome.step.key), None):
            self._bars.remove_task(task)
        style = {"made": "", "unchanged": "dim", "failed": "red", "skipped": "yellow"}[outcome.state]
        text = f"[{self._done:>3}/{self._stale}] {outcome.step.label}"
        done = {"made": f"{outcome.seconds:6.1f} s", "unchanged": "unchanged"}
        detail = done.get(outcome.state) or f"{outcome.state}: {outcome.detail}"
        self.console.print(f"{text:<58} {detail}", style=style or None, markup=False)
        return outcome

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Another run makes the partition; this one waits."""
        self.console.print(f"{asset} {partition_name(key)}: waiting for {holder}, which makes it now", style="yellow")

    def progress(self, asset: str, key: Key) -> ProgressFunction:
        """Moves the partition's bar, or prints a line every ten seconds where there is no terminal."""
        label = " ".join([asset, *key.values()])
        last = time.monotonic()
        task = self._bar(key, label)

        def tell(done: int, total: int | None, note: str) -> None:
            nonlocal last
            if task in self._bars.task_ids:
                self._bars.update(task, total=total, completed=done, note=note)
            if not self.console.is_terminal and time.monotonic() - last > _PLAIN_EVERY:
                last = time.monotonic()
                share = f"{100 * done / total:3.0f}%" if total else f"{done:,}"
                self.console.print(f"          {label}: {share} {note}", markup=False)

        return tell

    def _bar(self, key: Key, label: str) -> TaskID:
        place = partition_name(key)
        if place not in self._tasks:
            self._tasks[place] = self._bars.add_task("", total=None, note="")
        self._bars.reset(self._tasks[place], description=escape(label), total=None, note="")
        return self._tasks[place]


def print_verdicts(study: Study, project: Project, audits: list[Audit], console: Console | None = None) -> None:
    """The verdicts at a glance: one row an audit, one column a heading of the study."""
    table = Table(
        title=f"{study.title}, profile {project.name} (difference: first group minus second)", title_justify="left"
    )
    for heading in (*(axis.capitalize() for axis in study.axes), *study.headings):
        table.add_column(heading)
    for audit in audits:
        groups = " / ".join(study.groups(project, audit.key))
        first, *others = audit.key.values()
        cells = [_cell(study, audit, heading) for heading in study.headings]
        table.add_row(f"{escape(first)}\n[dim]{escape(groups)}[/dim]", *map(escape, others), *cells)
    shown = console or Console()
    if not shown.is_terminal:
        shown = Console(width=150, file=shown.file)
    shown.print(table)


def _cell(study: Study, audit: Audit, heading: str) -> str:
    if not audit.measured:
        return _styled(NOT_MEASURED)
    rows = [row for row in audit.rows if study.gated(row) and study.heading(row) == heading]
    if len(rows) == 1 and study.label(rows[0]) == heading:
        return _verdict(rows[0])
    return "\n".join(f"{escape(study.label(row))}: {_verdict(row)}" for row in rows) or "-"


def _verdict(row: Row) -> str:
    number = _FORMATS.get(row["unit"], "{:+.3g}").format(row["difference"])
    return f"{_styled(row['verdict'])} {number}"


def _styled(verdict: str) -> str:
    return f"[{_STYLES[verdict]}]{verdict}[/]"


def print_table(names: list[str], rows: list[Row]) -> None:
    """Rows as a plain table; numbers to four digits."""
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_plain(row.get(name)) for name in names))
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(width=220, highlight=False)
    console.print(table)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))
