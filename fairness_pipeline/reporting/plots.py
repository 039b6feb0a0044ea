"""Draws pictures, as PNG bytes that are the same for the same numbers."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from fairness_pipeline.reporting.results import in_margins, shown_verdict
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.statistics.verdicts import ARTEFACT, DIFFERS, DIFFERS_BY_LENGTH, HERE_ONLY
from fairness_pipeline.workspace.lake import Row

COLOURS = {
    "biased": "#b3261e",
    "fair": "#2e7d32",
    DIFFERS: "#b4540a",
    DIFFERS_BY_LENGTH: "#8a6d00",
    HERE_ONLY: "#5c7d2e",
    ARTEFACT: "#7b3fa0",
    "inconclusive": "#8a6d00",
    "fair on average": "#00696f",
    "nothing to judge": "#777777",
    "not measured": "#777777",
    "never seen": "#777777",
    "cannot tell": "#777777",
}
_WIDEST = 200.0
_FARTHEST = 15.0


def difference_plot(rows: list[Row], group_a: str, group_b: str, label: Callable[[str], str]) -> bytes:
    """Draws each measure's difference as a share of its pooled mean, with the 95% interval and the margin as a band.

    Shares put measures of different units on one axis. Differences beyond twice the pooled mean are cut off there; a
    measure that no response shows has no share and is left out.
    """
    from matplotlib.figure import Figure

    drawn = [row for row in rows if row["value_a"] + row["value_b"] > 0][::-1]
    figure = Figure(figsize=(7.2, 1.1 + 0.42 * max(len(drawn), 1)), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for y, row in enumerate(drawn):
        unit = 100 / ((row["value_a"] + row["value_b"]) / 2)
        low, high = (_cut(bound * unit) if bound is not None else None for bound in (row["ci_low"], row["ci_high"]))
        colour = COLOURS[row["verdict"]]
        axes.barh(y, 2 * row["margin"] * unit, left=-row["margin"] * unit, height=0.7, color="#00000014")
        if low is not None and high is not None:
            axes.plot([low, high], [y, y], color=colour, linewidth=2.5, solid_capstyle="butt")
        axes.plot(_cut(row["difference"] * unit), y, "o", color=colour, markersize=6)
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(range(len(drawn)), [label(row["measure"]) for row in drawn])
    axes.set_ylim(-0.6, max(len(drawn), 1) - 0.4)
    axes.set_xlabel(
        f"difference in % of the mean   (left: more to {group_b}, right: more to {group_a})",
        fontsize=8,
    )
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def overview_figure(rows: list[tuple[str, Row, str]], contrast: str, *, narrow: bool = False) -> Any:
    """Draws differences of any measure in multiples of their margins, each with its 95% interval, in the given order.

    A difference of 1 equals the margin; beyond `_FARTHEST` it is cut off there. Its number stands beside it.

    Args:
        rows: A label, a row of a significance table with a margin above 0, and what its sign says.
        narrow: Whether it is for a phone: labels and numbers are above the lines, not beside them.
    """
    from matplotlib.figure import Figure

    # Room for labels and numbers; an automatic layout would draw three times.
    longest = max((len(label) for label, _, _ in rows), default=0)
    beside = 0.12 if narrow else max(2.7, 0.2 + 0.068 * longest)
    width, height = (3.9, 0.9 + 0.46 * len(rows)) if narrow else (6.5 + beside, 0.9 + 0.27 * len(rows))
    left, below = beside / width, 0.6 / height
    figure = Figure(figsize=(width, height), dpi=110)
    axes = figure.add_axes((left, below, 1 - 2 * left if narrow else 3.65 / width, 1 - below - 0.1 / height))
    ends = ("difference", "ci_low", "ci_high")
    widest = max(2.0, *(min(_FARTHEST, abs(in_margins(row, end) or 0.0)) for _, row, _ in rows for end in ends))
    axes.axvspan(-1, 1, color="#00000012", linewidth=0)
    for y, (label, row, direction) in enumerate(reversed(rows)):
        colour = COLOURS[shown_verdict(row)]
        value, low, high = (in_margins(row, name) for name in ("difference", "ci_low", "ci_high"))
        assert value is not None
        if low is not None and high is not None:
            bounds = [max(-widest, min(widest, bound)) for bound in (low, high)]
            axes.plot(bounds, [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
            for bound, cut in zip((low, high), bounds, strict=True):
                if bound != cut:  # the interval is cut off
                    axes.plot(cut, y, ">" if bound > 0 else "<", color=colour, markersize=3)
        inside = abs(value) <= widest
        marker = "o" if inside else ">" if value > 0 else "<"
        axes.plot(max(-widest, min(widest, value)), y, marker, color=colour, markersize=5)
        text = f"{label}: {with_unit(row)}" if narrow else with_unit(row)
        text += f"  ({direction})" if value and not narrow else ""
        axes.annotate(
            _fitting(text, 72) if narrow else text, (0, y + 0.3) if narrow else (1.01, y),
            xycoords=("axes fraction", "data"), fontsize=7, va="center", color=colour, annotation_clip=False,
        )  # fmt: skip
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks([] if narrow else range(len(rows)), [] if narrow else [label for label, _, _ in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(-1.08 * widest, 1.08 * widest)
    axis_label = f"difference, {contrast} group, in multiples of the margin (grey: within the margin)"
    axes.set_xlabel(f"{contrast} group, in margins" if narrow else axis_label, fontsize=8)
    axes.tick_params(labelsize=7.5)
    axes.spines[["top", "right", *(["left"] if narrow else [])]].set_visible(False)
    return figure


def overview_plot(rows: list[tuple[str, Row, str]], contrast: str, *, narrow: bool = False) -> bytes:
    """Draws `overview_figure` as PNG."""
    return png(overview_figure(rows, contrast, narrow=narrow))


def _fitting(text: str, longest: int) -> str:
    """Returns the text, without its middle if it is too long: a label's end holds the measure and the number."""
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]} … {text[-half:]}"


def png(figure: Any) -> bytes:
    """Returns a figure as PNG of 256 colours, which takes a third of the space: Dagster keeps one for each partition.

    White becomes 254 of 255. The PNG holds neither time nor software, which would make equal pictures differ.
    """
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas: Any = FigureCanvasAgg(figure)
    stream = BytesIO()
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    picture.quantize(256, method=Image.Quantize.FASTOCTREE).save(stream, "png", optimize=True)
    return stream.getvalue()


def _cut(value: float) -> float:
    return max(-_WIDEST, min(_WIDEST, value))
