"""Renders the report of study 1 as one self-contained HTML file."""

from collections.abc import Collection
from typing import Any

import pyarrow.compute as pc

from fairness_pipeline.debiasing.dialogue.registry import is_control
from fairness_pipeline.measures.dialogue.measure import MASKED, deciding
from fairness_pipeline.measures.dialogue.registry import glanced_at, measure_label
from fairness_pipeline.measures.dialogue.spread import hides_opposite_gaps
from fairness_pipeline.measures.dialogue.variations import CARRIERS, SOURCE
from fairness_pipeline.models.replies import FILTERED, REFUSED
from fairness_pipeline.reporting import page
from fairness_pipeline.reporting.html import in_words
from fairness_pipeline.reporting.plots import difference_plot
from fairness_pipeline.reporting.results import Audit, folded, severity, worst_first
from fairness_pipeline.statistics.verdicts import NOTHING_TO_JUDGE
from fairness_pipeline.studies.dialogue_fairness.debiasing_section import QUALITY, debiasing_sections
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.published import PublishedRow
from fairness_pipeline.studies.dialogue_fairness.results import (
    example_pairs,
    pairs_of,
    published_rows_of,
    striking_pair,
)
from fairness_pipeline.studies.dialogue_fairness.study import LISTS, STUDY
from fairness_pipeline.workspace.lake import Key, Lake, Row

_PAIRS = 6
"""Example pairs for the words that distinguish the answers."""
_LEVELS = 6
"""Levels of each factor that are shown for a biased measure."""
_WORDLESS = {REFUSED: "declined, as the endpoint reports", FILTERED: "withheld by a content filter"}
"""The text in place of an answer without words."""


def render_report(part: DialoguePart, lake: Lake, audits: list[Audit], *, outdated: Collection[Key] = ()) -> str:
    """Returns the whole report; audits that are missing in the lake are listed as not measured.

    Stale audits are marked; `outdated` comparisons with a base are left out.

    All text is escaped: a tweet may hold `<script>`.
    """
    glanced, never = folded(
        glanced_at(), (row for audit in audits for row in audit.rows), lambda row: str(row["measure"])
    )
    return page.render(
        STUDY,
        part.project,
        lake,
        audits,
        striking=lambda audit, row: _striking(part, lake, audit, row),
        filters={"measure": measure_label},
        caveats=[
            f"{dimension.label}: {caveat}"
            for key, dimension in part.dimensions.items()
            if any(audit.key["dimension"] == key and audit.measured for audit in audits)
            for caveat in dimension.caveats
        ],
        sections=[_section(part, lake, audit) for audit in worst_first(STUDY, audits) if audit.measured],
        debiased=debiasing_sections(part, lake, outdated),
        outdated=[" × ".join(key.values()) for key in outdated],
        quality_labels=QUALITY,
        waiting=_waiting(part),
        worth=_verdict_readings([audit for audit in worst_first(STUDY, audits) if not audit.degenerate]),
        recipes=recipe_rows(part, lake),
        classifiers=_classifiers(part, lake),
        headings=[measure_label(measure) for measure in glanced],
        never=[measure_label(measure) for measure in never],
        grid=_grid(part, worst_first(STUDY, audits), glanced),
        settings=_settings(part),
        sources=_sources(part, lake),
        corpora={key: source.specification for key, source in part.corpora.items()},
        versions=_versions(part, lake, audits),
        models=_models(part, lake),
    )


def _striking(part: DialoguePart, lake: Lake, audit: Audit, row: Row) -> dict[str, Any] | None:
    groups = STUDY.groups(part, audit.key)
    pair = striking_pair(lake, audit.key, row)
    if pair is None:
        return None
    return {
        side: {
            "group": group,
            "context": pair[f"context_{side}"],
            "response": pair[f"response_{side}"] or f"({_WORDLESS.get(pair[f'kind_{side}'], 'no answer')})",
        }
        for side, group in zip("ab", groups, strict=True)
    }


def _section(part: DialoguePart, lake: Lake, audit: Audit) -> dict[str, Any]:
    dimension = part.dimensions[audit.key["dimension"]]
    corpus = part.models[audit.key["model"]].corpus
    published = published_rows_of(part, **audit.key)
    key = {"corpus": corpus, "dimension": audit.key["dimension"]}
    contexts = lake.figures("contexts", key)
    diversity = [] if audit.stale else lake.rows("diversity", audit.key)
    return {
        "audit": audit,
        "dimension": dimension,
        "corpus": corpus,
        "rows": [(row, published.get(row["measure"])) for row in _unmasked(audit)],
        "told_apart": _distinguishing_words(lake, audit),
        "breakdown": _breakdown(lake, audit),
        "without": _verdicts_without_pairs(lake, audit),
        "published_source": _source(published),
        "plot": difference_plot(_unmasked(audit), dimension.groups.a, dimension.groups.b, measure_label),
        "examples": [] if audit.stale else example_pairs(lake, audit.key, part.settings.examples),
        "quality": {**contexts, **lake.figures("context_pairs", key)},
        "ruled": contexts.get("rules_of_sense", []),
        "words": {row["side"]: row["words"] for row in diversity},
    }


def _unmasked(audit: Audit) -> list[Row]:
    """The rows without the masked readings."""
    return [row for row in audit.rows if not row["measure"].endswith(MASKED)]


def _verdict_readings(audits: list[Audit]) -> list[tuple[Audit, Row, Row]]:
    """Every verdict with the reading that it rests on; the audits in the given order, the worst rows first."""
    entries = []
    for audit in audits:
        by_name = {row["measure"]: row for row in audit.rows}
        rows = sorted((row for row in audit.rows if STUDY.gated(row)), key=severity(STUDY))
        entries += [(audit, row, deciding(by_name, row["measure"])) for row in rows]
    return entries


def _distinguishing_words(lake: Lake, audit: Audit) -> dict[str, Any] | None:
    """The words that distinguish the answers, and pairs that show them; None if no words do."""
    figures = {} if audit.stale else lake.figures("distinguishable_answers", audit.key)
    if not figures.get("carriers"):
        return None
    ids = [
        pair_ids[rank]
        for rank in range(_PAIRS)
        for carrier in figures["carriers"]
        if rank < len(pair_ids := carrier["pairs"])
    ]
    return {**figures, "examples": pairs_of(lake, audit.key, list(dict.fromkeys(ids))[:_PAIRS])}


def _breakdown(lake: Lake, audit: Audit) -> dict[str, list[Row]]:
    """The levels of each factor that contribute most to a biased measure's gap, by measure."""
    if audit.stale or not lake.card("dialogue_breakdown", audit.key):
        return {}
    table = lake.read("dialogue_breakdown", audit.key)
    breakdown: dict[str, list[Row]] = {}
    for verdict_row in sorted((row for row in audit.rows if STUDY.gated(row)), key=severity(STUDY)):
        if verdict_row["verdict"] == "biased" and not hides_opposite_gaps(verdict_row):
            rows = table.filter(pc.equal(table["measure"], verdict_row["measure"])).to_pylist()
            for factor in dict.fromkeys(row["factor"] for row in rows):
                levels = [row for row in rows if row["factor"] == factor]
                levels.sort(key=lambda row: -row["contribution"] * (1 if verdict_row["difference"] > 0 else -1))
                for row in levels[:_LEVELS] if len(levels) > 1 else ():
                    breakdown.setdefault(verdict_row["measure"], []).append({**row, "whole": verdict_row["difference"]})
    return breakdown


def _verdicts_without_pairs(lake: Lake, audit: Audit) -> list[Row]:
    """The verdicts on biased measures after some pairs were left out."""
    biased = [row["measure"] for row in audit.rows if STUDY.gated(row) and row["verdict"] == "biased"]
    rows = [] if audit.stale else lake.rows("verdict_variations", audit.key)
    return [row for row in rows if row["kind"] in ("without", CARRIERS, SOURCE) and row["measure"] in biased]


def recipe_rows(part: DialoguePart, lake: Lake) -> list[tuple[Key, Row]]:
    """Every row of the verdicts on recipes; degenerate checkpoints do not show that a recipe is fair."""
    entries = []
    for key in part.expected():
        seeds = part.seeds_of(key)
        if seeds and lake.card("recipe_significance", key):
            degenerate = sum(STUDY.degenerate(part, seed, lake) is not None for seed in seeds)
            for row in lake.read("recipe_significance", key).to_pylist():
                if degenerate and (row["verdict"] == "fair" or degenerate == len(seeds)):
                    row["verdict"] = NOTHING_TO_JUDGE
                entries.append((key, {**row, "degenerate": degenerate}))
    return entries


def _classifiers(part: DialoguePart, lake: Lake) -> list[tuple[str, Row]]:
    """The quality of the offence classifiers on labelled texts, by dimension."""
    return [(key, row) for key in part.dimensions for row in lake.rows("classifier_quality", {"dimension": key})]


def _waiting(part: DialoguePart) -> list[str]:
    """The models that are made only on request: some in all dimensions, and debiased models in some dimensions."""
    debiased = [key for key, model in part.models.items() if model.base]
    debias = part.settings.debias
    dimensions = [key for key in part.dimensions if debiased and debias is not None and key not in debias]
    return [*part.settings.on_request, *(f"debiased models in {key}" for key in dimensions)]


def _source(published: dict[str, PublishedRow]) -> str | None:
    first = next(iter(published.values()), None)
    return f"{first.source}, {first.n_pairs:,} pairs" if first else None


def _grid(part: DialoguePart, audits: list[Audit], glanced: list[str]) -> list[dict[str, Any]]:
    """The verdicts at a glance: a row per audit, a cell per measure, and one cell for all attribute lists."""
    grid = []
    for audit in audits:
        cells = {row["measure"]: row for row in audit.rows}
        grid.append(
            {
                "audit": audit,
                "dimension": part.dimensions[audit.key["dimension"]],
                "corpus": part.models[audit.key["model"]].corpus,
                "cells": [cells.get(measure) for measure in glanced],
                "lists": [row for row in audit.rows if STUDY.heading(row) == LISTS],
            }
        )
    return grid


def _settings(part: DialoguePart) -> dict[str, Any]:
    trained = any(model.trained for model in part.models.values())
    training_keys = {"splits", "planted"} if trained else set()
    settings = part.settings.model_dump(
        include={*training_keys, "pairs", "measures", "significance"}, exclude_none=True
    )
    return {"seed": part.project.profile.seed, **settings}


def _sources(part: DialoguePart, lake: Lake) -> list[tuple[str, str, str]]:
    return [
        (key, path, version)
        for key in part.corpora
        if (card := lake.card(part.dialogues_of(key), {"corpus": key}))
        for path, version in card.inputs["settings"].get("files", {}).items()
    ]


def _versions(part: DialoguePart, lake: Lake, audits: list[Audit]) -> dict[str, str]:
    """The libraries that the numbers depend on, in the versions that made the tables."""
    bases = ("dialogue_models", "base_response_quality")
    cards = [lake.card(asset, {"model": model}) for model in part.models for asset in bases]
    tables = ("debiased_dialogue_models", "politeness", "sentiment", "dialogue_significance", "response_quality")
    for audit in audits:
        cards += [lake.card(table, audit.key) for table in tables]
    settings = [card.inputs.get("settings", {}) for card in cards if card]
    return {name: version for entry in settings for name, version in entry.get("versions", {}).items()}


_KINDS = {
    "seq2seq": "an LSTM encoder-decoder, trained here",
    "retrieval": "a Transformer that ranks candidates, trained here",
    "causal_lm": "a causal language model",
    "encoder_decoder": "an encoder-decoder",
    "endpoint": "whatever answers at an address",
    "imported": "answers from a file, by an unknown system",
}
_NOT_SHOWN = {
    "architecture", "corpus", "base", "debiasing", "studies", "published_as", "dimensions", "device", "threads"
}  # fmt: skip


def _served(part: DialoguePart, lake: Lake, model: str) -> list[str]:
    """The models that answered, as the endpoint names them."""
    figures = (lake.figures("responses", {"dimension": dimension, "model": model}) for dimension in part.dimensions)
    return list(dict.fromkeys(name for answered in figures for name in answered.get("served_model", {})))


def _models(part: DialoguePart, lake: Lake) -> list[dict[str, Any]]:
    models = []
    for key, model in part.models.items():
        checkpoints = {"": lake.card("dialogue_models", {"model": key})}
        for dimension in part.dimensions if model.debiasing else ():
            checkpoints[dimension] = lake.card("debiased_dialogue_models", {"dimension": dimension, "model": key})
        card = {"is": _KINDS.get(model.architecture, model.architecture), "answers the contexts of": model.corpus}
        if model.base:
            control = is_control(model)
            card["trained on, as a control" if control else "made fairer"] = f"from {model.base} by {model.debiasing}"
        hidden = _NOT_SHOWN | ({"decoding", "seeds"} if model.architecture == "imported" else set())
        for name, value in model.model_dump(exclude_none=True, exclude=hidden).items():
            card[name] = in_words(value)
        if served := _served(part, lake, key):
            card["answered as"] = ", ".join(served)
        for dimension, checkpoint in checkpoints.items():
            figures = {
                name: value
                for name, value in (checkpoint.figures if checkpoint else {}).items()
                if type(value) is not list
            }
            if figures:
                card[f"found while it was made{dimension and f', {dimension}'}"] = in_words(figures)
        models.append({"key": key, "card": card})
    return models
