"""Checks of the instruments: the gaps that measures find in texts that no model wrote."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.dialogue.planting import PLANTED_SPLITS
from fairness_pipeline.corpora.labelled_texts import LabelledFile, read_labelled, versions
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.inputs import File
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.lexicons.dimensions import ExchangedWords
from fairness_pipeline.lineage.assets import Assets, Result, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.measures.dialogue.classifier_quality import CLASSIFIER_QUALITY, evaluate_classifiers
from fairness_pipeline.measures.dialogue.instrument import (
    INSTRUMENT_CHECK,
    PARROT,
    check_instruments,
    parrot,
    swapped_texts,
)
from fairness_pipeline.measures.dialogue.measure import Measure, SignificanceSettings
from fairness_pipeline.measures.dialogue.politeness import DEFAULT_CLASSIFIER, PolitenessScorer
from fairness_pipeline.measures.dialogue.registry import measures, scorings
from fairness_pipeline.studies.dialogue_fairness.lineage.corpora import DIALOGUES, about, topic_of
from fairness_pipeline.studies.dialogue_fairness.lineage.measures import Scored, scored, single
from fairness_pipeline.studies.dialogue_fairness.lineage.pairs import context_pairs
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="instruments", axes=("corpus", "dimension"))

_OF_DIVERSITY = ("permutations", "jackknife_blocks")
"""Settings that only diversity needs, which has no value for a single response."""


@dataclass(frozen=True)
class Masking(Scored):
    """The scorers, and how scores are compared."""

    significance: SignificanceSettings


@dataclass(frozen=True)
class Instruments(Masking):
    """The words that are exchanged in human texts, and the choice of these texts."""

    words: ExchangedWords
    topic: str | None
    planted: bool


def _instruments(part: DialoguePart, key: Key) -> Instruments:
    dimension = part.dimensions[key["dimension"]]
    return Instruments(
        **vars(scored(part, key)),
        significance=part.settings.significance.without(*_OF_DIVERSITY),
        words=dimension.exchanged(),
        topic=topic_of(part, key["corpus"], key["dimension"]),
        planted=key["corpus"] in part.settings.planted,
    )


@asset(
    inputs=_instruments,
    reads={"dialogues": one_of(*DIALOGUES)},
    code_version="3",
    libraries=("numpy", "scipy"),
    schema=INSTRUMENT_CHECK,
)
def instrument_check(inputs: Instruments, dialogues: pa.Table, run: Run) -> Result:
    """Each scorer's gap on human texts in which only the listed words are swapped: a gap that no model made.

    The texts are the corpus's responses, or its contexts if it has none. If a bias was planted, they come from the
    splits without it.
    """
    dialogues = about(dialogues, inputs.topic)
    if inputs.planted:
        dialogues = dialogues.filter(pc.invert(pc.is_in(dialogues["split"], pa.array(PLANTED_SPLITS))))
    answered = dialogues.filter(pc.not_equal(dialogues["response"], ""))
    texts = "responses" if answered.num_rows else "contexts"
    originals = answered["response"] if answered.num_rows else dialogues["context"]
    swapped = swapped_texts(originals, inputs.words, run.profile_seed)
    table = _checked(swapped, texts, single(inputs.scorings), inputs, run)
    excerpt = table.select([*_SHOWN, "texts"])
    return Result(table, {"texts_swapped": swapped.num_rows // 2, "texts": texts}, tables={"instruments": excerpt})


_SHOWN = ["measure", "n", "value_a", "value_b", "difference", "p_paired"]


def _checked(
    swapped: pa.Table, texts: str, scored_measures: tuple[Measure, ...], inputs: Masking, run: Run
) -> pa.Table:
    """The gaps that measures find in texts whose words were exchanged."""
    return check_instruments(
        swapped,
        scored_measures,
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


@asset(
    inputs=_parrot,
    reads={"pairs": context_pairs},
    code_version="1",
    libraries=("numpy", "scipy"),
    schema=INSTRUMENT_CHECK,
)
def parrot_check(inputs: Masking, pairs: pa.Table, run: Run) -> Result:
    """The gaps of answers that only repeat the context: the part of a gap that comes from the exchanged words alone."""
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
