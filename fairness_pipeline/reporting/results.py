"""What the lake holds of a study, put together for a reader."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline import published
from fairness_pipeline.lake import Card, Key, Lake
from fairness_pipeline.project import Project
from fairness_pipeline.published import PublishedRow, published_rows


@dataclass(frozen=True)
class Audit:
    """One dimension and model: its significance rows, or none where it was not measured."""

    dimension: str
    model: str
    rows: list[dict[str, Any]]
    card: Card | None

    @property
    def measured(self) -> bool:
        """Whether the lake holds its significance table."""
        return bool(self.rows)


def dialogue_audits(project: Project, lake: Lake) -> list[Audit]:
    """Every dimension and model of the profile, measured or not; without debiased models that wait to be asked for."""
    audits = []
    for dimension in project.dimensions:
        for model in project.models:
            key: Key = {"dimension": dimension, "model": model}
            card = lake.card("dialogue_significance", key)
            if not card and not (project.made_by_default(key) and project.is_made_for(model, dimension)):
                continue
            rows = lake.read("dialogue_significance", key).to_pylist() if card else []
            audits.append(Audit(dimension, model, rows, card))
    return audits


def published_rows_of(project: Project, dimension: str, model: str) -> dict[str, PublishedRow]:
    """What the papers print, by measure, for a model of this kind on a corpus of this platform; empty if nothing."""
    specification = project.models[model]
    return published_rows(
        platform=project.corpora[specification.corpus].specification.platform,
        dimension=project.dimensions[dimension].published_as,
        model=specification.published_as or model,
    )


def published_quality_of(project: Project, dimension: str, model: str) -> dict[str, float]:
    """What table 3.5 of Liu 2022 prints for a model of this kind on a corpus of this platform, by metric.

    Its debiased models are debiased for gender.
    """
    specification = project.models[model]
    if specification.debiasing and project.dimensions[dimension].published_as != "gender":
        return {}
    platform = project.corpora[specification.corpus].specification.platform
    name = specification.published_as or model
    return published.response_quality(platform=platform, model=published.CHAPTER_3.get(name, name))


def result_rows(audits: list[Audit]) -> list[dict[str, Any]]:
    """The audits as flat rows; one that was not measured is a row that says so."""
    rows: list[dict[str, Any]] = []
    for audit in audits:
        where = {"dimension": audit.dimension, "model": audit.model}
        rows += [{**where, **row} for row in audit.rows] or [{**where, "measure": None, "verdict": "not measured"}]
    return rows


def example_pairs(lake: Lake, dimension: str, model: str, count: int) -> list[dict[str, Any]]:
    """Pairs whose two answers differ, those first that differ in offence or sentiment; in the order of the pairs.

    Returns:
        Dicts with `pair_id`, `context_a`, `context_b`, `response_a`, `response_b`, and `flags_a`, `flags_b` (lists of
        words).
    """
    key = {"dimension": dimension, "model": model}
    responses = lake.read("responses", key)
    flags = lake.read("politeness", key).join(lake.read("sentiment", key), ["pair_id", "side"])
    table = responses.join(flags, ["pair_id", "side"]).sort_by("pair_id")
    a, b = (table.filter(pc.equal(table["side"], side)) for side in ("a", "b"))
    differ = pc.not_equal(a["response"], b["response"])
    flagged = [pc.not_equal(a[flag], b[flag]) for flag in _FLAGS]
    marked = pc.and_(differ, pc.or_(pc.or_(flagged[0], flagged[1]), flagged[2]))
    order = pa.table({"mark": pc.cast(marked, pa.int8()), "differ": pc.cast(differ, pa.int8()), "id": a["pair_id"]})
    first = pc.sort_indices(order, [("mark", "descending"), ("differ", "descending"), ("id", "ascending")]).slice(
        0, count
    )
    return [
        {
            "pair_id": left["pair_id"],
            **{
                f"{name}_{side}": row[name]
                for side, row in (("a", left), ("b", right))
                for name in ("context", "response")
            },
            **{f"flags_{side}": [f for f in _FLAGS if row[f]] for side, row in (("a", left), ("b", right))},
        }
        for left, right in zip(a.take(first).to_pylist(), b.take(first).to_pylist(), strict=True)
    ]


_FLAGS = ("offensive", "positive", "negative")
