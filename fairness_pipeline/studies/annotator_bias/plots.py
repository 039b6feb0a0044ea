"""Draws the pictures of study 5."""

from collections import Counter
from typing import Any

from fairness_pipeline.annotation.bias_estimates import CONTRAST, GROUP
from fairness_pipeline.reporting.plots import png
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.studies.annotator_bias.results import calibrated, of_kind
from fairness_pipeline.workspace.lake import Lake, Row

_COLOURS = ("#0b57d0", "#b3261e", "#1e7d32", "#8a5a00", "#6a1b9a")
_ABOVE = {"loc": "lower left", "bbox_to_anchor": (0, 1)}


def effects_plot(rows: list[Row], of_sums: bool) -> bytes | None:
    """Draws groups as a forest plot with 95% intervals: the difference of two groups; for three or more, the mean of
    each, as there are too many pairs. None if nothing is estimated.

    Args:
        rows: As in `BIAS_ESTIMATES`, by one model of groups.
        of_sums: Whether its differences are of the thesis' sums, and not of probabilities.
    """
    from matplotlib.figure import Figure

    contrasts, means = of_kind(rows, CONTRAST), of_kind(rows, GROUP)
    groups = Counter(category for category, _ in {(row["category"], row["name"]) for row in means})
    two = [row for row in contrasts if groups[row["category"]] == 2]
    more = [row for row in means if groups[row["category"]] > 2]
    if not contrasts:
        return None
    responses = list(dict.fromkeys(row["response"] for row in contrasts))
    panels = [panel for panel in (two, more) if panel]
    heights = [0.7 + len(_lines(panel)) * (0.1 + 0.15 * len(responses)) for panel in panels]
    figure = Figure(figsize=(7.6, sum(heights) + 0.2), dpi=110, layout="constrained")
    all_axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for axes, panel in zip(all_axes, panels, strict=True):
        _forest(axes, panel, responses)
        unit = "of the thesis' sums" if of_sums else "of probabilities"
        axis_label = (
            f"first group minus second, {unit}, with 95% interval"
            if panel is two
            else "mean rate of each group, with 95% interval"
        )
        axis_label += "; black: simulated" if any(row["truth"] is not None for row in panel) else ""
        axes.set_xlabel(axis_label, fontsize=8)
        if panel is two:
            axes.axvline(0, color="#444444", linewidth=0.8)
    all_axes[0].legend(*all_axes[0].get_legend_handles_labels(), fontsize=7, frameon=False, ncols=4, **_ABOVE)
    return png(figure)


def _lines(rows: list[Row]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row["category"], row["name"]) for row in rows))


def _forest(axes: Any, rows: list[Row], responses: list[str]) -> None:
    """A line for each category and name, with its responses below one another."""
    lines = _lines(rows)
    for row in rows:
        number = responses.index(row["response"])
        height = lines.index((row["category"], row["name"])) + 0.8 * ((number + 0.5) / len(responses) - 0.5)
        first = (row["category"], row["name"]) == lines[0]
        colour = _COLOURS[number % len(_COLOURS)]
        if row["ci_low"] is not None:
            axes.plot([row["ci_low"], row["ci_high"]], [height, height], color=colour, linewidth=2)
        axes.plot(row["value"], height, "o", color=colour, markersize=4.5, label=row["response"] if first else None)
        if row["truth"] is not None:
            axes.plot(row["truth"], height, "|", color="#000000", markersize=11, markeredgewidth=1.6)
    axes.set_yticks(range(len(lines)), [f"{category}: {name}" for category, name in lines], fontsize=7.5)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xlim(*(bound + pad for bound, pad in zip(_clipped(axes.get_xlim()), (-0.02, 0.02), strict=True)))
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def calibration_plot(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> bytes | None:
    """Draws inferred probabilities against the share of items that are truly positive; None without gold labels."""
    from matplotlib.figure import Figure

    calibrations = calibrated(part, lake, corpus)
    if not calibrations:
        return None
    figure = Figure(figsize=(3.6, 3.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
    for (title, bins), style in zip(calibrations.items(), ("o-", "s--", "^:"), strict=False):
        axes.plot(
            [point[0] for point in bins], [point[1] for point in bins], style, markersize=4, linewidth=1, label=title
        )
    axes.set_xlabel("inferred probability", fontsize=8)
    axes.set_ylabel("share truly positive", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def _clipped(limits: tuple[float, float]) -> tuple[float, float]:
    """The limits, clipped to the range of a difference of probabilities: -1 to 1."""
    return max(-1.0, limits[0]), min(1.0, limits[1])
