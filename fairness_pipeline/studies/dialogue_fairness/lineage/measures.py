"""The measures: a table of each, computed from the responses."""

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from fairness_pipeline.foundation import checks
from fairness_pipeline.lexicons.dimensions import ExchangedWords, MaskedWords
from fairness_pipeline.lineage.assets import Asset, Assets, Result
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.measures.dialogue.answer_changes import (
    ANSWER_CHANGES,
    NO_EFFECT_DIFFERENCES,
    Encoder,
    differences_without_effect,
    measure_changes,
)
from fairness_pipeline.measures.dialogue.breakdown import moving_together, swapped_words
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE_ANSWERS, distinguish
from fairness_pipeline.measures.dialogue.measure import Measure, Scoring, Scorings
from fairness_pipeline.measures.dialogue.naming import NAMED_GROUPS, name_groups
from fairness_pipeline.measures.dialogue.registry import all_measures, measures, scorings
from fairness_pipeline.studies.dialogue_fairness.lineage.answers import has_controls, no_effect_responses, responses
from fairness_pipeline.studies.dialogue_fairness.lineage.pairs import context_pairs
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="measures", axes=("dimension", "model"), covers=has_controls)


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


MEASURED = list(map(_measured, all_measures()))
"""One table per measure."""


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
    pairs = pairs.sort_by("pair_id")
    contexts, pair_words = (pairs["context_a"], pairs["context_b"]), swapped_words(pairs)
    seed = run.seed_without("model")
    result, scores = distinguish(contexts, answers, pair_words, words, seed=seed, progress=run.progress)
    ids = pairs["pair_id"].combine_chunks()
    table = pa.concat_tables(
        pa.table({"pair_id": ids, "side": pa.repeat(side, len(ids)), "score": side_scores})
        for side, side_scores in zip("ab", scores, strict=True)
    )
    return Result(table.cast(DISTINGUISHABLE_ANSWERS), result.figures)


def _naming(part: DialoguePart, key: Key) -> ExchangedWords | None:
    """The words that name people; None if the dimension's words name nobody."""
    dimension = part.dimensions[key["dimension"]]
    names_people = dimension.names_people
    return dimension.exchanged(senses=True, further=True, searched=True) if names_people else None


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
    """The words that are masked before answers are compared, and the encoder that measures their similarity."""

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
    """The scorers of the responses, and the words that are masked in the neutral reading."""

    scorings: Scorings
    masked: MaskedWords


def scored(part: DialoguePart, key: Key) -> Scored:
    """How the responses to a dimension's contexts are scored one by one."""
    dimension = part.dimensions[key["dimension"]]
    settings = part.settings.measures
    return Scored(scorings(single(settings.further), settings, dimension), dimension.masked)


@asset(
    inputs=scored,
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
    scored_measures = single(inputs.scorings)
    table = differences_without_effect(
        answers, others, scored_measures, inputs.scorings, clusters, run.folder, run.progress
    )
    return Result(table, tables={"differences": table})
