"""Pictures of study 5."""

from fairness_pipeline.reporting.plots import png
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.studies.annotator_bias.results import calibrated
from fairness_pipeline.workspace.lake import Lake, Row

_COLOURS = ("#0b57d0", "#b3261e", "#1e7d32", "#8a5a00", "#6a1b9a")


def effects_plot(rows: list[Row], of_sums: bool) -> bytes | None:
    """Differences of groups as a forest plot: each contrast with its 95% interval; None where nothing is estimated.

    Args:
        rows: The contrasts, as in `BIAS_ESTIMATES`.
        of_sums: Whether they are of the thesis' sums, and not of probabilities.
    """
    from matplotlib.figure import Figure

    if not rows:
        return None
    responses = list(dict.fromkeys(row["response"] for row in rows))
    figure = Figure(figsize=(7.6, 0.9 + 0.3 * len(rows)), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    for place, row in enumerate(reversed(rows)):
        colour = _COLOURS[responses.index(row["response"]) % len(_COLOURS)]
        axes.plot([row["ci_low"], row["ci_high"]], [place, place], color=colour, linewidth=2.2)
        axes.plot(row["value"], place, "o", color=colour, markersize=5, label=None)
        if row["truth"] is not None:
            axes.plot(row["truth"], place, "|", color="#000000", markersize=13, markeredgewidth=1.6)
    labels = [f"{row['category']}: {row['name']}, {row['response']}" for row in reversed(rows)]
    axes.set_yticks(range(len(rows)), labels, fontsize=7.5)
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_xlim(*(bound + pad for bound, pad in zip(_within(axes.get_xlim()), (-0.02, 0.02), strict=True)))
    simulated = any(row["truth"] is not None for row in rows)
    of = "of the thesis' sums" if of_sums else "of probabilities"
    told = f"first group minus second, {of}, with 95% interval" + ("; black: simulated" if simulated else "")
    axes.set_xlabel(told, fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def calibration_plot(part: AnnotatorBiasPart, lake: Lake, corpus: str) -> bytes | None:
    """Inferred probabilities beside the share of items that are truly positive; None without gold labels.

    Args:
        part: The profile's part of the study.
        lake: What has been made.
        corpus: Which.
    """
    from matplotlib.figure import Figure

    found = calibrated(part, lake, corpus)
    if not found:
        return None
    figure = Figure(figsize=(3.6, 3.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
    for (title, bins), style in zip(found.items(), ("o-", "s--", "^:"), strict=False):
        axes.plot([own[0] for own in bins], [own[1] for own in bins], style, markersize=4, linewidth=1, label=title)
    axes.set_xlabel("inferred probability", fontsize=8)
    axes.set_ylabel("share truly positive", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)


def _within(limits: tuple[float, float]) -> tuple[float, float]:
    """At most from -1 to 1, where a difference of probabilities can lie."""
    return max(-1.0, limits[0]), min(1.0, limits[1])
