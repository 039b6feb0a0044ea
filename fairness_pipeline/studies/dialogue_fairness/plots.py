"""Draws the plots of study 1."""

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.reporting.plots import png

GROUP_COLOURS = ("#0b57d0", "#e8710a")
MODEL_COLOURS = ("#1c1c1c", "#0b57d0", "#e8710a", "#2e7d32", "#8e24aa", "#b3261e", "#00838f", "#6d4c41", "#c2185b")
_MARKERS = ("*", "o", "s", "^", "D", "v", "P", "X", "h")
_FEATURES = {"unbiased": "Unbiased features f(u)", "semantic": "Semantic features f(s)"}
_QUALITY = {"bleu_2": "BLEU-2", "distinct_2": "Distinct-2"}


def projection_plot(points: pa.Table, groups: tuple[str, str]) -> bytes:
    """Figure 3.2 of Liu 2022: unbiased and semantic features of test utterances on a plane, one colour per group.

    Args:
        points: Columns `features`, `side`, `x`, `y`.
        groups: Names of side a and side b.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.4), dpi=110, layout="constrained")
    for axes, (name, title) in zip(figure.subplots(1, 2), _FEATURES.items(), strict=True):
        for side, group, colour in zip("ab", groups, GROUP_COLOURS, strict=True):
            selected = points.filter(pc.and_(pc.equal(points["features"], name), pc.equal(points["side"], side)))
            axes.scatter(selected["x"], selected["y"], s=7, color=colour, alpha=0.6, linewidths=0, label=group)
        axes.set_title(title, fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.axes[0].legend(fontsize=8, markerscale=2)
    return png(figure)


def trade_off_plot(dots: dict[str, list[tuple[float, dict[str, float]]]], constants: dict[str, float | None]) -> bytes:
    """The remaining gap against quality: a small dot per training, and a large dot per model at their mean.

    Further left is fairer, further up is better.

    Args:
        dots: The trainings of each model: the mean absolute effect size over the measures, and the quality by metric.
        constants: The value that one answer to everything would get, by metric; drawn as a line.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 3.2), dpi=110, layout="constrained")
    everything = [dot for trainings in dots.values() for dot in trainings]
    for axes, (metric, title) in zip(figure.subplots(1, 2), _QUALITY.items(), strict=True):
        for index, (name, trainings) in enumerate(dots.items()):
            colour, marker = MODEL_COLOURS[index % len(MODEL_COLOURS)], _MARKERS[index % len(_MARKERS)]
            gaps, values = [gap for gap, _ in trainings], [quality[metric] for _, quality in trainings]
            if len(trainings) > 1:
                axes.scatter(gaps, values, s=9, color=colour, alpha=0.55, linewidths=0)
            mean = sum(gaps) / len(gaps), sum(values) / len(values)
            axes.scatter(*mean, s=46, color=colour, marker=marker, label=name, zorder=2)
        if constants.get(metric) is not None:
            axes.axhline(
                constants[metric], color="#5f6368", linestyle=":", linewidth=1, label="one answer to everything"
            )
        axes.set_xlim(0, 1.1 * max(0.01, *(gap for gap, _ in everything)))
        axes.set_ylim(0, 1.1 * max(0.01, *(quality[metric] for _, quality in everything)))
        axes.set_xlabel("gap left: mean absolute effect size (h or d)", fontsize=8)
        axes.set_ylabel(f"{title} (%)", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(color="#00000014")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=7, loc="outside right upper")
    return png(figure)
