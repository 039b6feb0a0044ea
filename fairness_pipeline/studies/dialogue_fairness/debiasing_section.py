"""Builds the report's sections on debiased models: effects, cost in quality, and the papers' numbers."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.debiasing.dialogue.registry import PROJECTION, is_control
from fairness_pipeline.foundation.parquet import read_parquet
from fairness_pipeline.measures.dialogue.measure import deciding
from fairness_pipeline.measures.dialogue.recipe_effects import RECIPE_EFFECTS, misnames_more
from fairness_pipeline.measures.dialogue.registry import is_part
from fairness_pipeline.reporting.results import shown_verdict
from fairness_pipeline.statistics.verdicts import NOTHING_TO_JUDGE
from fairness_pipeline.studies.dialogue_fairness import published
from fairness_pipeline.studies.dialogue_fairness.models import is_seed
from fairness_pipeline.studies.dialogue_fairness.plots import projection_plot, trade_off_plot
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.results import example_pairs
from fairness_pipeline.studies.dialogue_fairness.standing import degenerate
from fairness_pipeline.workspace.lake import Key, Lake

QUALITY = {
    "bleu_1": "BLEU-1", "bleu_2": "BLEU-2", "bleu_3": "BLEU-3",
    "distinct_1": "Distinct-1", "distinct_2": "Distinct-2", "perplexity": "Perplexity",
}  # fmt: skip
"""The labels of the metrics of response quality."""

Rows = dict[str, dict[str, Any]]
"""A table's rows by measure."""

_EXAMPLES = 3
_DEBIASED = "debiased_dialogue_models"


def debiasing_sections(part: DialoguePart, lake: Lake, outdated: Collection[Key] = ()) -> list[dict[str, Any]]:
    """One section for each dimension and base with a measured debiased model; `outdated` comparisons are left out.

    If a base is trained several times, the section shows its first seed, and all seeds together.
    """
    sections = []
    for dimension in part.dimensions:
        for base in dict.fromkeys(m.base for m in part.models.values() if m.base and not is_seed(m.base)):
            debiased = [
                key
                for key, model in part.models.items()
                if model.base == base
                and not is_seed(key)
                and {"dimension": dimension, "model": key} not in outdated
                and lake.card("debiasing_effects", {"dimension": dimension, "model": key})
            ]
            if debiased:
                sections.append(_section(part, lake, dimension, base, debiased))
    return sections


def _section(part: DialoguePart, lake: Lake, dimension: str, base: str, debiased: list[str]) -> dict[str, Any]:
    models = [base, *debiased]
    naming = {m: lake.figures("debiasing_effects", {"dimension": dimension, "model": m}) for m in debiased}
    tables = {m: _judged(part, lake, {"dimension": dimension, "model": m}) for m in models}
    effects = {m: _by_measure(lake, "debiasing_effects", {"dimension": dimension, "model": m}) for m in debiased}
    quality = {m: quality_of(part, lake, {"dimension": dimension, "model": m}) for m in models}
    measured = {m: _measured(part, lake, {"dimension": dimension, "model": m}) for m in models}
    dots = {model: _dots(part, lake, seeds) for model, seeds in measured.items()}
    misnames = [m for m, naming_figures in naming.items() if misnames_more(naming_figures)]
    dots = {f"{m} (names the other group)" if m in misnames else m: points for m, points in dots.items() if points}
    constants = next(({n: row["constant_value"] for n, row in q.items()} for q in quality.values() if q), {})
    return {
        "dimension": part.dimensions[dimension],
        "key": f"{dimension}-{base}-debiased",
        "base": base,
        "ranks": part.models[base].architecture == "retrieval",
        "made": debiased,
        "controls": [m for m in debiased if is_control(part.models[m])],
        "models": models,
        "measures": list(effects[debiased[0]]),
        "tables": tables,
        "effects": effects,
        "identical": _identical(base, naming),
        "naming": naming,
        "misnames": misnames,
        "commonest": {
            m: lake.figures("responses", {"dimension": dimension, "model": m}).get("commonest_share") for m in models
        },
        "trained_on": {
            m: figures
            for m in debiased
            if "updates" in (figures := lake.figures(_DEBIASED, {"dimension": dimension, "model": m}))
        },
        "recipes": _recipes(lake, dimension, debiased),
        "quality": quality,
        "quality_printed": any(
            row["published_value"] is not None for rows in quality.values() for row in rows.values()
        ),
        "signature": next((row["signature"] for q in quality.values() for row in q.values()), ""),
        "trade_off": trade_off_plot(dots, constants) if len(dots) > 1 else None,
        "printed": _printed(part, dimension, models),
        "disentangled": _disentangled(part, lake, dimension, debiased),
        "examples": _examples(lake, dimension, models),
    }


def _dots(part: DialoguePart, lake: Lake, measured: list[tuple[Key, Rows]]) -> list[tuple[float, dict[str, float]]]:
    """The mean effect and the quality by metric of each measured seed; seeds without both are left out."""
    points = [(mean_effect(rows), quality_of(part, lake, seed)) for seed, rows in measured]
    return [
        (effect, {name: row["value"] for name, row in quality.items()})
        for effect, quality in points
        if quality and effect is not None
    ]


def _measured(part: DialoguePart, lake: Lake, key: Key) -> list[tuple[Key, Rows]]:
    """The measured seeds of a model, with their rows by measure."""
    seeds = [seed for seed in part.seeds_of(key) or [key] if lake.card("dialogue_significance", seed)]
    return [(seed, _by_measure(lake, "dialogue_significance", seed)) for seed in seeds]


def mean_effect(rows: Rows) -> float | None:
    """The mean absolute effect size (Cohen's h of rates, d of counts) over the measures that have one, in the reading
    that their verdicts rest on; None if no measure has one."""
    sizes = [deciding(rows, name)["effect_size"] for name in rows if not is_part(name)]
    known = [size for size in sizes if size is not None]
    return float(np.mean(np.abs(known))) if known else None


def _by_measure(lake: Lake, table: str, key: Key) -> Rows:
    return {row["measure"]: row for row in lake.read(table, key).to_pylist()}


def _judged(part: DialoguePart, lake: Lake, key: Key) -> Rows:
    """The verdicts by measure, with the values that they rest on, and the papers' percentage for the unmasked answers;
    a degenerate model is not judged."""
    reason = degenerate(part, key, lake)
    rows = _by_measure(lake, "dialogue_significance", key)
    return {
        name: {
            **deciding(rows, name),
            "difference_percent": row["difference_percent"],
            "verdict": NOTHING_TO_JUDGE if reason else shown_verdict(row),
        }
        for name, row in rows.items()
    }


def _recipes(lake: Lake, dimension: str, debiased: list[str]) -> dict[str, Rows]:
    """The recipe effects of each model; a table from an earlier version is left out until it is made again."""
    keys = {m: {"dimension": dimension, "model": m} for m in debiased}
    tables = {m: lake.read("recipe_effects", key) for m, key in keys.items() if lake.card("recipe_effects", key)}
    return {
        m: {row["measure"]: row for row in table.to_pylist()}
        for m, table in tables.items()
        if table.schema.names == RECIPE_EFFECTS.names
    }


def quality_of(part: DialoguePart, lake: Lake, key: Key) -> dict[str, dict[str, Any]]:
    """The rows of response quality by metric; empty if it was not measured."""
    debiased = part.models[key["model"]].debiasing is not None
    table, partition = ("response_quality", key) if debiased else ("base_response_quality", {"model": key["model"]})
    return {row["metric"]: row for row in lake.rows(table, partition)}


def _identical(base: str, figures: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Share of pairs with the same response on both sides, by model."""
    first = next(iter(figures.values()))
    return {base: first["identical_responses_before"]} | {
        m: after["identical_responses_after"] for m, after in figures.items()
    }


def _printed(part: DialoguePart, dimension: str, models: list[str]) -> list[dict[str, Any]]:
    """The papers' tables that have these models: the source of each, and its rows by model and measure."""
    published_dimension = part.dimensions[dimension].published_as
    names = {m: part.models[m].published_as or m for m in models}
    platform = part.corpora[part.models[models[0]].corpus].specification.platform
    rows_by_source: dict[str, dict[str, dict[str, published.PublishedRow]]] = {}
    for row in published.dialogue_fairness():
        for model, name in names.items():
            if (row.corpus, row.dimension) == (platform, published_dimension) and row.model in (
                name,
                published.CHAPTER_3.get(name),
            ):
                rows_by_source.setdefault(row.source, {}).setdefault(model, {})[row.measure] = row
    return [{"source": source, "rows": rows} for source, rows in sorted(rows_by_source.items())]


def _disentangled(part: DialoguePart, lake: Lake, dimension: str, debiased: list[str]) -> list[dict[str, Any]]:
    """Table 3.2 and figure 3.2, for each model that has an autoencoder."""
    entries = []
    for model in debiased:
        key = {"dimension": dimension, "model": model}
        card = lake.card("disentanglement", key)
        if card:
            groups = part.dimensions[dimension].groups
            platform = part.corpora[part.models[model].corpus].specification.platform
            points = read_parquet(lake.current_folder("disentanglement", key) / PROJECTION)
            entries.append(
                {
                    "model": model,
                    "figures": card.figures,
                    "printed": published.disentanglement(platform=platform),
                    "printed_here": part.dimensions[dimension].published_as == "gender",
                    "picture": projection_plot(points, (groups.a, groups.b)),
                }
            )
    return entries


def _examples(lake: Lake, dimension: str, models: list[str]) -> list[dict[str, Any]]:
    """The base's most different answers, and every model's answers to the same contexts (in the form of table 3.6)."""
    pairs = example_pairs(lake, {"dimension": dimension, "model": models[0]}, _EXAMPLES)
    answers = {}
    for model in models:
        table = lake.read("responses", {"dimension": dimension, "model": model})
        answers[model] = table.filter(pc.is_in(table["pair_id"], pa.array([row["pair_id"] for row in pairs])))
    examples = []
    for row in pairs:
        by_model = {}
        for model, table in answers.items():
            rows = table.filter(pc.equal(table["pair_id"], row["pair_id"])).to_pylist()
            by_model[model] = {answer["side"]: answer["response"] for answer in rows}
        examples.append({"a": row["context_a"], "b": row["context_b"], "answers": by_model})
    return examples
