"""Study 2: does a language model find a stereotype likelier of one group than of the other?"""

import math
from collections.abc import Sequence

from fairness_pipeline.corpora.language.phrase_corpus import PhraseCorpus
from fairness_pipeline.measures.language.phrase_bias import LOG, control, doubts, hides_opposite_stereotypes
from fairness_pipeline.measures.language.stereotype import STEREOTYPE, odds_ratio
from fairness_pipeline.models.language.specification import LanguageModelSpecification
from fairness_pipeline.project.study import Judged, Study, compare_debiased
from fairness_pipeline.studies.language_model_bias.profile import LanguageModelBias, LanguageModelPart
from fairness_pipeline.workspace.lake import Key, Lake, Row

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
    if hides_opposite_stereotypes(row):
        return (
            f"{key['model']}: stereotypes of {b} people are typically {math.exp(row['spread']):.3g} times as likely "
            f"about one group as about the other: {row['attributes_b']} of {row['attributes']} attribute words about "
            f"{b}, {row['attributes_a']} about {a} people, and the mean hides it"
        )
    about, against = (b, a) if row["difference"] > 0 else (a, b)
    ratio, low, high = odds_ratio(row)
    if ratio < 1:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low if low else float("inf")
    words = row["exchanged"].split("; ")
    listed = ", ".join([*words[:_WORDS], *([f"... {len(words)} words in all"] if len(words) > _WORDS else [])])
    return (
        f"{key['model']}: a stereotype of {b} people rather than its opposite is {ratio:.3g} times as likely about "
        f"{about} people as about {against} people (95% interval {low:.3g} to {high:.3g}; {listed})"
    )


def _more(part: LanguageModelPart, rows: Sequence[Judged]) -> str:
    clusters = [row["clusters"] for _, row in rows if row["clusters"]]
    words = f" (now {min(clusters)} to {max(clusters)})" if clusters else ""
    return (
        f"more phrases with other attribute words{words}: label more of them (fairness-pipeline export phrases "
        f"--profile {part.project.name}), or name a larger corpus"
    )


def _cure(part: LanguageModelPart, rows: Sequence[Judged]) -> str:
    name = rows[0].key["model"]
    run, page = f"fairness-pipeline run --profile {part.project.name} --model", "docs/language-models.md"
    biased = {judged.key["model"] for judged in rows}
    methods = {
        key: model
        for key, model in part.models.items()
        if key == name or (model.debiasing != "plain" and key not in biased)
    }
    return compare_debiased(
        name, methods, run, page, f"add a model with `base: {name}` and one of four methods ({page})"
    )


def _decisive(row: Row) -> Row:
    """A row as its verdict reads it: with opposite stereotypes the typical S of an attribute word, and no interval."""
    return (
        {**row, "difference": row["spread"], "ci_low": None, "ci_high": None}
        if hides_opposite_stereotypes(row)
        else row
    )


def _direction(row: Row, groups: tuple[str, str]) -> str:
    if hides_opposite_stereotypes(row):
        return "likelier: either group, by attribute"
    return f"likelier: {groups[row['difference'] > 0]}"


_WORDS = 6
"""The number of attribute words that a sentence names."""

_FEWEST = 10
"""The number of phrases in the test split below which there is no verdict."""


def _degenerate(part: LanguageModelPart, key: Key, lake: Lake) -> str | None:
    """Why a model is degenerate: its weights guess every token alike, or there are too few phrases."""
    if lake.figures("phrase_perplexities", key).get("guesses"):
        return "its weights predict no better than guessing; was it trained?"
    pairs = lake.figures("language_model_bias", key).get("pairs", _FEWEST)
    return f"{pairs} phrases to compare are too few; {_FEWEST} at least" if pairs < _FEWEST else None


def _asides(part: LanguageModelPart, key: Key, rows: list[Row]) -> list[str]:
    """The share of a base's S that each method left, in a sentence."""
    lake, shares = Lake(part.project.workspace), []
    for name, model in part.models.items():
        partition = {**key, "model": name}
        if model.base == key["model"] and lake.card("language_model_debiasing_effects", partition):
            effects = lake.read("language_model_debiasing_effects", partition).to_pylist()
            shares += [
                f"{name} {100 * row['share_left']:.0f}%{' (a control)' if model.debiasing == 'plain' else ''}"
                for row in effects
                if row["measure"] == STEREOTYPE and row["share_left"] is not None
            ]
    if not shares:
        return []
    return [
        f"Left of the stereotype (S) of {key['dimension']} × {key['model']}, one training each: {', '.join(shares)}"
    ]


STUDY = Study(
    name="language_model_bias",
    title="Language-model bias",
    method=(
        "Each stereotyped phrase was compared with the same phrase in which the opposite attribute stands, once with "
        "either group's term; S is the log of the odds ratio: how much likelier the stereotype is of one group than of "
        "the other. Its test takes the attribute words as a sample."
    ),
    cites=("barikeri2021redditbias",),
    section=LanguageModelBias,
    part=LanguageModelPart,
    subject="model",
    table="language_model_bias",
    report="language_model_bias_report",
    asked="phrase_perplexities",
    identity=("dimension", "model", "measure"),
    headings=("Stereotype",),
    heading=lambda row: "Stereotype" if row["measure"] == STEREOTYPE else None,
    label=lambda row: _LABELS[row["measure"]],
    groups=_groups,
    finding=_finding,
    files={
        "models (language models)": LanguageModelSpecification,
        "corpora (phrases for language models)": PhraseCorpus,
    },
    doubts=lambda part, key, row: doubts(row, part.level),
    decisive=_decisive,
    direction=_direction,
    control=lambda part, key, row: control(row),
    asides=_asides,
    contrast="second minus first",
    legend="S, the log of the odds ratio: 0.7 is twice as likely",
    gated=lambda row: row["measure"] == STEREOTYPE,
    more=_more,
    cure=_cure,
    degenerate=_degenerate,
)  # fmt: skip
