"""Draws the plots of study 2."""

from collections.abc import Sequence

from fairness_pipeline.measures.language.phrase_bias import PAPER
from fairness_pipeline.reporting.plots import png
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.studies.language_model_bias.profile import LanguageModelPart
from fairness_pipeline.studies.language_model_bias.results import paper_t, row_of
from fairness_pipeline.workspace.lake import Row

_COLOURS = ("#0b57d0", "#8a6d00", "#00696f", "#b3261e", "#7b3fa0", "#777777", "#2e7d32", "#444444")


def t_values(part: LanguageModelPart, audits: Sequence[Audit]) -> bytes:
    """Figure 1a: t of the paper's test, a bar per model and dimension; a star marks a p below the level."""
    values: dict[str, dict[str, tuple[float, bool]]] = {}
    for audit in audits:
        value, row = paper_t(audit), row_of(audit, PAPER)
        if value is not None and row and not audit.degenerate:
            values.setdefault(audit.key["model"], {})[audit.key["dimension"]] = value, row["p"] < part.level
    return _bars(list(part.dimensions), values, "t   (below 0: stereotypical)")


def reference_perplexities(part: LanguageModelPart, rows: Sequence[tuple[dict[str, str], Row]]) -> bytes:
    """Figure 1b: the mean perplexity of human references, by model and dimension; a base has one value for all."""
    values: dict[str, dict[str, tuple[float, bool]]] = {}
    for key, row in rows:
        if row["metric"] == "perplexity_mean":
            for dimension in [key["dimension"]] if "dimension" in key else part.dimensions:
                values.setdefault(key["model"], {})[dimension] = row["value"], False
    return _bars(list(part.dimensions), values, "mean perplexity of human references")


def _bars(dimensions: list[str], values: dict[str, dict[str, tuple[float, bool]]], label: str) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 3.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / max(1, len(values))
    for number, (model, bars) in enumerate(values.items()):
        positions = [position for position, dimension in enumerate(dimensions) if dimension in bars]
        heights = [bars[dimensions[position]][0] for position in positions]
        lefts = [position - 0.4 + (number + 0.5) * width for position in positions]
        axes.bar(lefts, heights, width * 0.92, label=model, color=_COLOURS[number % len(_COLOURS)])
        for position, left, height in zip(positions, lefts, heights, strict=True):
            if bars[dimensions[position]][1]:
                axes.annotate("*", (left, height), ha="center", va="bottom" if height > 0 else "top", fontsize=9)
    axes.axhline(0, color="#444444", linewidth=0.8)
    axes.set_xticks(range(len(dimensions)), dimensions)
    axes.set_ylabel(label, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=7, frameon=False, ncols=7, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    return png(figure)
