"""Pictures, as PNG bytes that are the same for the same numbers."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from fairness_pipeline.lake import Row

COLOURS = {
    "biased": "#b3261e",
    "fair": "#2e7d32",
    "inconclusive": "#8a6d00",
    "not measured": "#777777",
    "never seen": "#777777",
}
_WIDEST = 200.0


def difference_plot(rows: list[Row], group_a: str, group_b: str, label: Callable[[str], str]) -> bytes:
    """Each measure's difference as a share of its pooled mean, with the 95% interval and the margin as a band.

    Shares put measures of different units on one axis. Differences beyond twice the pooled mean are cut off there; a
    measure that no response shows has no share and is left out.

    Args:
        rows: Rows of a significance table.
        group_a: Name of side a.
        group_b: Name of side b.
        label: What a reader sees for a measure.
    """
    from matplotlib.figure import Figure

    shown = [row for row in rows if row["value_a"] + row["value_b"] > 0][::-1]
    figure = Figure(figsize=(7.2, 1.1 + 0.42 * max(len(shown), 1)), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for place, row in enumerate(shown):
        unit = 100 / ((row["value_a"] + row["value_b"]) / 2)
        low, high = (_cut(bound * unit) if bound is not None else None for bound in (row["ci_low"], row["ci_high"]))
        colour = COLOURS[row["verdict"]]
        axes.barh(place, 2 * row["margin"] * unit, left=-row["margin"] * unit, height=0.7, color="#00000014")
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=colour, linewidth=2.5, solid_capstyle="butt")
        axes.plot(_cut(row["difference"] * unit), place, "o", color=colour, markersize=6)
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [label(row["measure"]) for row in shown])
    axes.set_ylim(-0.6, max(len(shown), 1) - 0.4)
    axes.set_xlabel(
        f"difference in % of the mean   (left: more to {group_b}, right: more to {group_a};  grey: margin)", fontsize=8
    )
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def png(figure: Any) -> bytes:
    """A figure as PNG, without the time and the software that would make equal pictures differ."""
    stream = BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _cut(value: float) -> float:
    return max(-_WIDEST, min(_WIDEST, value))
