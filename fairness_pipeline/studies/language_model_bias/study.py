"""Study 2: does a language model find a stereotype likelier of one group than of the other?"""

from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.measures.language.phrase_bias import LOG, control, reservations
from fairness_pipeline.measures.language.stereotype import STEREOTYPE, odds_ratio
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.project.study import Study
from fairness_pipeline.studies.language_model_bias.profile import LanguageModelBias, LanguageModelPart
from fairness_pipeline.workspace.lake import Key, Row

_LABELS = {
    STEREOTYPE: "Stereotype",
    LOG: "LMB",
    "perplexity": "LMB, the paper's test",
    "log_perplexity_all_pairs": "LMB with outliers",
    "negative_log_likelihood": "whole phrases",
}


def _groups(part: LanguageModelPart, key: Key) -> tuple[str, str]:
    groups = part.project.dimensions[key["dimension"]].groups
    return groups.a, groups.b


def _finding(part: LanguageModelPart, key: Key, row: Row) -> str:
    a, b = _groups(part, key)
    about, against = (b, a) if row["difference"] > 0 else (a, b)
    ratio, low, high = odds_ratio(row)
    if ratio < 1:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low if low else float("inf")
    words = row["exchanged"].split("; ")
    told = ", ".join([*words[:_WORDS], *([f"... {len(words)} words in all"] if len(words) > _WORDS else [])])
    return (
        f"{key['model']}: a stereotype of {b} people rather than its opposite is {ratio:.3g} times as likely about "
        f"{about} people as about {against} people (95% interval {low:.3g} to {high:.3g}; {told})"
    )


_WORDS = 6
"""Attribute words that a sentence names."""

STUDY = Study(
    name="language_model_bias",
    title="Language-model bias",
    section=LanguageModelBias,
    part=LanguageModelPart,
    subject="model",
    table="language_model_bias",
    report="language_model_bias_report",
    asked="phrase_perplexities",
    identity=("dimension", "model", "measure"),
    shown=(
        "dimension", "model", "measure", "n", "value_a", "value_b", "difference", "ci_low", "ci_high", "statistic", "p",
        "p_clusters", "clusters", "p_holm", "own_difference", "opposite_difference", "survives", "verdict",
    ),
    headings=("Stereotype",),
    heading=lambda row: "Stereotype" if row["measure"] == STEREOTYPE else None,
    label=lambda row: _LABELS[row["measure"]],
    groups=_groups,
    finding=_finding,
    files={
        "models (language models)": LanguageModelSpecification,
        "corpora (phrases for language models)": PhraseCorpus,
    },
    reservations=lambda part, key, row: reservations(row, part.level),
    direction=lambda row, groups: f"likelier: {groups[row['difference'] > 0]}",
    control=lambda part, key, row: control(row),
    gated=lambda row: row["measure"] == STEREOTYPE,
    columns={
        "comment_id": "of the comment",
        "text": "what was written",
        "created": "when, as the dump says",
        "comment": "the comment, cleaned",
        "phrase_id": "of the phrase: its comment's and a number, or its place in a released split",
        "target": "the words that name the group",
        "phrase": "seven tokens on either side of the target's first word",
        "attribute_in_window": "whether a term of the stereotype is in the phrase",
        "annotator": "who labelled",
        "bias_sent": "whether the comment expresses the stereotype; null without a label",
        "bias_phrase": "whether the phrase alone does",
        "level": "comments (bias_sent) or phrases (bias_phrase)",
        "alpha": "Krippendorff's alpha, nominal",
        "items": "what two annotators labelled",
        "annotators": "who did",
        "published_alpha": "what the paper prints",
        "split": "train, dev, test; unbiased: phrases in which annotators found no bias",
        "text_a": "the phrase about side a",
        "text_b": "the phrase as it was written, about side b",
        "ours": "our counterfactual",
        "released": "the authors'",
        "better": "ours, theirs, or either",
        "tokens": "of the text; 0 where only the perplexity was published",
        "perplexity": "of the text's tokens from the second on",
        "left_out": "pairs left out because one of the two is an outlier",
        "p_comments": "p with all phrases of a comment as one observation",
        "p_targets": "p with all phrases of a target as one; null where one target makes nearly all",
        "unbiased_n": "phrases without bias in which the same words were exchanged",
        "unbiased_difference": "the difference there, in the test split's shares of words: what the words alone make",
        "p_beyond_unbiased": "p of the hypothesis that stereotyped phrases differ no more than these",
        "survives": "which of the clustered tests reject as well",
        "reading": "own, or opposite: with the opposite of the stereotype's attribute",
        "attribute": "the terms of the stereotype that have an opposite",
        "opposite_a": "the phrase about side a with the opposite attribute",
        "opposite_b": "the phrase about side b with the opposite attribute",
        "own_difference": "how much likelier phrases are about side b (nats)",
        "p_own": "p of that difference",
        "opposite_difference": "the same with the opposite attribute: what the groups' words alone make",
        "p_opposite": "p of that difference",
        "exchanged": "the attribute words that were exchanged",
        "metric": "what is measured",
        "value": "of the metric",
        "signature": "how the number was made",
        "published_value": "what the paper prints",
        "difference_before": "the base's difference",
        "difference_after": "the debiased model's",
        "change": "of the absolute difference; below 0 the gap is smaller",
        "effect": "smaller gap, larger gap or no change shown",
        "verdict_before": "on the base",
        "verdict_after": "on the debiased model",
        "references": "what people answered",
        "context": "what is answered",
        "right": "whether the user gives the value in this turn",
        "kind": "of disagreement",
    },
)  # fmt: skip
