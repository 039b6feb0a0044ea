"""The terminal output: progress during a run, and verdicts as soon as they are final."""

import json
import math
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairness_pipeline.foundation.csv_cells import write_rows
from fairness_pipeline.foundation.plain_text import latex_table, markdown_table, number_of, visible
from fairness_pipeline.foundation.progress import Progress as ProgressFunction
from fairness_pipeline.lineage.durations import Forecast
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.plan import Outcome, Step
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import AnyPart, AnyStudy
from fairness_pipeline.reporting.next_steps import next_steps
from fairness_pipeline.reporting.results import (
    CANNOT_TELL,
    NEVER_SEEN,
    NOT_MEASURED,
    Audit,
    artefacts,
    counted,
    ends,
    findings,
    folded,
    said,
    severity,
    warnings_of,
    worst_first,
)
from fairness_pipeline.statistics.verdicts import (
    ARTEFACT,
    DIFFERS,
    DIFFERS_BY_LENGTH,
    FAIR_ON_AVERAGE,
    FINDINGS,
    HERE_ONLY,
    NOTHING_TO_JUDGE,
)
from fairness_pipeline.workspace.lake import Key, Lake, Row, partition_name

_STYLES = {
    "biased": "red", ARTEFACT: "magenta", "fair": "green", "inconclusive": "yellow", FAIR_ON_AVERAGE: "cyan",
    NEVER_SEEN: "dim", CANNOT_TELL: "dim", DIFFERS: "bright_red", DIFFERS_BY_LENGTH: "yellow", HERE_ONLY: "green",
}  # fmt: skip
_MARKS = {
    "biased": "✗", DIFFERS: "≠", ARTEFACT: "◇", DIFFERS_BY_LENGTH: "≈", "fair": "✓", HERE_ONLY: "(✓)",
    "inconclusive": "?", FAIR_ON_AVERAGE: "~", CANNOT_TELL: "–", NEVER_SEEN: "·",
}  # fmt: skip
_PLAIN_MARKS = {
    "biased": "x", DIFFERS: "#", ARTEFACT: "o", DIFFERS_BY_LENGTH: "%", "fair": "=", HERE_ONLY: "(=)",
    "inconclusive": "?", FAIR_ON_AVERAGE: "~", CANNOT_TELL: "-", NEVER_SEEN: ".",
}  # fmt: skip
_FORMATS = {"percent": "{:+.1f}", "count_per_response": "{:+.2f}", "score": "{:+.3f}"}
_PLAIN_EVERY = 10.0
_FORECAST_EVERY, _SOON = 30.0, 15.0
"""Seconds between two forecasts of the time to the end, and a time that is too short to be told."""
_TOLD = 3
"""The number of findings described in words below a table of verdicts."""
_TOGETHER = {"ci_high": ("ci_low",), "value_b": ("value_a",), "p_holm": ("p",)}
"""Columns that are dropped together with another column."""
_NARROWEST = 20
"""The smallest width of a text column, in characters; a narrower table is shown record by record."""


class RunDisplay(Listener):
    """Shows a run: a line for each finished step and a bar for each running one; without a terminal a line at times.

    Args:
        profile: The profile's name.
        stale: The number of steps that will run.
        total: The number of steps in the selection.

    Attributes:
        forecast: What tells the time to the end; None as long as it is not known how many work.
    """

    def __init__(self, profile: str, stale: int, total: int) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self._stale = stale
        self._done = 0
        self.forecast: Forecast | None = None
        self._told = time.monotonic()
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
        """Shows that a step begins."""
        if self.forecast:
            self.forecast.began(step.place)
        self._bar(step.key, step.label)

    def ended(self, outcome: Outcome) -> Outcome:
        """Shows that a step has ended, and returns its outcome."""
        self._done += 1
        if self.forecast:
            self.forecast.ended(outcome.step.place, outcome.seconds if outcome.state == "made" else None)
        if task := self._tasks.pop(partition_name(outcome.step.key), None):
            self._bars.remove_task(task)
        style = {"made": "", "unchanged": "dim", "failed": "red", "skipped": "yellow"}[outcome.state]
        text = f"[{self._done:>3}/{self._stale}] {outcome.step.label}"
        done = {"made": f"{outcome.seconds:6.1f} s", "unchanged": "unchanged"}
        if outcome.state == "skipped":  # the step that it needed has failed and says why
            return outcome
        detail = done.get(outcome.state) or "failed (the reason is given at the end)"
        self.console.print(visible(f"{text:<58} {detail}"), style=style or None, markup=False)
        self._tell_the_end()
        return outcome

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Shows that another run is making the partition and that this run waits."""
        self.console.print(f"{asset} {partition_name(key)}: waiting for {holder}, which makes it now", style="yellow")

    def progress(self, asset: str, key: Key) -> ProgressFunction:
        """Moves the partition's bar, or prints a line every ten seconds without a terminal."""
        label = " ".join([asset, *key.values()])
        last = time.monotonic()
        task = self._bar(key, label)
        own = asset, partition_name(key)
        if self.forecast:
            self.forecast.began(own)

        def tell(done: int, total: int | None, note: str) -> None:
            nonlocal last
            if task in self._bars.task_ids:
                self._bars.update(task, total=total, completed=done, note=note)
            if not self.console.is_terminal and time.monotonic() - last > _PLAIN_EVERY:
                last = time.monotonic()
                share = f"{100 * done / total:3.0f}%" if total else f"{done:,}"
                self.console.print(f"          {label}: {share} {note}", markup=False)
            if self.forecast and total:
                self.forecast.progressed(own, done / total)
                self._tell_the_end()

        return tell

    def _tell_the_end(self) -> None:
        """Says at times how long the rest may take."""
        if not self.forecast or time.monotonic() - self._told < _FORECAST_EVERY:
            return
        seconds = self.forecast.seconds_left()
        if seconds is None or seconds < _SOON:
            return
        self._told = time.monotonic()
        told = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
        self.console.print(f"          about {told} to the end", style="dim", markup=False)

    def _bar(self, key: Key, label: str) -> TaskID:
        name = partition_name(key)
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task("", total=None, note="")
        self._bars.reset(self._tasks[name], description=escape(label), total=None, note="")
        return self._tasks[name]


def print_verdicts(study: AnyStudy, project: Project, audits: list[Audit], console: Console | None = None) -> None:
    """Prints a table of verdicts: a row for each audit, the worst first; a mark and a number under each heading.

    If the terminal is too narrow for the numbers, the table only has marks. A line with counts and the worst findings
    in words come below the table.
    """
    shown = Console(file=(console or Console()).file, width=_width(150), highlight=False)
    marks = _MARKS if shown.encoding.lower().startswith("utf") else _PLAIN_MARKS
    part = project.parts[study.name]
    ordered = worst_first(study, audits)
    gated = [row for audit in audits if not audit.degenerate for row in audit.rows if study.gated(row)]
    headings, never = folded(study.headings, gated, study.heading)
    with_numbers, without = (_verdicts(study, ordered, headings, marks, numbers=numbers) for numbers in (True, False))
    needed = Console(width=10_000).measure(with_numbers).maximum  # a console measures at most its own width
    # A line of its own: as the table's title it would be folded to the table's width.
    shown.print(f"\n[italic]{study.title}, profile {escape(project.name)}[/italic]", soft_wrap=True)
    shown.print(with_numbers if needed <= shown.width else without)
    said_here = counted(study, audits)
    told = ", ".join(f"{mark} {name}" for name, mark in marks.items() if name in said_here)
    sides = "; ".join(
        dict.fromkeys(f"{next(iter(a.key.values()))} {own}" for a in audits for own in _sides(study, part, a))
    )
    numbers = f"{study.contrast}, in points or the measure's unit"
    note = (
        f"Difference: {numbers}: {sides}" if needed <= shown.width else f"{needed} columns would show the differences"
    )
    if told:
        left_out = f"Never seen, and left out: {', '.join(never)}" if never else ""
        shown.print(f"[dim]{'. '.join(filter(None, [told, study.legend, note, left_out]))}[/dim]")
    for warning in warnings_of(study, part, Lake(project.workspace)):
        shown.print(f"[yellow]{escape(warning)}[/yellow]")
    for audit in audits:
        if audit.degenerate:
            shown.print(f"{escape(audit.name)}: {NOTHING_TO_JUDGE}: {escape(audit.degenerate)}", soft_wrap=True)
    if said_here:
        said_so = ", ".join(f"{number} {name}" for name, number in said_here.items())
        shown.print(f"{number_of(sum(said_here.values()), 'verdict')} on all measures: {said_so}")
    told_in_words = findings(study, part, ordered)
    for sentence in told_in_words[:_TOLD]:
        shown.print(f"  {escape(sentence)}")
    if len(told_in_words) > _TOLD:
        more = number_of(len(told_in_words) - _TOLD, "more audit")
        listed = f"fairness-pipeline results --profile {project.name} --study {study.name}"
        shown.print(f"  and {more} with a difference: {listed}")
    explained = artefacts(study, part, ordered)
    if explained:
        shown.print("[magenta]Artefacts: a control shows the difference too[/magenta]")
    for sentence in explained[:_TOLD]:
        shown.print(f"  {escape(sentence)}")
    aside = [told for audit in ordered if not audit.degenerate for told in study.asides(part, audit.key, audit.rows)]
    for sentence in aside[:_TOLD]:
        shown.print(f"  [cyan]{escape(sentence)}[/cyan]")
    if len(explained) > _TOLD:
        shown.print(f"  and {number_of(len(explained) - _TOLD, 'more artefact')}: see the report")
    for line in ends(study, ordered):
        shown.print(escape(line))
    print_next_steps(study, project, ordered, shown)


def print_next_steps(
    study: AnyStudy, project: Project, audits: Sequence[Audit], console: Console | None = None
) -> None:
    """Prints what to do now, a line for each kind of verdict."""
    shown = console or Console(width=_width(150), highlight=False)
    shown.print("[bold]What to do now[/bold]")
    for step in next_steps(study, project.parts[study.name], audits):
        shown.print(f"  {escape(step.line)}")


def _sides(study: AnyStudy, part: AnyPart, audit: Audit) -> list[str]:
    """Which groups most of an audit's differences compare; a few rows compare the group with something else."""
    groups = Counter(
        " − ".join(study.subtracted(study.groups(part, {**audit.key, "measure": row["measure"]}))) for row in audit.rows
    )
    return [own for own, count in groups.items() if count == max(groups.values())]


def print_standing(study: AnyStudy, audits: list[Audit], console: Console) -> None:
    """Prints a line for each audit whose verdicts stand now; the table of all comes at the end of the run."""
    for audit in worst_first(study, audits):
        counts = ", ".join(f"{number} {name}" for name, number in counted(study, [audit]).items())
        found = ", ".join(study.label(row) for row in audit.rows if study.gated(row) and said(row) in FINDINGS)
        told = f"{NOTHING_TO_JUDGE}: {audit.degenerate}" if audit.degenerate else counts
        line = f"{study.title}: {audit.name}: {told}{f' ({found})' if found else ''}"
        console.print(visible(line), markup=False, style="bold")


def _verdicts(
    study: AnyStudy, audits: list[Audit], headings: list[str], marks: dict[str, str], *, numbers: bool
) -> Table:
    table = Table(box=None, pad_edge=False)
    for axis in study.axes:
        table.add_column(axis.capitalize(), no_wrap=True, overflow="ellipsis")
    for heading in headings:
        table.add_column(heading, no_wrap=numbers, justify="left")
    for audit in audits:
        if audit.measured and not audit.degenerate:
            cells = [_cell(study, audit, heading, marks, numbers) for heading in headings]
        else:
            cells = [f"[dim]{NOTHING_TO_JUDGE if audit.degenerate else NOT_MEASURED}[/dim]"]
        table.add_row(*map(escape, audit.key.values()), *cells)
    return table


def _cell(study: AnyStudy, audit: Audit, heading: str, marks: dict[str, str], numbers: bool) -> str:
    """The worst row under a heading."""
    rows = [row for row in audit.rows if study.gated(row) and study.heading(row) == heading]
    if not rows:
        return ""
    row = min(rows, key=severity(study))
    what = said(row)
    text = marks[what]
    if numbers and what != NEVER_SEEN and row["n"]:
        decisive = study.decisive(row)
        number = _FORMATS[row["unit"]].format(decisive["difference"])
        text += f" {number.lstrip('+')} either way" if decisive.get("either_way") else f" {number}"
        text += f" {escape(study.label(row).removesuffix(' words'))}" if study.label(row) != heading else ""
    return f"[{_STYLES[what]}]{text}[/]"


def print_rows(names: list[str], rows: list[Row], form: str, needed: Collection[str] = ()) -> None:
    """Prints rows as a table, as CSV, or as JSON (where values that are not numbers are null).

    Args:
        names: The names of the columns.
        rows: The rows, by column.
        form: One of `cli.arguments.FORMATS`.
        needed: The columns that a table keeps even in a narrow terminal; if empty, all of them.
    """
    if form == "json":
        print(json.dumps([{k: _json(v) for k, v in row.items()} for row in rows], indent=1, default=str))
    elif form == "csv":
        cells = ([row.get(name, "") for name in names] for row in rows)
        shown = ([visible(v, lines=True) if isinstance(v, str) else v for v in row] for row in cells)
        write_rows(sys.stdout, list(map(visible, names)), shown)
    elif form in ("markdown", "latex"):
        print(
            (markdown_table if form == "markdown" else latex_table)(
                names, [[row.get(n) for n in names] for row in rows]
            )
        )
    else:
        _print_table(names, rows, needed)


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_table(names: list[str], rows: list[Row], needed: Collection[str]) -> None:
    """Prints a table if it fits, else with fewer columns or shorter texts, else record by record."""
    width = _width(None)
    cells = [[_plain(row.get(name)) for name in names] for row in rows]
    widths = [max([len(name), *(len(line[place]) for line in cells)]) for place, name in enumerate(names)]
    shown = list(range(len(names)))

    def total() -> int:
        return sum(widths[place] for place in shown) + 2 * (len(shown) - 1)

    for place in reversed(range(len(names))):
        if width is not None and total() > width and needed and names[place] not in needed and place in shown:
            together = [names.index(name) for name in _TOGETHER.get(names[place], ()) if name in names]
            shown = [other for other in shown if other != place and other not in together]
    dropped = [name for place, name in enumerate(names) if place not in shown]
    texts = {p for p in shown if widths[p] > _NARROWEST and any(isinstance(row.get(names[p]), str) for row in rows)}
    cut = False
    while width is not None and total() > width and any(widths[place] > _NARROWEST for place in texts):
        widest = max(texts, key=lambda place: widths[place])
        widths[widest] = max(_NARROWEST, widths[widest] - (total() - width))
        cut = True
    if width is not None and total() > width:
        _print_records(names, cells, width)
        return
    for line in [names, *cells]:
        print("  ".join(_fitted(line[place], widths[place]) for place in shown).rstrip())
    notes = [f"columns left out at this width: {', '.join(dropped)}"] if dropped else []
    notes += ["long texts are cut"] if cut else []
    if notes:
        print(f"({'; '.join(notes)}; --format csv has everything)", file=sys.stderr)


def _print_records(names: list[str], cells: list[list[str]], width: int) -> None:
    """Prints one record after the other, with at least one line for each field."""
    left = max(map(len, names))
    for number, line in enumerate(cells, start=1):
        print(f"{number} of {len(cells)} ".ljust(width, "-"))
        for name, text in zip(names, line, strict=True):
            room = max(_NARROWEST, width - left - 2)
            pieces = [text[start : start + room] for start in range(0, len(text), room)] or [""]
            for place, piece in enumerate(pieces):
                print(f"{'' if place else name:<{left}}  {piece}".rstrip())


def _fitted(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def _width(default: int | None) -> int | None:
    """The columns of the terminal, or of `COLUMNS`; `default` if there is neither."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return default


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))
