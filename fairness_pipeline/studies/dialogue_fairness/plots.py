"""Pictures of study 1."""

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.reporting.plots import png

GROUP_COLOURS = ("#0b57d0", "#e8710a")
MODEL_COLOURS = ("#1c1c1c", "#0b57d0", "#e8710a", "#2e7d32", "#8e24aa", "#b3261e")
_FEATURES = {"unbiased": "Unbiased features f(u)", "semantic": "Semantic features f(s)"}
_QUALITY = {"bleu_2": "BLEU-2", "distinct_2": "Distinct-2"}


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
