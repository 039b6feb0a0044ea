"""Draws the pictures of study 6: a forest plot of groups, a map of crossed groups, and the power of more clusters."""

import math
from collections.abc import Sequence

import numpy as np

from fairness_pipeline.measures.outcomes.rows import CROSS, OMNIBUS, OTHERS, PAIR, REFERENCE
from fairness_pipeline.reporting.plots import COLOURS, png
from fairness_pipeline.statistics.units import UNITS
from fairness_pipeline.workspace.lake import Row

_UNITS = {"percent": "percentage points", "count_per_response": "a response", "score": ""}


def forest_plot(rows: Sequence[Row]) -> bytes | None:
    """Draws the rows of one outcome and group column: each group against the others' mean (or the one pair) with its
    interval, and the p of the omnibus test."""
    from matplotlib.figure import Figure

    omnibus = next(row for row in rows if row["contrast"] == OMNIBUS)
    contrasts = [row for row in rows if row["contrast"] == OTHERS]
    contrasts = contrasts or [row for row in rows if row["contrast"] in (PAIR, REFERENCE)]
    if not contrasts:
        return None
    contrasts.sort(key=lambda row: row["difference"])
    figure = Figure(figsize=(7.2, 1.0 + 0.26 * len(contrasts)), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.axvspan(-omnibus["margin"], omnibus["margin"], color="#00000012", linewidth=0)
    for height, row in enumerate(contrasts):
        colour = COLOURS[row["verdict"]]
        if row["ci_low"] is not None and row["ci_high"] is not None:
            axes.plot(
                [row["ci_low"], row["ci_high"]], [height, height], color=colour, linewidth=2.2, solid_capstyle="butt"
            )
        axes.plot(row["difference"], height, "o", color=colour, markersize=5)
    labels = [row["group"] if row["contrast"] == OTHERS else f"{row['group']} − {row['against']}" for row in contrasts]
    axes.set_yticks(range(len(contrasts)), labels)
    axes.axvline(0, color="#444444", linewidth=0.8)
    baseline = "the mean of the others" if contrasts[0]["contrast"] == OTHERS else "the second group"
    unit = f" in {_UNITS[omnibus['unit']]}" if _UNITS[omnibus["unit"]] else ""
    axes.set_xlabel(f"{omnibus['outcome']}: difference from {baseline}{unit} (grey: the margin)", fontsize=8)
    axes.set_title(f"any group: p = {omnibus['p_holm']:.2g}, {omnibus['verdict']}", fontsize=8, loc="left")
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def crossing_plot(rows: Sequence[Row], singles: Sequence[Row]) -> bytes | None:
    """Draws the values of crossed groups as a map of colours; None if the rows are of one column.

    Args:
        rows: The rows of one outcome by two crossed columns.
        singles: The rows of the same outcome by each column, which name the levels.
    """
    from matplotlib.figure import Figure

    names = rows[0]["attribute"].split(CROSS)
    if len(names) != 2:
        return None
    levels = [_levels([row for row in singles if row["attribute"] == name]) for name in names]
    values = {row["group"]: row["value_a"] for row in rows if row["contrast"] == OTHERS}
    matrix = np.array([[values.get(f"{a} {b}", math.nan) for b in levels[1]] for a in levels[0]])
    if not matrix.size or np.isnan(matrix).all():
        return None
    figure = Figure(figsize=(2.2 + 0.95 * len(levels[1]), 1.1 + 0.42 * len(levels[0])), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    reach = float(np.nanmax(np.abs(matrix - np.nanmean(matrix)))) or 1.0
    middle = float(np.nanmean(matrix))
    axes.imshow(matrix, cmap="PuOr", vmin=middle - reach, vmax=middle + reach, aspect="auto")
    for cell, value in np.ndenumerate(matrix):
        dark = abs(value - middle) > 0.7 * reach
        axes.text(
            cell[1], cell[0], f"{value:.3g}", ha="center", va="center", fontsize=8, color="white" if dark else "black"
        )
    axes.set_xticks(range(len(levels[1])), levels[1], fontsize=8)
    axes.set_yticks(range(len(levels[0])), levels[0], fontsize=8)
    axes.set_title(f"{rows[0]['outcome']} by {rows[0]['attribute']}{_in_unit(rows[0])}", fontsize=8, loc="left")
    return png(figure)


def power_plot(row: Row) -> bytes | None:
    """Draws what more clusters like those of an omnibus row would show: the smallest difference that is found with 80%
    power, and the smallest margin that is shown to hold if nothing differs."""
    from matplotlib.figure import Figure

    current, detectable, needed = row["effective_clusters"], row["minimum_detectable"], row["clusters_needed"]
    if not current or not detectable or not needed:
        return None
    clusters = np.linspace(max(2.0, current / 4), max(current * 2, min(needed * 1.2, current * 10)), 100)
    figure = Figure(figsize=(5.2, 2.6), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(
        clusters,
        detectable * np.sqrt(current / clusters),
        color="#b3261e",
        label="smallest difference found, 80% power",
    )
    axes.plot(
        clusters,
        row["margin"] * np.sqrt(needed / clusters),
        color="#2e7d32",
        label="smallest margin shown, if nothing differs",
    )
    axes.axvline(current, color="#444444", linewidth=0.8, linestyle="--")
    axes.axhline(row["margin"], color="#00000040", linewidth=0.8)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"clusters (dashed: now, {current:.3g})", fontsize=8)
    axes.set_ylabel(UNITS[row["unit"]].strip() or "difference", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def _levels(rows: Sequence[Row]) -> list[str]:
    """The groups of one column."""
    return list(
        dict.fromkeys(
            name for row in rows if row["contrast"] in (PAIR, REFERENCE) for name in (row["group"], row["against"])
        )
    )


def _in_unit(row: Row) -> str:
    return (
        f", in {_UNITS[row['unit']]}"
        if row["unit"] == "count_per_response"
        else ", %"
        if row["unit"] == "percent"
        else ""
    )
