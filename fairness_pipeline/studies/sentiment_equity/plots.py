"""Draws the pictures of study 3."""

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.reporting.plots import png

_COLOUR = "#0b57d0"


def equity_plot(pairs: pa.Table, group_a: str, group_b: str) -> bytes:
    """Draws the differences between a pair's scores as box plots, one per affect and set of templates (figure 1).

    The box spans the middle half of the differences, the whiskers reach 1.5 times as far, dots mark values beyond.
    """
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(zip(pairs["affect"].to_pylist(), pairs["templates"].to_pylist(), strict=True)))[::-1]
    differences = []
    for affect, templates in kinds:
        chosen = pairs.filter(pc.and_(pc.equal(pairs["affect"], affect), pc.equal(pairs["templates"], templates)))
        differences.append(pc.subtract(chosen["score_a"], chosen["score_b"]).to_numpy())
    width, height = 7.2, 0.8 + 0.34 * len(kinds)
    left, below = 1.35 / width, 0.55 / height  # room for the labels; an automatic layout would draw three times
    figure = Figure(figsize=(width, height), dpi=110)
    axes = figure.add_axes((left, below, 0.98 - left, 0.96 - below))
    axes.boxplot(
        differences,
        orientation="horizontal",
        widths=0.6,
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": "#777777"},
        medianprops={"color": _COLOUR, "linewidth": 2},
    )
    axes.set_yticks(range(1, len(kinds) + 1), [f"{affect}, {templates}" for affect, templates in kinds])
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_xlabel(
        f"difference of a pair's scores   (left: higher for {group_b}, right: higher for {group_a})", fontsize=8
    )
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)
