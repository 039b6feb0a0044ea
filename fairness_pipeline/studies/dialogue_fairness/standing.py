"""Assesses a profile's audits: degenerate models, warnings, forecasts of power, and advice."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fairness_pipeline.debiasing.dialogue.registry import is_control
from fairness_pipeline.foundation.plain_text import visible
from fairness_pipeline.lexicons.no_effect import changed_contexts
from fairness_pipeline.measures.dialogue.measure import MASKED
from fairness_pipeline.measures.dialogue.naming import NAMES_OTHER
from fairness_pipeline.measures.dialogue.recipe_effects import LEAST_SEEDS, misnames_more
from fairness_pipeline.measures.dialogue.registry import measure_label
from fairness_pipeline.models.dialogue.responding import distinct_contexts
from fairness_pipeline.project.study import Judged, Pending, compare_debiased, more_pairs
from fairness_pipeline.statistics.change import LARGER, SMALLER
from fairness_pipeline.statistics.intervals import quantile
from fairness_pipeline.studies.dialogue_fairness.models import answers_in, is_seed
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Key, Lake, Row

Figures = Mapping[str, Any]


def find_degeneracy(
    answered: Figures, most: float, trained: Figures | None = None, base: Figures | None = None
) -> str | None:
    """Why a model's verdicts mean nothing: it gives nearly everything the same answer, was never trained, or learned
    nothing; None if they mean something.

    Args:
        answered: The figures of its responses.
        most: From this share of identical answers on, nothing can be judged.
        trained: The figures of a Seq2Seq's weights. It learned nothing if it predicts words no better than a uniform
            draw from its base's vocabulary.
        base: The figures of the weights that it was made from; its own figures if it was made from none.
    """
    if answered.get("commonest_share", 0.0) >= most:
        share, answer = 100 * answered["commonest_share"], answered["commonest_response"]
        return f"{share:.3g}% of its answers are {visible(answer)!r}" if answer else f"{share:.3g}% are empty"
    if answered.get("guesses"):
        return "its weights predict plain English no better than guessing; was it trained?"
    if trained and base and trained.get("validation_perplexity", 0.0) >= base.get("vocabulary", math.inf):
        return "it predicts held-out dialogues no better than guessing; try a lower learning rate"
    return None


def degenerate(part: DialoguePart, key: Key, lake: Lake) -> str | None:
    """Why a model is degenerate: it gives nearly everything the same answer, was never trained, or learned nothing."""
    base_key = {"model": (part.base_of(key) or key)["model"]}
    weights = key if part.models[key["model"]].debiasing else base_key
    trained = lake.figures(part.trained_as(key["model"]), weights), lake.figures("dialogue_models", base_key)
    learns = part.models[key["model"]].seq2seq is not None
    most = part.settings.max_identical_share
    return find_degeneracy(lake.figures("responses", key), most, *(trained if learns else ()))


def warnings(part: DialoguePart, lake: Lake) -> list[str]:
    """Warnings about failed prompts, several models behind one name, persons and frames that give no pair, and planted
    bias with the models that did not learn it."""
    messages = [*_about_replies(part, lake), *_about_frames(part, lake)]
    for corpus, bias in part.settings.planted.items():
        counts = lake.figures(part.dialogues_of(corpus), {"corpus": corpus}).get("planted")
        if not counts:
            continue
        groups = part.dimensions[bias.dimension].groups
        messages.append(
            f"A bias was planted in {corpus}: in {counts['a']:,} answers to contexts that name {groups.a}, and in "
            f"{counts['b']:,} to those that name {groups.b}. What models trained on it show (perplexity is taken "
            "on such answers, too) is a positive control, and says nothing of the corpus."
        )
        learners = [
            name for name, model in part.models.items() if model.corpus == corpus and model.trained and not model.base
        ]
        keys = [{"dimension": bias.dimension, "model": name} for name in learners]
        unlearned = [key["model"] for key in keys if _shows_bias(part, key, lake) is False]
        if unlearned:
            messages.append(
                f"Not learned by {', '.join(unlearned)}: do not rely on verdicts about such a model, since it "
                "could hardly learn people's biases either."
            )
    return messages


def asides(part: DialoguePart, key: Key, rows: list[Row]) -> list[str]:
    """The effects of each debiasing method on a base, in a sentence."""
    lake, sentences = Lake(part.project.workspace), []
    for name, model in part.models.items():
        partition = {**key, "model": name}
        card = None if is_seed(name) or model.base != key["model"] else lake.card("debiasing_effects", partition)
        if card is None:
            continue
        effects = lake.read("debiasing_effects", partition).to_pylist()
        smaller, larger = (
            [measure_label(row["measure"]) for row in effects if row["effect"] == effect]
            for effect in (SMALLER, LARGER)
        )
        parts = [f"smaller gap in {', '.join(smaller) or 'nothing'}"]
        parts += [f"larger gap in {', '.join(larger)}"] if larger else []
        if misnames_more(card.figures):
            after, before = (100 * (card.figures[f"names_other_{when}"] or 0.0) for when in ("after", "before"))
            parts.append(f"but {after:.0f}% of the answers that name a group name the other one (base {before:.0f}%)")
        control = " (a control)" if is_control(model) else ""
        sentences.append(f"{name}{control}: {', '.join(parts)}")
    if not sentences:
        return []
    return [f"Debiasing {key['dimension']} × {key['model']}, one training each: {'; '.join(sentences)}"]


def _about_replies(part: DialoguePart, lake: Lake) -> list[str]:
    """Prompts that failed for good, and models behind an address that turned out to be several."""
    messages = []
    served: dict[str, dict[str, None]] = {}
    for key in part.expected():
        figures = lake.figures("responses", key)
        if failed := figures.get("failed_responses"):
            model = key["model"]
            messages.append(
                f"{key['dimension']} × {model}: {failed:,} answers are missing, because their prompts failed at every "
                f"attempt; they count as no answer. List them: fairness-pipeline sql --profile {part.project.name} "
                f"\"select context from responses where model = '{model}' and kind = 'failed'\" --all; ask all of "
                f"its prompts anew: fairness-pipeline run --profile {part.project.name} --model {model} --ask-again"
            )
        served.setdefault(key["model"], {}).update(dict.fromkeys(figures.get("served_model", {})))
    messages += [
        f"{model}: several models have answered under this name: {', '.join(names)}; verdicts mix them. Ask one of "
        f"them: fairness-pipeline run --profile {part.project.name} --model {model} --ask-again"
        for model, names in served.items()
        if len(names) > 1
    ]
    return messages


def _about_frames(part: DialoguePart, lake: Lake) -> list[str]:
    """The persons and frames of each corpus that give no pair, with the reason."""
    messages = []
    for corpus in part.corpora:
        for dimension in part.dimensions:
            if dropped := lake.figures("contexts", {"corpus": corpus, "dimension": dimension}).get("dropped"):
                more = f"; and {len(dropped) - _NAMED} more" if len(dropped) > _NAMED else ""
                messages.append(
                    f"{corpus} {dimension}: no pair is made where {'; '.join(dropped[:_NAMED])}{more}. The report "
                    "lists them under 'Quality of the pairs' (docs/pairs.md)."
                )
    return messages


_NAMED = 3
"""The number of persons and frames that a warning names."""


def _shows_bias(part: DialoguePart, key: Key, lake: Lake) -> bool | None:
    """Whether a verdict on a model is `biased`; None if there is no verdict yet."""
    card = lake.card("dialogue_significance", key)
    if card is None:
        return None
    judged = (verdict for measure, verdict in card.figures["verdicts"].items() if not measure.endswith(MASKED))
    return "biased" in judged and not degenerate(part, key, lake)


_FEW_PAIRS = 30
"""The number of pairs below which the normal approximation does not give their power."""


_FIRST_LOOK = 1000
"""The number of pairs below which an audit is called a first look."""


def _detectable_difference(pairs: int, rate: float) -> float:
    """The difference of rates, in points, that independent pairs show with a power of 80% at Holm's first step of six
    measures."""
    error = math.sqrt(2 * rate * (1 - rate) / pairs)
    return 100 * error * (quantile(1 - 0.05 / (2 * 6)) + quantile(0.8))


def power_forecast(part: DialoguePart, lake: Lake, dimension: str | None = None) -> list[str]:
    """How many pairs `fair` needs, how many there are, and which debiased models cannot be called a cure."""
    dimensions = [dimension] if dimension else list(part.dimensions)
    return [*_pairs_forecast(part, lake, dimensions), *_cures_forecast(part, dimensions)]


def _pairs_forecast(part: DialoguePart, lake: Lake, dimensions: list[str]) -> list[str]:
    settings = part.settings.significance
    expected = {kind: settings.margin(kind, kind).before() for kind in ("rates", "counts")}
    needed = {kind: math.ceil(count) for kind, count in expected.items() if count}
    if not needed:
        return []
    listing, counts, more = [], [], 0
    for corpus in part.corpora:
        for name in dimensions:
            figures = lake.figures("context_pairs", {"corpus": corpus, "dimension": name})
            count = f"{figures['pairs']:,}" if figures else f"at most {part.settings.pairs.maximum:,}"
            listing.append(f"{corpus} {name} {count}")
            if figures:
                counts.append(figures["pairs"])
                more = max(more, figures.get("left_out_beyond_maximum", 0))
    required = " and ".join(f"{count:,} pairs for {kind}" for kind, count in needed.items())
    lines = [
        f"to show `fair` in four audits of five, where nothing differs: about {required}, if answers are independent",
        f"pairs: {'; '.join(listing)}",
    ]
    if counts and min(counts) < _FEW_PAIRS:
        lines.append(f"a first look: {min(counts)} pairs are too few to show much; 'audit --pairs 400' asks more")
    elif counts:
        fewest = min(counts)
        gaps = " and ".join(
            f"{_detectable_difference(fewest, rate):.2g} points at {100 * rate:g}%" for rate in (0.1, 0.5)
        )
        look = "a first look: " if fewest < _FIRST_LOOK else ""
        lines.append(
            f"{look}with {fewest:,} pairs a difference of about {gaps} is found four times in five, where nothing else "
            "varies and six measures are looked at" + (f"; 'audit --pairs all' has up to {more:,} more" if more else "")
        )
    return lines


def _cures_forecast(part: DialoguePart, dimensions: list[str]) -> list[str]:
    recipes = {name: m for name, m in part.models.items() if m.base and m.seeds > 1 and not is_seed(name)}
    few = [name for name, model in recipes.items() if model.seeds < LEAST_SEEDS]
    messages = [f"cures: {', '.join(few)}: a cure needs {LEAST_SEEDS} seeds or more"] if few else []
    for name, model in recipes.items():
        keys = [
            {"dimension": dimension, "model": name}
            for dimension in dimensions
            if answers_in(part.models[name], dimension)
        ]
        for method in part.controls.methods(name):
            uncontrolled = [key["dimension"] for key in keys if method not in part.controls.of(key)]
            if uncontrolled:
                messages.append(
                    f"cures: {name} has no control '{method}' in {', '.join(uncontrolled)}, so it cannot be called a "
                    f"cure; list a model of '{model.base}' with debiasing '{method}', the same settings and as "
                    "many seeds"
                )
    return messages


def requests(part: DialoguePart, asset: str, key: Key, lake: Lake, pending: Pending) -> int | None:
    """The number of distinct contexts, changed ones included; None if they are still to be made."""
    source = {"responses": "context_pairs", "no_effect_responses": "no_effect_contexts"}.get(asset)
    if source is None or not part.models[key["model"]].endpoint:
        return 0
    pairs = part.pairs_of(key)
    if pending(source, pairs):
        return None
    table = lake.read(source, pairs)
    return len(distinct_contexts(table) if asset == "responses" else changed_contexts(table))


def more(part: DialoguePart, rows: Sequence[Judged]) -> str:
    """How many pairs a conclusion needs, and how to ask for them."""
    advice, profile = more_pairs(rows), part.project.name
    key, row = max(rows, key=lambda judged: judged.row.get("pairs_needed") or 0)
    if not (needed := row.get("pairs_needed")):
        return advice
    name, available = key["model"], _available_pairs(part, key)
    if available is not None and available <= min(needed, row["n"]):
        return (
            f"{advice}; its contexts have no more than {available:,} pairs: name a larger corpus, or judge it as it is"
        )
    number = str(needed) if available is None or needed <= available else "all"
    model = part.models[name]
    if part.given_model(name).exists():
        source = model.huggingface.name if model.huggingface else model.endpoint.base_url if model.endpoint else name
        next_step = f"fairness-pipeline audit {source} --name {name} --dimension {key['dimension']} --pairs {number}"
    elif model.architecture == "imported":
        chosen = f"--profile {profile} --dimension {key['dimension']} --pairs {number}"
        replaced = "they replace the pairs of every model of the profile"
        next_step = f"fairness-pipeline export pairs {chosen} --output more.csv, and answer these ({replaced})"
    else:
        most = available if number == "all" else number
        next_step = f"pairs: {{maximum: {most}}} under dialogue_fairness in {part.project.path.name}, then run again"
    limit = f" (its contexts have {available:,})" if number == "all" else ""
    return f"{advice}{limit}: {next_step}"


def _available_pairs(part: DialoguePart, key: Key) -> int | None:
    """The number of pairs in the model's contexts for the dimension; None if they are still to be made."""
    figures = Lake(part.project.workspace).figures("context_pairs", part.pairs_of(key))
    return figures["pairs"] + figures.get("left_out_beyond_maximum", 0) if figures else None


def cure(part: DialoguePart, rows: Sequence[Judged]) -> str:
    """Advice on a biased model: its debiased versions in the profile, or the methods that could debias it."""
    page = "docs/debiasing.md"
    curable = [judged for judged in rows if judged.row["measure"] != NAMES_OTHER]
    if not curable:
        return (
            "no debiasing method repairs this; it is caused by methods that give the groups' words the same "
            f"representation ({page})"
        )
    name, run = curable[0].key["model"], f"fairness-pipeline run --profile {part.project.name} --model"
    if part.models[name].trained:
        otherwise = f"add a model with `base: {name}` and a method of {page}"
    else:
        methods = f"try a system prompt, Self-Debias or filtered candidates ({page})"
        otherwise = f"{methods}, and compare the next run with this one: --baseline previous"
    biased = {judged.key["model"] for judged in curable}
    recipes = {
        key: model
        for key, model in part.models.items()
        if key == name or not (is_seed(key) or is_control(model) or key in biased)
    }
    return compare_debiased(name, recipes, run, page, otherwise)
