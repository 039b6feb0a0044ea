"""Renders the report of study 5: one self-contained HTML file."""

from typing import Any

from fairness_pipeline.annotation.bias_estimates import CONTRAST, GROUP, OMNIBUS, SUM, exceeds
from fairness_pipeline.annotation.truth_inference.group_design import RESPONSES
from fairness_pipeline.annotation.truth_inference.registry import METHODS
from fairness_pipeline.reporting import page
from fairness_pipeline.reporting.results import Audit, worst_first
from fairness_pipeline.studies.annotator_bias import published
from fairness_pipeline.studies.annotator_bias.plots import calibration_plot, effects_plot
from fairness_pipeline.studies.annotator_bias.profile import AnnotatorBiasPart
from fairness_pipeline.studies.annotator_bias.results import (
    PAPERS,
    against_the_vote,
    choice,
    class_shares,
    disputed,
    estimates,
    group_model,
    in_doubt,
    leaning,
    of_kind,
    scores,
)
from fairness_pipeline.studies.annotator_bias.study import STUDY, label_of
from fairness_pipeline.workspace.lake import Lake, Row

_CANDIDATES = 50
"""The number of items that are searched for an example of a finding."""
_METRICS = {
    "truth_inference_accuracy": "truth, accuracy",
    "truth_inference_f1": "truth, F1",
    "truth_inference_macro_f1": "truth, macro F1",
    "prediction_accuracy": "classifier, accuracy",
    "prediction_f1": "classifier, F1",
    "prediction_macro_f1": "classifier, macro F1",
}


def render_report(part: AnnotatorBiasPart, lake: Lake, audits: list[Audit]) -> str:
    """Renders the report from the assets made so far; missing audits are listed as not measured."""
    measured = dict.fromkeys(audit.key["corpus"] for audit in audits if audit.measured)
    items = {corpus: disputed(part, lake, corpus, max(part.settings.examples, _CANDIDATES)) for corpus in measured}
    return page.render(
        STUDY,
        part.project,
        lake,
        audits,
        striking=lambda audit, row: _striking(part, items, audit, row),
        groups={key: {**specification.groups, **specification.compared} for key, specification in part.corpora.items()},
        corpora=[_corpus(part, lake, key) for key in part.corpora],
        metric_names=_METRICS,
        titles={name: METHODS[name].title for name in part.settings.methods},
        printed=published.elsewhere(part.corpora.values()),
        sections=worst_first(STUDY, [audit for audit in audits if audit.measured]),
        disputed=items,
        examples=part.settings.examples,
        level=f"{100 * part.level:g}%",
        alpha=part.level,
        settings={
            "methods": ", ".join(
                METHODS[name].title + (f" ({options})" if options else "")
                for name, options in part.settings.methods.items()
            ),
            **part.settings.model_dump(include={"significance", "classifier", "seeds", "agreement"}),
        },
    )


def _corpus(part: AnnotatorBiasPart, lake: Lake, key: str) -> dict[str, Any]:
    corpus_key = {"corpus": key}
    people = lake.figures("annotators", corpus_key)
    scores_by_method, model = scores(part, lake, key), group_model(part, key)
    rows, papers = estimates(part, lake, key, model), estimates(part, lake, key, PAPERS)
    contrasts = of_kind(rows, CONTRAST)
    return {
        "key": key,
        "corpus": part.corpora[key],
        "published": published.size(part.corpora[key]),
        "figures": lake.figures("annotations", corpus_key),
        "people": people.get("groups", {}),
        "too_few": people.get("too_few", {}),
        "agreement": lake.rows("label_agreement_by_group", corpus_key),
        "anova": _anova(lake, key),
        "printed": bool(published.anova(part.corpora[key])),
        "model": METHODS[model].title if model else "",
        "of_sums": model == PAPERS,
        "means": of_kind(rows, GROUP),
        "omnibus": of_kind(rows, OMNIBUS),
        "contrasts": contrasts,
        "of_more": {row["category"] for row in of_kind(rows, OMNIBUS)},
        "said": class_shares(rows),
        "papers": of_kind(papers, CONTRAST),
        "sums": of_kind(papers, SUM),
        "exceeds": exceeds(papers),
        "leaning": leaning(part, lake, key),
        "choice": choice(part, lake, key),
        "in_doubt": in_doubt(part, lake, key),
        "against_the_vote": against_the_vote(part, lake, key),
        "scores": scores_by_method,
        "metrics": [name for name in _METRICS if any(name in rows for rows in scores_by_method.values())],
        "printed_scores": {
            name
            for rows in scores_by_method.values()
            for name, row in rows.items()
            if row["published_value"] is not None
        },
        "effects": effects_plot(rows, model == PAPERS),
        "calibration": calibration_plot(part, lake, key),
    }


def _anova(lake: Lake, corpus: str) -> dict[str, dict[str, Row]]:
    """The analysis of variance by category and response, with the groups' means in words."""
    rows = [row | {"told": _means(row)} for row in lake.rows("annotator_anova", {"corpus": corpus})]
    categories = dict.fromkeys(row["category"] for row in rows)
    return {
        name: {
            response: next(row for row in rows if (row["category"], row["response"]) == (name, response))
            for response in RESPONSES
        }
        for name in categories
    }


def _means(row: Row) -> str:
    """The means of the groups in words; of more than three groups, only the least and the greatest."""
    texts = [f"{group} {mean:.3f}" for group, mean in zip(row["groups"], row["means"], strict=True) if mean is not None]
    if len(texts) <= 3:
        return " / ".join(texts)
    means = [mean for mean in row["means"] if mean is not None]
    return f"{texts[means.index(min(means))]} to {texts[means.index(max(means))]}"


def _striking(
    part: AnnotatorBiasPart, items: dict[str, dict[str, list[dict[str, Any]]]], audit: Audit, row: Row
) -> dict[str, Any] | None:
    """One item on which the groups differ much, in the direction of a finding."""
    measure = row["measure"].removesuffix(f": {row['group']} − {row['against']}")
    for item in items[audit.key["corpus"]][measure]:
        positions = [item["groups"].index(name) for name in (row["group"], row["against"])]
        counts, positive = ([item[name][position] for position in positions] for name in ("labels", "positive"))
        rates = [positive[n] / counts[n] if counts[n] else 0.0 for n in (0, 1)]
        side = 0 if row["difference"] > 0 else 1
        if min(counts) and rates[side] > rates[1 - side]:
            return {
                letter: {
                    "group": item["groups"][positions[n]],
                    "context": item["text"] or f"item {item['item']}",
                    "response": f"{positive[n]} of {counts[n]} said {label_of(part, audit.key, row)}",
                }
                for n, letter in enumerate("ab")
            }
    return None
