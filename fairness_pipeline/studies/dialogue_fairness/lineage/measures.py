"""Measures: a table each of what responses show, and of what the instruments show by themselves."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.dialogue.planting import PLANTED_SPLITS
from fairness_pipeline.corpora.labelled_texts import LabelledFile, read_labelled, versions
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.lexicons.dimensions import ExchangedWords, MaskedWords
from fairness_pipeline.lineage.assets import Asset, Assets, Result, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.measures.dialogue.answer_changes import (
    ANSWER_CHANGES,
    NO_EFFECT_DIFFERENCES,
    Encoder,
    differences_without_effect,
    measure_changes,
)
from fairness_pipeline.measures.dialogue.breakdown import moving_together, swapped_words
from fairness_pipeline.measures.dialogue.classifier_quality import CLASSIFIER_QUALITY, evaluate_classifiers
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE_ANSWERS, distinguish
from fairness_pipeline.measures.dialogue.instrument import (
    INSTRUMENT_CHECK,
    PARROT,
    check_instruments,
    parrot,
    swapped_texts,
)
from fairness_pipeline.measures.dialogue.measure import Measure, Scoring, Scorings, SignificanceSettings
from fairness_pipeline.measures.dialogue.naming import NAMED_GROUPS, name_groups
from fairness_pipeline.measures.dialogue.politeness import DEFAULT_CLASSIFIER, PolitenessScorer
from fairness_pipeline.measures.dialogue.registry import all_measures, measures, scorings
from fairness_pipeline.studies.dialogue_fairness.lineage.answers import has_controls, no_effect_responses, responses
from fairness_pipeline.studies.dialogue_fairness.lineage.corpora import DIALOGUES, about, topic_of
from fairness_pipeline.studies.dialogue_fairness.lineage.pairs import context_pairs
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="measures", axes=("dimension", "model"), covers=has_controls)


of_a_corpus = Assets(DialoguePart, stage="measures", axes=("corpus", "dimension"))


def _measured(measure: Measure) -> Asset:
    def measured(scoring: Scoring, answers: pa.Table, run: Run) -> Result:
        table = measure.measure(answers, scoring, run.folder, run.progress)
        return Result(table, tables={} if measure.scorer else {measure.table: table})

    return asset(
        name=measure.table,
        description=measure.description,
        covers=lambda part, key: part.answers(key) and measure in measures(part.settings.measures.further),
        inputs=lambda part, key: measure.scoring(part.settings.measures, part.dimensions[key["dimension"]]),
        reads={"answers": responses},
        code_version=measure.version,
        schema=measure.schema,
        checks=measure.checks,
    )(measured)


MEASURED = tuple(map(_measured, all_measures()))
"""One table a measure."""
of_responses = list(MEASURED)


def single(further: Collection[str]) -> tuple[Measure, ...]:
    """The measures that score responses one by one: those of every audit, and those on request that are named."""
    return tuple(measure for measure in measures(further) if measure.scorer)


@asset(
    covers=lambda part, key: part.answers(key),
    inputs=lambda part, key: part.dimensions[key["dimension"]].masked,
    reads={"pairs": context_pairs, "answers": responses},
    code_version="2",
    libraries=("numpy", "scipy"),
    schema=DISTINGUISHABLE_ANSWERS,
    checks=(checks.not_empty, checks.both_sides_present),
)
def distinguishable_answers(words: MaskedWords, pairs: pa.Table, answers: pa.Table, run: Run) -> Result:
    """Whether an answer alone, without the groups' words, tells which group was named; and by which of its words."""
    pairs, answers = pairs.sort_by("pair_id"), answers.sort_by("pair_id")
    a, b = (answers.filter(pc.equal(answers["side"], side))["response"] for side in ("a", "b"))
    contexts, words_of = (pairs["context_a"], pairs["context_b"]), swapped_words(pairs)
    seed = run.seed_without("model")
    found, scores = distinguish(contexts, a, b, words_of, words, seed=seed, progress=run.progress)
    ids = pairs["pair_id"].combine_chunks()
    table = pa.concat_tables(
        pa.table({"pair_id": ids, "side": pa.repeat(side, len(ids)), "score": own})
        for side, own in zip("ab", scores, strict=True)
    )
    return Result(table.cast(DISTINGUISHABLE_ANSWERS), found.figures)


def _naming(part: DialoguePart, key: Key) -> ExchangedWords | None:
    """The words that name people; None where a dimension's words name nobody."""
    dimension = part.dimensions[key["dimension"]]
    named = dimension.names_people
    return dimension.exchanged(senses=True, further=True, searched=True) if named else None


@asset(
    covers=lambda part, key: part.answers(key),
    inputs=_naming,
    reads={"pairs": context_pairs, "answers": responses},
    code_version="2",
    schema=NAMED_GROUPS,
)
def named_groups(words: ExchangedWords | None, pairs: pa.Table, answers: pa.Table) -> Result:
    """Which group each answer names, by a person or a pronoun: its context's own, or the other."""
    table = name_groups(pairs.sort_by("pair_id"), answers, words) if words else NAMED_GROUPS.empty_table()
    counts = table.group_by(["side", "names"]).aggregate([([], "count_all")])
    return Result(table, {f"{row['side']} {row['names']}": row["count_all"] for row in counts.to_pylist()})


@dataclass(frozen=True)
class Changes:
    """The words that are masked before answers are compared, and the encoder that tells how far two are apart."""

    words: MaskedWords
    encoder: Encoder | None


@asset(
    inputs=lambda part, key: Changes(part.dimensions[key["dimension"]].masked, Encoder.of(part.settings.measures)),
    reads={"answers": responses, "others": no_effect_responses},
    code_version="1",
    libraries=("sacrebleu",),
    schema=ANSWER_CHANGES,
)
def answer_changes(inputs: Changes, answers: pa.Table, others: pa.Table, run: Run) -> Result:
    """How much an answer changes when the group does, and when something else does."""
    table = measure_changes(answers, others, inputs.words, inputs.encoder, run.folder, run.progress)
    means = table.group_by("change").aggregate([("unchanged", "mean"), ("similarity", "mean")])
    return Result(table, {f"similarity_{row['change']}": row["similarity_mean"] for row in means.to_pylist()})


@dataclass(frozen=True)
class Scored:
    """What scores the responses, and the words that are masked in the neutral reading."""

    scorings: Scorings
    masked: MaskedWords


def _scored(part: DialoguePart, key: Key) -> Scored:
    dimension = part.dimensions[key["dimension"]]
    settings = part.settings.measures
    return Scored(scorings(single(settings.further), settings, dimension), dimension.masked)


@asset(
    inputs=_scored,
    reads={"pairs": context_pairs, "answers": responses, "others": no_effect_responses},
    arrows=(responses, no_effect_responses),
    code_version="2",
    libraries=("numpy", "scipy"),
    schema=NO_EFFECT_DIFFERENCES,
)
def no_effect_differences(inputs: Scored, pairs: pa.Table, answers: pa.Table, others: pa.Table, run: Run) -> Result:
    """How much changes that should change nothing move the gap between the sides in each measure."""
    words = swapped_words(pairs.sort_by("pair_id"))
    clusters = moving_together(words, names_the_group=inputs.masked.names_the_group)
    of = single(inputs.scorings)
    table = differences_without_effect(answers, others, of, inputs.scorings, clusters, run.folder, run.progress)
    return Result(table, tables={"differences": table})


_OF_DIVERSITY = ("permutations", "jackknife_blocks")
"""Settings that only diversity needs, which has no value for a single response."""


@dataclass(frozen=True)
class Masking(Scored):
    """How the scores are compared."""

    significance: SignificanceSettings


@dataclass(frozen=True)
class Instruments(Masking):
    """The words that are exchanged in human texts, and which texts these are."""

    words: ExchangedWords
    topic: str | None
    planted: bool


def _instruments(part: DialoguePart, key: Key) -> Instruments:
    dimension = part.dimensions[key["dimension"]]
    return Instruments(
        **vars(_scored(part, key)),
        significance=part.settings.significance.without(*_OF_DIVERSITY),
        words=dimension.exchanged(),
        topic=topic_of(part, key["corpus"], key["dimension"]),
        planted=key["corpus"] in part.settings.planted,
    )


@of_a_corpus(
    inputs=_instruments,
    reads={"dialogues": one_of(*DIALOGUES)},
    code_version="3",
    libraries=("numpy", "scipy"),
    schema=INSTRUMENT_CHECK,
)
def instrument_check(inputs: Instruments, dialogues: pa.Table, run: Run) -> Result:
    """What each scorer makes of human texts with only the listed words swapped: a gap that no model made.

    The texts are the corpus's responses, or its contexts where it has none; where a bias was planted, those of the
    splits that it is not in.
    """
    dialogues = about(dialogues, inputs.topic)
    if inputs.planted:
        dialogues = dialogues.filter(pc.invert(pc.is_in(dialogues["split"], pa.array(PLANTED_SPLITS))))
    answered = dialogues.filter(pc.not_equal(dialogues["response"], ""))
    texts = "responses" if answered.num_rows else "contexts"
    chosen = answered["response"] if answered.num_rows else dialogues["context"]
    swapped = swapped_texts(chosen, inputs.words, run.profile_seed)
    table = _checked(swapped, texts, single(inputs.scorings), inputs, run)
    shown = table.select([*_SHOWN, "texts"])
    return Result(table, {"texts_swapped": swapped.num_rows // 2, "texts": texts}, tables={"instruments": shown})


_SHOWN = ["measure", "n", "value_a", "value_b", "difference", "p_paired"]


def _checked(swapped: pa.Table, texts: str, of: tuple[Measure, ...], inputs: Masking, run: Run) -> pa.Table:
    """What measures make of texts whose words were exchanged."""
    return check_instruments(
        swapped,
        of,
        inputs.scorings,
        inputs.masked,
        significance=inputs.significance,
        texts=texts,
        folder=run.folder,
        progress=run.progress,
    )


def _parrot(part: DialoguePart, key: Key) -> Masking:
    dimension = part.dimensions[key["dimension"]]
    significance = part.settings.significance.model_copy(update={"permutations": 0})
    settings = part.settings.measures
    return Masking(scorings(measures(settings.further), settings, dimension), dimension.masked, significance)


@of_a_corpus(
    inputs=_parrot,
    reads={"pairs": context_pairs},
    code_version="1",
    libraries=("numpy", "scipy"),
    schema=INSTRUMENT_CHECK,
)
def parrot_check(inputs: Masking, pairs: pa.Table, run: Run) -> Result:
    """What answers that only repeat the context would get: the part of a gap that the exchanged words make alone."""
    answers = parrot(pairs)
    table = _checked(answers, PARROT, measures(inputs.scorings), inputs, run)
    return Result(table, {"pairs": answers.num_rows // 2}, tables={"parrot": table.select(_SHOWN)})


@dataclass(frozen=True)
class Quality:
    """The classifiers, the labelled texts, and the words and names of the groups."""

    classifiers: Mapping[str, PolitenessScorer]
    labelled: tuple[LabelledFile, ...]
    files: Mapping[str, File]
    words: ExchangedWords
    groups: tuple[str, str]
    versions: Mapping[str, str]


def _quality(part: DialoguePart, key: Key) -> Quality:
    settings, dimension = part.settings.measures, part.dimensions[key["dimension"]]
    return Quality(
        {name: PolitenessScorer.of(settings, name) for name in settings.classifiers},
        settings.labelled,
        versions(settings.labelled),
        dimension.named,
        (dimension.groups.a, dimension.groups.b),
        library_versions(DEFAULT_CLASSIFIER, "scikit-learn", "transformers"),
    )


@asset(
    stage="measures",
    axes=("dimension",),
    covers=lambda part, key: bool(part.settings.measures.labelled),
    inputs=_quality,
    code_version="1",
    schema=CLASSIFIER_QUALITY,
    checks=(checks.not_empty,),
)
def classifier_quality(inputs: Quality, run: Run) -> Result:
    """Recall and precision of the offence classifiers on texts that people labelled, by the group that a text names."""
    texts = read_labelled(inputs.labelled, Path())
    table = evaluate_classifiers(texts, inputs.classifiers, inputs.words, inputs.groups, run.progress)
    held_out = sum(text.held_out for text in texts)
    return Result(table, {"texts": len(texts), "held_out": held_out}, tables={"quality": table})
