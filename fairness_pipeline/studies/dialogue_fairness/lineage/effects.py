"""The effects of debiasing: what it changed, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.cleaning import USER
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.dimensions import MaskedWords
from fairness_pipeline.lineage.assets import Assets, Result, figures_of, of_base, of_baselines, of_seeds, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.measures.dialogue.breakdown import moving_together, swapped_words
from fairness_pipeline.measures.dialogue.debiasing_effects import (
    Measured,
    compare_models,
    identical_share,
    without_credit,
)
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.measures.dialogue.naming import naming_changes
from fairness_pipeline.measures.dialogue.recipe_effects import RECIPE_EFFECTS, Control, compare_recipes
from fairness_pipeline.measures.dialogue.response_quality import RESPONSE_QUALITY, measure_quality
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.responding import answer_each
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary
from fairness_pipeline.statistics.change import DEBIASING_EFFECTS
from fairness_pipeline.studies.dialogue_fairness.lineage.answers import (
    WEIGHTS,
    Answering,
    answering_of,
    responses,
)
from fairness_pipeline.studies.dialogue_fairness.lineage.corpora import DIALOGUES
from fairness_pipeline.studies.dialogue_fairness.lineage.measures import named_groups
from fairness_pipeline.studies.dialogue_fairness.lineage.models import (
    debiased_dialogue_models,
    dialogue_models,
    is_debiased,
)
from fairness_pipeline.studies.dialogue_fairness.lineage.pairs import context_pairs
from fairness_pipeline.studies.dialogue_fairness.lineage.verdicts import TABLES, Tables, dialogue_significance
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.results import published_quality_of
from fairness_pipeline.studies.dialogue_fairness.standing import Figures, find_degeneracy
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="verdicts", axes=("dimension", "model"), covers=is_debiased)


@dataclass(frozen=True)
class Quality:
    """A model with its decoding, and its values in table 3.5 of Liu 2022."""

    answering: Answering
    published: Mapping[str, float]


def _quality(part: DialoguePart, key: Key) -> Quality:
    return Quality(answering_of(part, key), published_quality_of(part, **key))


@asset(
    axes=("model",),
    covers=lambda part, key: part.models[key["model"]].trained and part.models[key["model"]].debiasing is None,
    inputs=_quality,
    reads={"dialogues": one_of(*DIALOGUES), "weights": dialogue_models, "trained": figures_of(dialogue_models)},
    code_version="2",
    libraries=("sacrebleu",),
    schema=RESPONSE_QUALITY,
    checks=(checks.not_empty, checks.values_not_negative),
)
def base_response_quality(inputs: Quality, dialogues: pa.Table, weights: Path, trained: Figures, run: Run) -> Result:
    """The quality of a trained model's answers to the test split: BLEU, distinct-n, perplexity (Liu 2022, 3.3.3.3)."""
    return _measured_quality(inputs, dialogues, weights, trained, None, run)


@asset(
    covers=lambda part, key: is_debiased(part, key) and part.models[key["model"]].trained,
    inputs=_quality,
    reads={
        "dialogues": one_of(*DIALOGUES),
        "weights": debiased_dialogue_models,
        "trained": figures_of(debiased_dialogue_models),
        "base": of_base(dialogue_models),
    },
    code_version="2",
    libraries=("sacrebleu",),
    schema=RESPONSE_QUALITY,
    checks=(checks.not_empty, checks.values_not_negative),
)
def response_quality(
    inputs: Quality, dialogues: pa.Table, weights: Path, trained: Figures, base: Path, run: Run
) -> Result:
    """The quality of a debiased model's answers to the test split (Liu 2022, table 3.5)."""
    return _measured_quality(inputs, dialogues, weights, trained, base, run)


def _measured_quality(
    inputs: Quality, dialogues: pa.Table, weights: Path, trained: Figures, base: Path | None, run: Run
) -> Result:
    test = dialogues.filter(pc.equal(dialogues["split"], "test"))
    if not test.num_rows:
        raise FairnessError("no dialogue fell into the split 'test'; raise splits.test in the profile")
    contexts = test["context"].unique()
    responder = inputs.answering.responder(weights, run)
    answers = answer_each(contexts, responder, run.folder, run.progress, engine=run.engine)["response"]
    train = dialogues.filter(pc.equal(dialogues["split"], "train"))["response"]
    counts = sorted(pc.value_counts(train).to_pylist(), key=lambda entry: (-entry["counts"], entry["values"]))
    table = measure_quality(
        answers.take(pc.index_in(test["context"], contexts)),
        test["response"],
        _perplexity(inputs.answering, dialogues, weights, trained, base),
        dict(inputs.published),
        [entry["values"] for entry in counts[:100]],
    )
    excerpt = table.select(["metric", "value", "constant_value", "published_value"])
    return Result(table, {row["metric"]: row["value"] for row in table.to_pylist()}, tables={"quality": excerpt})


def _perplexity(
    answering: Answering, dialogues: pa.Table, weights: Path, trained: Figures, base: Path | None
) -> tuple[float, str] | None:
    """The perplexity of a model, and how it was computed; a debiased model's is taken on its base's words."""
    if "validation_perplexity" not in trained:
        return None
    if not answering.model.seq2seq:
        return trained["validation_perplexity"], "exp of the mean validation loss a target"
    valid = dialogues.filter(pc.equal(dialogues["split"], "valid"))
    vocabulary = Vocabulary.load((base or weights) / VOCABULARY)
    value = registry.perplexity(answering.model, weights, valid, vocabulary, (USER,))
    words = "the base's words" if base else "its own words"
    return value, f"exp of the mean cross-entropy of the validation split on {words}, without masked user names"


@dataclass(frozen=True)
class Compared:
    """How changes are judged, the masked words, the share of identical answers from which on a model is degenerate, and
    whether a model could have learned nothing."""

    significance: SignificanceSettings
    words: MaskedWords
    alike: float
    learns: bool

    def is_degenerate(self, answered: Figures, trained: Figures, base: Figures) -> bool:
        """Whether a model's verdicts mean nothing."""
        return find_degeneracy(answered, self.alike, *((trained, base) if self.learns else ())) is not None


def _compared(part: DialoguePart, key: Key) -> Compared:
    kept = {"alpha", "jackknife_blocks", "diversity"}
    significance = part.settings.significance.without(*{*SignificanceSettings.model_fields} - kept)
    words = part.dimensions[key["dimension"]].masked
    return Compared(
        significance, words, part.settings.max_identical_share, part.models[key["model"]].seq2seq is not None
    )


@asset(
    inputs=_compared,
    reads={
        "pairs": context_pairs,
        "answers": responses,
        "tables": TABLES,
        "judged": dialogue_significance,
        "answers_before": of_base(responses),
        "tables_before": of_base(TABLES),
        "judged_before": of_base(dialogue_significance),
        "named": named_groups,
        "named_before": of_base(named_groups),
        "answered": figures_of(responses),
        "answered_before": of_base(figures_of(responses)),
        "trained": figures_of(debiased_dialogue_models),
        "trained_before": of_base(figures_of(dialogue_models)),
    },
    code_version="5",
    libraries=("numpy", "scipy"),
    schema=DEBIASING_EFFECTS,
    checks=(checks.not_empty,),
)
def debiasing_effects(
    inputs: Compared,
    pairs: pa.Table,
    answers: pa.Table,
    tables: Tables,
    judged: pa.Table,
    answers_before: pa.Table,
    tables_before: Tables,
    judged_before: pa.Table,
    named: pa.Table,
    named_before: pa.Table,
    answered: Figures,
    answered_before: Figures,
    trained: Figures,
    trained_before: Figures,
) -> Result:
    """What debiasing changed: each measure's gap before and after, and whether the change is more than chance."""
    before, after = Measured(answers_before, tables_before, judged_before), Measured(answers, tables, judged)
    clusters = moving_together(swapped_words(pairs), names_the_group=inputs.words.names_the_group)
    table = compare_models(before, after, inputs.significance, inputs.words, clusters)
    base_degenerate = inputs.is_degenerate(answered_before, trained_before, trained_before)
    if base_degenerate or inputs.is_degenerate(answered, trained, trained_before):
        table = without_credit(table, base=base_degenerate)
    excerpt = table.select(["measure", "difference_before", "difference_after", "change", "p_holm", "effect"])
    figures = {
        "identical_responses_before": identical_share(before.responses),
        "identical_responses_after": identical_share(after.responses),
        "effects": {row["measure"]: row["effect"] for row in table.to_pylist()},
        **(naming_changes(named_before, named) if named.num_rows else {}),
    }
    return Result(table, figures, tables={"effects": excerpt})


@dataclass(frozen=True)
class Seeds(Compared):
    """The trainings of a model (each with the one that it starts from), of its base, and of its controls by method."""

    seeds: Mapping[str, str]
    base: tuple[str, ...]
    controls: Mapping[str, tuple[str, ...]]
    controlled: bool


def _seeds(part: DialoguePart, key: Key) -> Seeds:
    def trainings(subject: Key) -> tuple[str, ...]:
        return tuple(seed["model"] for seed in part.seeds_of(subject) or [subject])

    base = part.base_of(key)
    assert base is not None
    return Seeds(
        **vars(_compared(part, key)),
        seeds={name: str(part.models[name].base) for name in trainings(key)},
        base=trainings(base),
        controls={control["model"]: trainings(control) for control in part.controls.of(key).values()},
        controlled=part.controls.complete(key),
    )


@asset(
    covers=lambda part, key: is_debiased(part, key) and bool(part.seeds_of(key)),
    inputs=_seeds,
    reads={
        "judged": of_seeds(dialogue_significance),
        "answered": of_seeds(figures_of(responses)),
        "trained": of_seeds(figures_of(debiased_dialogue_models)),
        "judged_before": of_baselines(dialogue_significance),
        "answered_before": of_baselines(figures_of(responses)),
        "trained_before": of_baselines(figures_of(WEIGHTS)),
    },
    code_version="7",
    libraries=("numpy", "scipy"),
    schema=RECIPE_EFFECTS,
    checks=(checks.not_empty,),
)
def recipe_effects(
    inputs: Seeds,
    judged: Mapping[str, pa.Table],
    answered: Mapping[str, Figures],
    trained: Mapping[str, Figures],
    judged_before: Mapping[str, pa.Table],
    answered_before: Mapping[str, Figures],
    trained_before: Mapping[str, Figures],
) -> Result:
    """What a method changes in a recipe's gaps over its seeds: beyond its base, the base's seeds, and the controls."""
    table = compare_recipes(
        [judged_before[name] for name in inputs.base],
        list(judged.values()),
        [Control(name, [judged_before[seed] for seed in seeds]) for name, seeds in inputs.controls.items()],
        controlled=inputs.controlled,
        alpha=inputs.significance.alpha,
    )
    base_degenerate = all(
        inputs.is_degenerate(answered_before[name], trained_before[name], trained_before[name])
        for name in inputs.base[: len(inputs.seeds)]
    )
    if base_degenerate or any(
        inputs.is_degenerate(answered[name], trained[name], trained_before[start])
        for name, start in inputs.seeds.items()
    ):
        table = without_credit(table, base=base_degenerate)
    excerpt = table.select(["measure", "seeds", "difference_before", "difference_after", "p_holm", "p_cure", "effect"])
    return Result(
        table, {"effects": {row["measure"]: row["effect"] for row in table.to_pylist()}}, tables={"recipe": excerpt}
    )
