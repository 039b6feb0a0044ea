"""Renders the report of study 2 as one self-contained HTML file."""

from collections import Counter
from typing import Any

from fairness_pipeline.corpora.language.phrase_corpus import DownstreamTask
from fairness_pipeline.lexicons.stereotypes import stereotypes_of
from fairness_pipeline.measures.language.phrase_bias import PAPER
from fairness_pipeline.measures.language.stereotype import STEREOTYPE, odds_ratio
from fairness_pipeline.reporting import page
from fairness_pipeline.reporting.results import Audit, worst_first
from fairness_pipeline.studies.language_model_bias import published
from fairness_pipeline.studies.language_model_bias.plots import reference_perplexities, t_values
from fairness_pipeline.studies.language_model_bias.profile import LanguageModelPart
from fairness_pipeline.studies.language_model_bias.results import by_word, row_of, tasks, widest_gaps
from fairness_pipeline.studies.language_model_bias.study import STUDY
from fairness_pipeline.workspace.lake import Key, Lake, Row
from fairness_pipeline.workspace.published import rows

_EXAMPLES = 3
_TASKS: dict[str, tuple[str, DownstreamTask, str]] = {
    "Dialogue state tracking (table 4, appendix C)": ("dialogue_state_tracking", "state_tracking", "dst"),
    "Response generation (table 5, appendix C)": ("response_generation", "responses", "crg"),
}
"""By title: the table of a task, its key in the corpus, and its name in the paper's file."""


def render_report(part: LanguageModelPart, lake: Lake, audits: list[Audit]) -> str:
    """Returns the whole report; audits that are missing in the lake are listed as not measured."""
    measured = [audit for audit in audits if audit.measured]
    perplexities = tasks(part, lake, "reddit_perplexity")
    return page.render(
        STUDY,
        part.project,
        lake,
        audits,
        striking=lambda audit, row: _striking(part, lake, audit, row),
        row_of=row_of,
        paper=PAPER,
        verdict_row=STEREOTYPE,
        odds_ratio=odds_ratio,
        groups=lambda key: STUDY.groups(part, key),
        t_plot=t_values(part, measured) if measured else None,
        perplexity_plot=reference_perplexities(part, perplexities) if perplexities else None,
        findings_published=rows("redditbias_bias_findings"),
        comments=lake.figures("reddit_comments", {}),
        phrases=[_phrases(part, lake, dimension) for dimension in part.dimensions],
        effects=_effects(part, lake),
        grids=_grids(part, lake),
        tasks={title: _task(tasks(part, lake, table)) for title, (table, _, _) in _TASKS.items()},
        data={title: (part.corpus.data_of(task), published.DATA[task]) for title, (_, task, _) in _TASKS.items()},
        printed={title: _printed(name) for title, (_, _, name) in _TASKS.items()},
        doubtful=published.DOUBTFUL,
        disagreements=[disagreement for d in part.dimensions if (disagreement := _disagreements(lake, d))],
        sections=[_section(part, lake, audit) for audit in worst_first(STUDY, measured)],
        alpha=part.level,
        settings=part.settings.model_dump(exclude_none=True),
        models={key: model.identity() for key, model in part.models.items()},
        corpus=part.corpus,
    )


def _striking(part: LanguageModelPart, lake: Lake, audit: Audit, row: Row) -> dict[str, Any] | None:
    """The phrase whose perplexities differ most in the direction of a finding."""
    gaps = widest_gaps(lake.read("phrase_perplexities", audit.key), 2)
    matching = [gap for gap in gaps if gap["gap"] * row["difference"] > 0]
    if not matching:
        return None
    widest = max(matching, key=lambda gap: abs(gap["gap"]))
    groups = STUDY.groups(part, audit.key)
    return {
        side: {
            "group": group,
            "context": widest[side]["text"],
            "response": f"perplexity {widest[side]['perplexity']:.4g}",
        }
        for side, group in zip("ab", groups, strict=True)
    }


def _phrases(part: LanguageModelPart, lake: Lake, dimension: str) -> dict[str, Any]:
    """A dimension's row of table 3, ours and the paper's, and the agreement of its annotators."""
    key = {"dimension": dimension}
    split, exchanged = lake.figures("phrase_splits", key), lake.figures("counterfactual_phrases", key)
    return {
        "dimension": dimension,
        "label": part.dimensions[dimension].label,
        "annotated": lake.figures("phrase_annotations", key),
        "splits": split.get("phrases"),
        "released": split.get("released"),
        "name_nobody": sum(exchanged["name_nobody"].values()) if exchanged else None,
        "published": published.counts(dimension) if part.corpus.published_as else None,
        "alpha": {row["level"]: row for row in lake.rows("annotation_agreement", key)},
        "terms": stereotypes_of(part.dimensions[dimension]),
        "attributes": stereotypes_of(part.dimensions[dimension]).attributes,
        "examples": _examples(lake, key),
    }


def _examples(lake: Lake, key: Key) -> list[str]:
    """Some comments that annotators found biased."""
    rows = lake.rows("phrase_annotations", key)
    return list(dict.fromkeys(row["comment"] for row in rows if row["bias_sent"]))[:_EXAMPLES]


def _effects(part: LanguageModelPart, lake: Lake) -> list[Row]:
    keys = [key for key in part.expected() if part.models[key["model"]].base]
    name = "language_model_debiasing_effects"
    return [{**key, **row} for key in keys for row in lake.rows(name, key)]


def _grids(part: LanguageModelPart, lake: Lake) -> list[dict[str, Any]]:
    """The grid of each debiased model, and the chosen point."""
    entries = []
    for key in part.expected():
        figures = lake.figures("debiased_language_models", key)
        if "grid" in figures:
            pairs = len(part.debiasing_terms(key["dimension"]).pairs)
            sums = part.models[key["model"]].debiasing == "add"
            entries.append(
                {
                    "key": key,
                    "points": figures["grid"],
                    "chosen": figures["chosen"],
                    "pairs": pairs,
                    "sums": sums,
                }
            )
    return entries


def _task(rows: list[tuple[dict[str, str], Row]]) -> dict[str, Any]:
    """A task's metrics as columns, with a line per model and dimension."""
    metrics = list(dict.fromkeys(row["metric"] for _, row in rows))
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for key, row in rows:
        lines.setdefault((key["model"], key.get("dimension", "")), {})[row["metric"]] = row
    return {"metrics": metrics, "lines": lines, "signatures": {row["metric"]: row["signature"] for _, row in rows}}


def _printed(task: str) -> list[dict[str, Any]]:
    """The paper's values for a task: a line per metric and model, a column per dimension."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows("redditbias_downstream"):
        if row["task"] == task:
            lines.setdefault((row["metric"], row["model"]), {})[row["dimension"]] = row["value"]
    return [{"metric": metric, "model": model, "values": values} for (metric, model), values in lines.items()]


def _disagreements(lake: Lake, dimension: str) -> dict[str, Any] | None:
    card = lake.card("counterfactual_disagreements", {"dimension": dimension})
    if card is None:
        return None
    rows = lake.read("counterfactual_disagreements", {"dimension": dimension}).to_pylist()
    kinds = Counter((row["kind"].partition(":")[0], row["better"]) for row in rows)
    return {"dimension": dimension, **card.figures, "kinds": kinds, "rows": rows}


def _section(part: LanguageModelPart, lake: Lake, audit: Audit) -> dict[str, Any]:
    perplexities = lake.read("phrase_perplexities", audit.key)
    gaps = widest_gaps(perplexities, part.settings.examples)
    begins = lake.figures("phrase_perplexities", audit.key).get("begins_with")
    return {"audit": audit, "gaps": gaps, "words": by_word(perplexities), "begins_with": begins}
