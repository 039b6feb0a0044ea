"""The report of study 5: one self-contained HTML file."""

from pathlib import Path
from typing import Any

from fairness_pipeline.annotation.truth_inference.registry import METHODS
from fairness_pipeline.measures.annotators.annotator_groups import RESPONSES
from fairness_pipeline.reporting import page
from fairness_pipeline.reporting.results import Audit, worst_first
from fairness_pipeline.studies.annotator_bias import published
from fairness_pipeline.studies.annotator_bias.plots import calibration_plot, effects_plot
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.studies.annotator_bias.results import (
    against_the_vote,
    contrasts,
    disputed,
    group_model,
    leaning,
    scores,
)
from fairness_pipeline.studies.annotator_bias.study import STUDY, label_of
from fairness_pipeline.workspace.lake import Lake, Row

_HERE = Path(__file__).parent
_LOOKED_AT = 50
"""Items among which one is looked for that shows a finding."""
_METRICS = {
    "truth_inference_accuracy": "truth, accuracy",
    "truth_inference_f1": "truth, F1",
    "prediction_accuracy": "classifier, accuracy",
    "prediction_f1": "classifier, F1",
}


def render_report(part: AnnotatorBiasPart, lake: Lake, audits: list[Audit]) -> str:
    """The whole report from what the lake holds; what it does not hold is listed as not measured.

    Args:
        part: The profile's part of the study.
        lake: What has been made.
        audits: All of them.
    """
    measured = dict.fromkeys(audit.key["corpus"] for audit in audits if audit.measured)
    items = {corpus: disputed(part, lake, corpus, max(part.settings.examples, _LOOKED_AT)) for corpus in measured}
    return page.render(
        STUDY,
        part.project,
        lake,
        audits,
        _HERE,
        striking=lambda audit, row: _striking(part, items, audit, row),
        groups={key: {**own.groups, **own.compared} for key, own in part.corpora.items()},
        corpora=[_corpus(part, lake, key) for key in part.corpora],
        metric_names=_METRICS,
        titles={name: METHODS[name].title for name in part.settings.methods},
        group_model=group_model(part),
        printed=published.elsewhere(part.corpora.values()),
        sections=worst_first(STUDY, [audit for audit in audits if audit.measured]),
        disputed=items,
        examples=part.settings.examples,
        level=f"{100 * part.level:g}%",
        settings={
            "methods": ", ".join(
                METHODS[name].title + (f" ({own})" if own else "") for name, own in part.settings.methods.items()
            ),
            **part.settings.model_dump(include={"significance", "classifier", "seeds", "agreement"}),
        },
    )


def _corpus(part: AnnotatorBiasPart, lake: Lake, key: str) -> dict[str, Any]:
    own = {"corpus": key}
    cards = {name: lake.card(name, own) for name in ("annotations", "annotators")}
    found = scores(part, lake, key)
    return {
        "key": key,
        "corpus": part.corpora[key],
        "published": published.size(part.corpora[key]),
        "figures": cards["annotations"].figures if cards["annotations"] else None,
        "people": cards["annotators"].figures["groups"] if cards["annotators"] else {},
        "anova": _anova(lake, key),
        "printed": bool(published.anova(part.corpora[key])),
        "contrasts": contrasts(part, lake, key),
        "leaning": leaning(part, lake, key),
        "against_the_vote": against_the_vote(part, lake, key),
        "scores": found,
        "metrics": [name for name in _METRICS if any(name in rows for rows in found.values())],
        "printed_scores": {
            name for rows in found.values() for name, row in rows.items() if row["published_value"] is not None
        },
        "effects": effects_plot(part, lake, key),
        "calibration": calibration_plot(part, lake, key),
    }


def _anova(lake: Lake, corpus: str) -> dict[str, dict[str, Row]]:
    """By category and response."""
    key = {"corpus": corpus}
    rows = lake.read("annotator_anova", key).to_pylist() if lake.card("annotator_anova", key) else []
    categories = dict.fromkeys(row["category"] for row in rows)
    return {
        name: {
            response: next(row for row in rows if (row["category"], row["response"]) == (name, response))
            for response in RESPONSES
        }
        for name in categories
    }


def _striking(
    part: AnnotatorBiasPart, items: dict[str, dict[str, list[dict[str, Any]]]], audit: Audit, row: Row
) -> dict[str, Any] | None:
    """One item on which the groups differ much, in the direction of a finding."""
    corpus = audit.key["corpus"]
    side = 0 if row["difference"] > 0 else 1
    for item in items[corpus][row["measure"]]:
        rates = [positive / count for positive, count in zip(item["positive"], item["labels"], strict=True)]
        if rates[side] > rates[1 - side]:
            names, said = part.corpora[corpus].compared[row["measure"]], label_of(part, audit.key, row)
            return {
                mark: {
                    "group": names[place],
                    "context": item["text"] or f"item {item['item']}",
                    "response": f"{item['positive'][place]} of {item['labels'][place]} said {said}",
                }
                for place, mark in enumerate("ab")
            }
    return None
