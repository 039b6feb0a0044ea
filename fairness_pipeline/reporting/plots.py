"""Pictures, as PNG bytes that are the same for the same numbers."""

from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.reporting.labels import measure_label

COLOURS = {"biased": "#b3261e", "fair": "#2e7d32", "inconclusive": "#8a6d00", "not measured": "#777777"}
GROUP_COLOURS = ("#0b57d0", "#e8710a")
MODEL_COLOURS = ("#1c1c1c", "#0b57d0", "#e8710a", "#2e7d32", "#8e24aa", "#b3261e")
_FEATURES = {"unbiased": "Unbiased features f(u)", "semantic": "Semantic features f(s)"}
_QUALITY = {"bleu_2": "BLEU-2", "distinct_2": "Distinct-2"}
_WIDEST = 200.0


def difference_plot(rows: list[dict[str, Any]], group_a: str, group_b: str) -> bytes:
    """Each measure's difference as a share of its pooled mean, with the 95% interval and the margin as a band.

    Shares put measures of different units on one axis. Differences beyond twice the pooled mean are cut off there; a
    measure that no response shows has no share and is left out.

    Args:
        rows: Rows of a significance table.
        group_a: Name of side a.
        group_b: Name of side b.
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
    axes.set_yticks(range(len(shown)), [measure_label(row["measure"]) for row in shown])
    axes.set_ylim(-0.6, max(len(shown), 1) - 0.4)
    axes.set_xlabel(
        f"difference in % of the mean   (left: more to {group_b}, right: more to {group_a};  grey: margin)", fontsize=8
    )
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def projection_plot(points: pa.Table, groups: tuple[str, str]) -> bytes:
    """Figure 3.2 of Liu 2022: unbiased and semantic features of test utterances on a plane, one colour a group.

    Args:
        points: Columns `features`, `side`, `x`, `y`.
        groups: Names of side a and side b.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.4), dpi=110, layout="constrained")
    for axes, (name, title) in zip(figure.subplots(1, 2), _FEATURES.items(), strict=True):
        for side, group, colour in zip("ab", groups, GROUP_COLOURS, strict=True):
            shown = points.filter(pc.and_(pc.equal(points["features"], name), pc.equal(points["side"], side)))
            axes.scatter(shown["x"], shown["y"], s=7, color=colour, alpha=0.6, linewidths=0, label=group)
        axes.set_title(title, fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.axes[0].legend(fontsize=8, markerscale=2)
    return png(figure)


def trade_off_plot(dots: list[tuple[str, float, dict[str, float]]]) -> bytes:
    """Fairness against quality, one dot a model; further left is fairer, further up is better.

    Args:
        dots: A model's name, the mean absolute effect size of its measures, and its quality by metric.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.0), dpi=110, layout="constrained")
    for axes, (metric, title) in zip(figure.subplots(1, 2), _QUALITY.items(), strict=True):
        for place, (name, gap, quality) in enumerate(dots):
            axes.scatter(
                gap, quality[metric], s=40, color=MODEL_COLOURS[place % len(MODEL_COLOURS)], label=name, zorder=2
            )
        axes.set_xlim(0, 1.15 * max([gap for _, gap, _ in dots] + [0.01]))
        axes.set_ylim(0, 1.15 * max([quality[metric] for _, _, quality in dots] + [0.01]))
        axes.set_xlabel("mean absolute effect size (h or d)", fontsize=8)
        axes.set_ylabel(f"{title} (%)", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(color="#00000014")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=8, loc="outside right upper")
    return png(figure)


def png(figure: Any) -> bytes:
    """A figure as PNG, without the time and the software that would make equal pictures differ."""
    stream = BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()


def _cut(value: float) -> float:
    return max(-_WIDEST, min(_WIDEST, value))
