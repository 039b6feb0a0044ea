"""Draws the pictures of study 4."""

import math

import numpy as np

from fairness_pipeline.measures.classifiers.group_rates import FN, FP
from fairness_pipeline.measures.classifiers.probabilities_by_group import CALIBRATION
from fairness_pipeline.reporting.plots import png
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.studies.implicit_bias.profile import ImplicitBiasPart
from fairness_pipeline.workspace.lake import Lake, Row

_DPD, _JS = "#b3261e", "#0b57d0"
_SIDES = ("#0b57d0", "#b3261e")


def balance_plot(part: ImplicitBiasPart, lake: Lake, corpus: str) -> bytes | None:
    """Draws DPD and JS divergence by balance rate, with 95% intervals over seeds (figure 4.2); None without data."""
    from matplotlib.figure import Figure

    rows_by_rate = {
        rate: lake.read("balance_rates", key).to_pylist()
        for rate_key, rate in part.rates.items()
        if lake.card("balance_rates", key := {"corpus": corpus, "rate": rate_key})
    }
    if not rows_by_rate:
        return None
    figure = Figure(figsize=(6.4, 3.2), dpi=110, layout="constrained")
    left = figure.add_subplot()
    right = left.twinx()
    lines = (
        (left, "js_l2x", _JS, "-", "JS divergence, L2X (left)"),
        (left, "js_gradients", _JS, ":", "JS divergence, gradients (left)"),
        (right, "dp_difference", _DPD, "--", "DPD in points (right)"),
    )
    for shift, (axes, name, colour, style, label) in zip((-0.06, 0.0, 0.06), lines, strict=True):
        values = [np.abs([row[name] for row in rows]) for rows in rows_by_rate.values()]
        means, reach = [float(sample.mean()) for sample in values], [_reach(sample) for sample in values]
        axes.errorbar(
            np.arange(len(rows_by_rate)) + shift,
            means,
            yerr=reach,
            color=colour,
            linestyle=style,
            capsize=3,
            label=label,
        )
    left.set_xticks(range(len(rows_by_rate)), list(rows_by_rate))
    left.set_xlabel("positive : negative texts of the first group in training", fontsize=8)
    left.set_ylabel("JS divergence (nats)", fontsize=8, color=_JS)
    right.set_ylabel("DPD (points)", fontsize=8, color=_DPD)
    left.set_ylim(0, 0.72)  # log 2 is the maximum
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.tick_params(labelsize=8)
        axes.spines["top"].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, fontsize=7, frameon=False)
    return png(figure)


def probability_plot(rows: list[Row], groups: tuple[str, str]) -> bytes:
    """Draws `classifier_probabilities`: error rates by threshold, and calibration, of both groups."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 3.0), dpi=110, layout="constrained")
    panels = figure.subplots(1, 3)
    panels_of = ((FP, "false positive rate"), (FN, "false negative rate"), (CALIBRATION, "share truly positive"))
    for axes, (measure, label) in zip(panels, panels_of, strict=True):
        for side, group, colour, style in zip("ab", groups, _SIDES, ("o-", "s--"), strict=True):
            points = [row for row in rows if row["measure"] == measure and row["side"] == side]
            axes.plot(
                [point["at"] for point in points],
                [point["value"] for point in points],
                style,
                color=colour,
                markersize=3,
                label=group,
            )
        of_texts = measure == CALIBRATION
        if of_texts:
            axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        else:
            axes.axvline(0.5, color="#999999", linewidth=0.8)
        axes.set_xlabel("probability of positive" if of_texts else "threshold", fontsize=8)
        axes.set_ylabel(label, fontsize=8)
        axes.set_xlim(0, 1)
        axes.set_ylim(-0.02, 1.02)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(fontsize=7, frameon=False)
    return png(figure)


def _reach(values: np.ndarray) -> float:
    """Half the width of the 95% interval of a mean over seeds; 0 for a single seed."""
    if len(values) < 2:
        return 0.0
    estimate = Estimate(0.0, float(values.std(ddof=1)) / math.sqrt(len(values)), len(values) - 1)
    return estimate.interval(0.95)[1]
