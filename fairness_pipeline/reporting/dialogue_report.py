"""The report of study 1: one self-contained HTML file."""

from collections.abc import Collection
from typing import Any

from fairness_pipeline.lake import Lake
from fairness_pipeline.project import Project
from fairness_pipeline.published import PublishedRow
from fairness_pipeline.reporting.debiasing_section import QUALITY, debiasing_sections
from fairness_pipeline.reporting.html import template
from fairness_pipeline.reporting.labels import GLANCE, MEASURES
from fairness_pipeline.reporting.plots import COLOURS, difference_plot
from fairness_pipeline.reporting.results import Audit, dialogue_audits, example_pairs, published_rows_of


def render_dialogue_report(
    project: Project,
    lake: Lake,
    *,
    stale: Collection[tuple[str, str]] = (),
    outdated: Collection[tuple[str, str]] = (),
) -> str:
    """The whole report from what the lake holds; what it does not hold is listed as not measured.

    All text is escaped: a tweet may hold `<script>`.

    Args:
        project: The profile.
        lake: What has been made.
        stale: (dimension, model) of audits made with other settings or data than the profile's; they are marked so.
        outdated: (dimension, model) of comparisons with a base of which the same is true; they are left out.
    """
    audits = dialogue_audits(project, lake)
    return template("dialogue_report.html.j2").render(
        profile=project.name,
        description=project.profile.description,
        caveats=_caveats(project),
        sections=[_section(project, lake, audit, stale) for audit in audits if audit.measured],
        debiased=debiasing_sections(project, lake, outdated),
        outdated=[f"{d} × {m}" for d, m in outdated if lake.card("debiasing_effects", {"dimension": d, "model": m})],
        quality_labels=QUALITY,
        waiting=_waiting(project),
        missing=[audit for audit in audits if not audit.measured],
        grid=_grid(project, audits),
        colours=COLOURS,
        settings=_settings(project),
        sources=_sources(project, lake),
        corpora={key: source.specification for key, source in project.corpora.items()},
        dimensions=project.dimensions,
        versions=_versions(project, lake),
        models=_models(project, lake),
    )


def _section(project: Project, lake: Lake, audit: Audit, stale: Collection[tuple[str, str]]) -> dict[str, Any]:
    dimension = project.dimensions[audit.dimension]
    corpus = project.models[audit.model].corpus
    published = published_rows_of(project, audit.dimension, audit.model)
    pairs = lake.card("context_pairs", {"corpus": corpus, "dimension": audit.dimension})
    found = lake.card("contexts", {"corpus": corpus, "dimension": audit.dimension})
    diversity = lake.read("diversity", _key(audit)).to_pylist() if lake.card("diversity", _key(audit)) else []
    return {
        "audit": audit,
        "stale": (audit.dimension, audit.model) in stale,
        "dimension": dimension,
        "corpus": corpus,
        "rows": [(row, published.get(row["measure"])) for row in audit.rows],
        "published_source": _source(published),
        "plot": difference_plot(audit.rows, dimension.groups.a, dimension.groups.b),
        "examples": example_pairs(lake, audit.dimension, audit.model, project.profile.examples),
        "quality": {**(found.figures if found else {}), **(pairs.figures if pairs else {})},
        "words": {row["side"]: row["words"] for row in diversity},
    }


def _waiting(project: Project) -> list[str]:
    """Dimensions in which debiased models wait to be asked for."""
    keys = ({"dimension": d, "model": m} for d in project.dimensions for m in project.models)
    return list(
        dict.fromkeys(
            key["dimension"]
            for key in keys
            if project.is_made_for(key["model"], key["dimension"]) and not project.made_by_default(key)
        )
    )


def _key(audit: Audit) -> dict[str, str]:
    return {"dimension": audit.dimension, "model": audit.model}


def _source(published: dict[str, PublishedRow]) -> str | None:
    first = next(iter(published.values()), None)
    return f"{first.source}, {first.n_pairs:,} pairs" if first else None


def _grid(project: Project, audits: list[Audit]) -> list[dict[str, Any]]:
    """The verdicts at a glance: one row an audit, one cell a measure, the attribute lists together in the last."""
    grid = []
    for audit in audits:
        cells = {row["measure"]: row for row in audit.rows}
        grid.append(
            {
                "audit": audit,
                "dimension": project.dimensions[audit.dimension],
                "corpus": project.models[audit.model].corpus,
                "cells": [cells[measure] for measure in GLANCE if measure in cells],
                "lists": [row for row in audit.rows if row["measure"] not in MEASURES],
            }
        )
    return grid


def _caveats(project: Project) -> list[str]:
    return [f"{dimension.label}: {caveat}" for dimension in project.dimensions.values() for caveat in dimension.caveats]


def _settings(project: Project) -> dict[str, Any]:
    profile = project.profile
    return {
        "seed": profile.seed,
        "splits": profile.splits.model_dump(),
        "pairs": profile.pairs.model_dump(),
        "measures": profile.measures.model_dump(),
        "significance": profile.significance.model_dump(exclude_none=True),
    }


def _sources(project: Project, lake: Lake) -> list[tuple[str, str, str]]:
    cards = {
        key: lake.card(f"{source.specification.platform}_dialogues", {"corpus": key})
        for key, source in project.corpora.items()
    }
    return [
        (key, path, version)
        for key, card in cards.items()
        if card
        for path, version in card.inputs["settings"]["sha256"].items()
    ]


def _versions(project: Project, lake: Lake) -> dict[str, str]:
    """The libraries that the numbers depend on, as they were when the tables were made."""
    cards = [lake.card("dialogue_models", {"model": model}) for model in project.models]
    tables = ("debiased_dialogue_models", "politeness", "sentiment", "dialogue_significance", "response_quality")
    for audit in dialogue_audits(project, lake):
        cards += [lake.card(table, _key(audit)) for table in tables]
    settings = [card.inputs.get("settings", {}) for card in cards if card]
    return {name: version for found in settings for name, version in found.get("versions", {}).items()}


def _models(project: Project, lake: Lake) -> list[dict[str, Any]]:
    models = []
    for key, model in project.models.items():
        cards = {"": lake.card("dialogue_models", {"model": key})}
        for dimension in project.dimensions if model.debiasing else ():
            cards[dimension] = lake.card("debiased_dialogue_models", {"dimension": dimension, "model": key})
        figures = {
            " ".join([dimension, name]).strip(): value
            for dimension, card in cards.items()
            if card
            for name, value in card.figures.items()
            if not isinstance(value, list)
        }
        models.append({"key": key, "specification": model.model_dump(exclude_none=True), "figures": figures})
    return models
