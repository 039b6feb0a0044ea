"""Renders the report of study 4: one self-contained HTML file."""

from typing import Any

from fairness_pipeline.corpora.classifiers.authored_corpus import LETTERS
from fairness_pipeline.measures.classifiers.group_rates import FN
from fairness_pipeline.measures.classifiers.probabilities_by_group import AUC, CROSSED
from fairness_pipeline.reporting import page
from fairness_pipeline.reporting.results import Audit, worst_first
from fairness_pipeline.studies.implicit_bias import published
from fairness_pipeline.studies.implicit_bias.plots import balance_plot, probability_plot
from fairness_pipeline.studies.implicit_bias.profile import ImplicitBiasPart
from fairness_pipeline.studies.implicit_bias.results import KINDS, effects, explained, metrics
from fairness_pipeline.studies.implicit_bias.study import HEADINGS, STUDY, rate_of
from fairness_pipeline.workspace.lake import Lake, Row

_METRICS = {"fped": "FPED", "fned": "FNED", "dpd": "DPD", "accuracy": "accuracy", "f1": "F1"}


def render_report(part: ImplicitBiasPart, lake: Lake, audits: list[Audit]) -> str:
    """Renders the report from the assets made so far; missing audits are listed as not measured."""
    measured = [audit for audit in audits if audit.measured]
    return page.render(
        STUDY,
        part.project,
        lake,
        audits,
        striking=lambda audit, row: _striking(part, lake, audit, row),
        headings=HEADINGS,
        groups={key: corpus.groups.names for key, corpus in part.corpora.items()},
        corpora=[_corpus(part, lake, key) for key in part.corpora],
        metric_names=_METRICS,
        printed=published.elsewhere(corpus.published_as for corpus in part.corpora.values()),
        effects=effects(part, lake),
        explained=explained(part, lake),
        kinds=KINDS,
        sections=worst_first(STUDY, measured),
        probabilities={audit.anchor: details for audit in measured if (details := _probabilities(part, lake, audit))},
        level=f"{100 * part.level:g}%",
        balance_rate=part.settings.balance_rate,
        settings=part.settings.model_dump(
            include={"splits", "maximum", "balance_rate", "swept", "explainer", "significance"}, exclude_none=True
        ),
        classifiers={key: classifier.identity_for_readers() for key, classifier in part.classifiers.items()},
        trained=any(classifier.trained for classifier in part.classifiers.values()),
        methods={key: classifier.debiasing for key, classifier in part.classifiers.items()},
    )


def _corpus(part: ImplicitBiasPart, lake: Lake, key: str) -> dict[str, Any]:
    corpus = part.corpora[key]
    return {
        "key": key,
        "corpus": corpus,
        "figures": lake.figures("authored_texts", {"corpus": key}),
        "published": published.size(corpus.published_as),
        "metrics": metrics(part, lake, key),
        "degenerate": [
            name for name in part.classifiers if STUDY.degenerate(part, {"corpus": key, "classifier": name}, lake)
        ],
        "picture": balance_plot(part, lake, key),
    }


def _probabilities(part: ImplicitBiasPart, lake: Lake, audit: Audit) -> dict[str, Any] | None:
    """AUCs by group, and the picture of thresholds and calibration; None if a classifier gives labels only."""
    rows = lake.rows("classifier_probabilities", audit.key)
    if not rows:
        return None
    areas: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["measure"] in (AUC, CROSSED):
            areas.setdefault(row["measure"], {})[row["side"]] = row
    return {"areas": areas, "picture": probability_plot(rows, STUDY.groups(part, audit.key))}


def _striking(part: ImplicitBiasPart, lake: Lake, audit: Audit, row: Row) -> dict[str, Any] | None:
    """Two texts of one label that a classifier labels differently, one by each group, in the direction of a finding."""
    texts = {r["text_id"]: r["text"] for r in lake.read("authored_texts", {"corpus": audit.key["corpus"]}).to_pylist()}
    rows = lake.read("classifier_predictions", audit.key).to_pylist()
    more_side = "a" if row["difference"] > 0 else "b"
    wrong_label = int(rate_of(row) != FN)
    letters = dict(zip(part.corpora[audit.key["corpus"]].groups.names, LETTERS, strict=False))
    groups = {"a": row["group"], "b": row["against"]}
    examples = {}
    for side, group in groups.items():
        prediction, letter = wrong_label if side == more_side else 1 - wrong_label, letters[group]
        candidates = [
            r
            for r in rows
            if r["author_group"] == letter and r["label"] == 1 - wrong_label and r["prediction"] == prediction
        ]
        if not candidates:
            return None
        chosen = min(candidates, key=lambda r: (abs(r["probability"] - prediction), r["text_id"]))
        examples[side] = {
            "group": groups[side],
            "context": f"{texts.get(chosen['text_id'], '')} (label: {'positive' if chosen['label'] else 'negative'})",
            "response": (
                f"{'positive' if prediction else 'negative'}, probability of positive {chosen['probability']:.2f}"
            ),
        }
    return examples
