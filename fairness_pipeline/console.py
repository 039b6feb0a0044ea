"""What a person sees in the terminal: progress while it runs, verdicts at the end."""

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairness_pipeline.corpora.equity_sentences import GROUPS
from fairness_pipeline.defs.resources import Listener
from fairness_pipeline.defs.walk import Outcome, Step
from fairness_pipeline.lake import Key, partition_name
from fairness_pipeline.models.systems.specification import AFFECTS
from fairness_pipeline.progress import Progress as ProgressFunction
from fairness_pipeline.project import Project
from fairness_pipeline.reporting.equity_results import EquityAudit
from fairness_pipeline.reporting.labels import GLANCE, MEASURES, measure_label
from fairness_pipeline.reporting.results import Audit

_STYLES = {"biased": "red", "fair": "green", "inconclusive": "yellow", "not measured": "dim"}
_PLAIN_EVERY = 10.0


class RunDisplay(Listener):
    """Shows a walk: one line a finished step, a bar for the one that runs (a line now and then where no terminal is).

    Args:
        profile: The profile's name.
        stale: Steps that will run.
        total: All steps of the selection.
    """

    def __init__(self, profile: str, stale: int, total: int) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._stale = stale
        self._done = 0
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(), console=self._console, transient=True, disable=not self._console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=None, note="", visible=False)
        self._console.print(f"Profile [b]{profile}[/b]: {stale} of {total} partitions to make")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def starting(self, step: Step) -> None:
        """A step begins."""
        self._bar.update(self._task, description=step.label, total=None, completed=0, note="", visible=True)

    def ended(self, outcome: Outcome) -> Outcome:
        """A step has ended; gives the outcome back."""
        self._done += 1
        style = {"made": "", "unchanged": "dim", "failed": "red", "skipped": "yellow"}[outcome.state]
        text = f"[{self._done:>3}/{self._stale}] {outcome.step.label}"
        done = {"made": f"{outcome.seconds:6.1f} s", "unchanged": "unchanged"}
        detail = done.get(outcome.state) or f"{outcome.state}: {outcome.detail}"
        self._console.print(f"{text:<58} {detail}", style=style or None, markup=False)
        return outcome

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Another run makes the partition; this one waits."""
        self._console.print(f"{asset} {partition_name(key)}: waiting for {holder}, which makes it now", style="yellow")

    def progress(self, asset: str, key: Key) -> ProgressFunction:
        """Moves the bar, or prints a line every ten seconds where there is no terminal."""
        label = " ".join([asset, *key.values()])
        last = time.monotonic()
        self._bar.update(self._task, description=label, total=None, completed=0, note="", visible=True)

        def tell(done: int, total: int | None, note: str) -> None:
            nonlocal last
            self._bar.update(self._task, total=total, completed=done, note=note)
            if not self._console.is_terminal and time.monotonic() - last > _PLAIN_EVERY:
                last = time.monotonic()
                share = f"{100 * done / total:3.0f}%" if total else f"{done:,}"
                self._console.print(f"          {label}: {share} {note}", markup=False)

        return tell


def print_verdicts(project: Project, audits: list[Audit]) -> None:
    """The verdicts at a glance: one row a dimension and model, one column a measure."""
    table = Table(
        title=f"Verdicts, profile {project.name} (difference: first group minus second)", title_justify="left"
    )
    for heading in ("Dimension", "Model", *(measure_label(measure) for measure in GLANCE), "Attribute words"):
        table.add_column(heading)
    for audit in audits:
        by_measure = {row["measure"]: row for row in audit.rows}
        cells = [_cell(by_measure.get(measure)) for measure in GLANCE]
        lists = [
            f"{measure_label(row['measure'])}: {_cell(row)}" for row in audit.rows if row["measure"] not in MEASURES
        ]
        groups = project.dimensions[audit.dimension].groups
        table.add_row(f"{audit.dimension}\n[dim]{groups.a} / {groups.b}[/dim]", audit.model, *cells, "\n".join(lists))
    Console(width=150 if not Console().is_terminal else None).print(table)


def print_equity_verdicts(project: Project, audits: list[EquityAudit]) -> None:
    """The verdicts on sentiment systems at a glance: one row a dimension and system, one column an affect."""
    table = Table(
        title=f"Sentiment equity, profile {project.name} (difference of scores: first group minus second)",
        title_justify="left",
    )
    for heading in ("Dimension", "System", *AFFECTS):
        table.add_column(heading)
    for audit in audits:
        cells = []
        for affect in AFFECTS:
            row = audit.row(affect)
            verdict = row["verdict"] if row else "not measured"
            text = f"{verdict} {row['difference']:+.4f}" if row else "-" if audit.measured else verdict
            cells.append(f"[{_STYLES[verdict]}]{text}[/]")
        groups = " / ".join(GROUPS[audit.dimension])
        table.add_row(f"{audit.dimension}\n[dim]{groups}[/dim]", escape(audit.system), *cells)
    Console(width=150 if not Console().is_terminal else None).print(table)


def _cell(row: dict[str, Any] | None) -> str:
    verdict = row["verdict"] if row else "not measured"
    number = f" {row['difference']:+.3g}{'%' if row['unit'] == 'percent' else ''}" if row else ""
    return f"[{_STYLES[verdict]}]{verdict}[/]{number}"


def print_table(names: list[str], rows: list[dict[str, Any]]) -> None:
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
