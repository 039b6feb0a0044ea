"""Prints the terminal output: progress during a run, and verdicts as soon as they are final."""

import json
import math
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairness_pipeline.foundation.csv_cells import write_rows
from fairness_pipeline.foundation.plain_text import latex_table, markdown_table, number_of, visible
from fairness_pipeline.foundation.progress import Progress as ProgressFunction
from fairness_pipeline.lineage.assets import PartitionId
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
    severity,
    shown_verdict,
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
_FORECAST_EVERY, _SHORTEST_FORECAST = 30.0, 15.0
"""Seconds between two forecasts of the remaining time, and the shortest forecast that is printed."""
_SENTENCES = 3
"""The number of sentences of each kind below a table of verdicts."""
_DROPPED_TOGETHER = {"ci_high": ("ci_low",), "value_b": ("value_a",), "p_holm": ("p",)}
"""Columns that are dropped together with another column."""
_NARROWEST = 20
"""The smallest width of a text column, in characters; a narrower table is shown record by record."""


class RunDisplay(Listener):
    """Shows a run: a line for each finished step and a bar for each running one (without a terminal, occasional lines).

    Args:
        profile: The profile's name.
        stale: The number of steps that will run.
        total: The number of steps in the selection.

    Attributes:
        bars: The bars; they are shown while this context manager is open.
        forecast: The forecast of the remaining time; None until the number of workers is known.
    """

    def __init__(self, profile: str, stale: int, total: int) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self._stale = stale
        self._done = 0
        self.forecast: Forecast | None = None
        self._last_forecast = time.monotonic()
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(), console=self.console, transient=True, disable=not self.console.is_terminal,
        )  # fmt: skip
        self._tasks: dict[PartitionId, TaskID] = {}
        self.console.print(f"Profile [b]{profile}[/b]: {stale} of {total} partitions to make")

    def starting(self, steps: Sequence[Step]) -> None:
        """Shows that a unit of steps begins; its steps share a bar."""
        if self.forecast:
            self.forecast.began(steps[0].partition_id)
        task = self.bars.add_task(escape(steps[0].label), total=None, note="")
        self._tasks |= {step.partition_id: task for step in steps}

    def ended(self, outcome: Outcome) -> Outcome:
        """Shows that a step has ended, and returns its outcome."""
        self._done += 1
        if self.forecast:
            self.forecast.ended(outcome.step.partition_id, outcome.seconds if outcome.state == "made" else None)
        task = self._tasks.pop(outcome.step.partition_id, None)
        if task is not None and task not in self._tasks.values():
            self.bars.remove_task(task)
        if outcome.state == "skipped":  # the step that it needed has failed and says why
            return outcome
        text = f"[{self._done:>3}/{self._stale}] {outcome.step.label}"
        detail, style = {
            "made": (f"{outcome.seconds:6.1f} s", None),
            "unchanged": ("unchanged", "dim"),
            "failed": ("failed (the reason is given at the end)", "red"),
        }[outcome.state]
        self.console.print(visible(f"{text:<58} {detail}"), style=style, markup=False)
        self._print_forecast()
        return outcome

    def waiting(self, asset: str, key: Key, holder: str) -> None:
        """Shows that another run is making the partition and that this run waits."""
        self.console.print(f"{asset} {partition_name(key)}: waiting for {holder}, which is making it", style="yellow")

    def progress(self, asset: str, key: Key) -> ProgressFunction:
        """Moves the unit's bar, or prints a line every ten seconds without a terminal."""
        label = " ".join([asset, *key.values()])
        last = time.monotonic()
        partition = asset, partition_name(key)
        task = self._tasks.get(partition)
        if task is not None:  # a message may come after its unit has ended
            self.bars.reset(task, description=escape(label), total=None, note="")
        if self.forecast:
            self.forecast.began(partition)

        def update(done: int, total: int | None, note: str) -> None:
            nonlocal last
            if task in self.bars.task_ids:
                self.bars.update(task, total=total, completed=done, note=note)
            if not self.console.is_terminal and time.monotonic() - last > _PLAIN_EVERY:
                last = time.monotonic()
                share = f"{100 * done / total:3.0f}%" if total else f"{done:,}"
                self.console.print(f"          {label}: {share} {note}", markup=False)
            if self.forecast and total:
                self.forecast.progressed(partition, done / total)
                self._print_forecast()

        return update

    def _print_forecast(self) -> None:
        """Prints from time to time how long the rest may take."""
        if not self.forecast or time.monotonic() - self._last_forecast < _FORECAST_EVERY:
            return
        seconds = self.forecast.seconds_left()
        if seconds is None or seconds < _SHORTEST_FORECAST:
            return
        self._last_forecast = time.monotonic()
        remaining = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
        self.console.print(f"          about {remaining} to the end", style="dim", markup=False)


def print_verdicts(study: AnyStudy, project: Project, audits: list[Audit]) -> None:
    """Prints a table of verdicts: a row for each audit, the worst first; a mark and a number under each heading.

    If the terminal is too narrow for the numbers, the table only has marks. A line with counts and the worst findings
    in words come below the table.
    """
    output = Console(width=_width(150), highlight=False)
    marks = _MARKS if output.encoding.lower().startswith("utf") else _PLAIN_MARKS
    part = project.parts[study.name]
    ordered = worst_first(study, audits)
    gated = [row for audit in audits if not audit.degenerate for row in audit.rows if study.gated(row)]
    headings, never_seen = folded(study.headings, gated, study.heading)
    with_numbers, without_numbers = (
        _verdicts(study, ordered, headings, marks, numbers=numbers) for numbers in (True, False)
    )
    needed = Console(width=10_000).measure(with_numbers).maximum  # a console measures at most its own width
    # A separate line: a title of the table would be wrapped at the table's width.
    output.print(f"\n[italic]{study.title}, profile {escape(project.name)}[/italic]", soft_wrap=True)
    output.print(with_numbers if needed <= output.width else without_numbers)
    counts = counted(study, audits)
    legend = ", ".join(f"{mark} {name}" for name, mark in marks.items() if name in counts)
    sides = "; ".join(
        dict.fromkeys(f"{next(iter(a.key.values()))} {side}" for a in audits for side in _sides(study, part, a))
    )
    difference = f"{study.contrast}, in points or the measure's unit"
    note = (
        f"Difference: {difference}: {sides}"
        if needed <= output.width
        else f"Widen the terminal to {needed} columns to see the differences"
    )
    if legend:
        left_out = f"Never seen in either group, and left out: {', '.join(never_seen)}" if never_seen else ""
        output.print(f"[dim]{'. '.join(filter(None, [legend, study.legend, note, left_out]))}[/dim]")
    for warning in warnings_of(study, part, Lake(project.workspace)):
        output.print(f"[yellow]{escape(warning)}[/yellow]")
    for audit in audits:
        if audit.degenerate:
            output.print(f"{escape(audit.name)}: {NOTHING_TO_JUDGE}: {escape(audit.degenerate)}", soft_wrap=True)
    if counts:
        verdicts = ", ".join(f"{number} {name}" for name, number in counts.items())
        output.print(f"{number_of(sum(counts.values()), 'verdict')} on all measures: {verdicts}")
    sentences = findings(study, part, ordered)
    for sentence in sentences[:_SENTENCES]:
        output.print(f"  {escape(sentence)}")
    if len(sentences) > _SENTENCES:
        more = number_of(len(sentences) - _SENTENCES, "more audit")
        command = f"fairness-pipeline results --profile {project.name} --study {study.name}"
        output.print(f"  and {more} with a difference: {command}")
    artefact_sentences = artefacts(study, part, ordered)
    if artefact_sentences:
        output.print("[magenta]Artefacts: a control shows the difference too[/magenta]")
    for sentence in artefact_sentences[:_SENTENCES]:
        output.print(f"  {escape(sentence)}")
    asides = [aside for audit in ordered if not audit.degenerate for aside in study.asides(part, audit.key, audit.rows)]
    for sentence in asides[:_SENTENCES]:
        output.print(f"  [cyan]{escape(sentence)}[/cyan]")
    if len(artefact_sentences) > _SENTENCES:
        output.print(f"  and {number_of(len(artefact_sentences) - _SENTENCES, 'more artefact')}: see the report")
    for line in ends(study, ordered):
        output.print(escape(line))
    print_next_steps(study, project, ordered, output)


def print_next_steps(
    study: AnyStudy, project: Project, audits: Sequence[Audit], console: Console | None = None
) -> None:
    """Prints the next steps, a line for each kind of verdict."""
    output = console or Console(width=_width(150), highlight=False)
    output.print("[bold]What to do now[/bold]")
    for step in next_steps(study, project.parts[study.name], audits):
        output.print(f"  {escape(step.line)}")


def _sides(study: AnyStudy, part: AnyPart, audit: Audit) -> list[str]:
    """Returns the groups that most of an audit's differences compare; a few compare a group with something else."""
    groups = Counter(
        " − ".join(study.subtracted(study.groups(part, {**audit.key, "measure": row["measure"]}))) for row in audit.rows
    )
    return [side for side, count in groups.items() if count == max(groups.values())]


def print_standing(study: AnyStudy, audits: list[Audit], console: Console) -> None:
    """Prints a line for each audit whose verdicts are final; the table of all audits comes at the end of the run."""
    for audit in worst_first(study, audits):
        counts = ", ".join(f"{number} {name}" for name, number in counted(study, [audit]).items())
        labels = ", ".join(
            study.label(row) for row in audit.rows if study.gated(row) and shown_verdict(row) in FINDINGS
        )
        text = f"{NOTHING_TO_JUDGE}: {audit.degenerate}" if audit.degenerate else counts
        line = f"{study.title}: {audit.name}: {text}{f' ({labels})' if labels else ''}"
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
    """Returns the worst row under a heading."""
    rows = [row for row in audit.rows if study.gated(row) and study.heading(row) == heading]
    if not rows:
        return ""
    row = min(rows, key=severity(study))
    verdict = shown_verdict(row)
    text = marks[verdict]
    if numbers and verdict != NEVER_SEEN and row["n"]:
        decisive = study.decisive(row)
        number = _FORMATS[row["unit"]].format(decisive["difference"])
        text += f" {number.lstrip('+')} either way" if decisive.get("either_way") else f" {number}"
        text += f" {escape(study.label(row).removesuffix(' words'))}" if study.label(row) != heading else ""
    return f"[{_STYLES[verdict]}]{text}[/]"


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
        cleaned = ([visible(v, lines=True) if isinstance(v, str) else v for v in row] for row in cells)
        write_rows(sys.stdout, list(map(visible, names)), cleaned)
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
    widths = [max([len(name), *(len(line[index]) for line in cells)]) for index, name in enumerate(names)]
    columns = list(range(len(names)))

    def total() -> int:
        return sum(widths[index] for index in columns) + 2 * (len(columns) - 1)

    for index in reversed(range(len(names))):
        if width is not None and total() > width and needed and names[index] not in needed and index in columns:
            together = [names.index(name) for name in _DROPPED_TOGETHER.get(names[index], ()) if name in names]
            columns = [kept for kept in columns if kept != index and kept not in together]
    dropped = [name for index, name in enumerate(names) if index not in columns]
    texts = {i for i in columns if widths[i] > _NARROWEST and any(isinstance(row.get(names[i]), str) for row in rows)}
    cut = False
    while width is not None and total() > width and any(widths[index] > _NARROWEST for index in texts):
        widest = max(texts, key=lambda index: widths[index])
        widths[widest] = max(_NARROWEST, widths[widest] - (total() - width))
        cut = True
    if width is not None and total() > width:
        _print_records(names, cells, width)
        return
    for line in [names, *cells]:
        print("  ".join(_fitted(line[index], widths[index]) for index in columns).rstrip())
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
            for index, piece in enumerate(pieces):
                print(f"{'' if index else name:<{left}}  {piece}".rstrip())


def _fitted(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def _width(default: int | None) -> int | None:
    """Returns the width of the terminal, or that of `COLUMNS`; `default` if there is neither."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return default


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))
