"""The verdicts: the sides compared, the sources of gaps, and whether a verdict holds under variations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.libraries import library_versions
from fairness_pipeline.lexicons.dimensions import MaskedWords
from fairness_pipeline.lineage.assets import Assets, Glance, Result, each_of, figures_of, of_seeds, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.measures.dialogue.answer_changes import compare_changes
from fairness_pipeline.measures.dialogue.breakdown import (
    BREAKDOWN,
    break_down,
    carrying,
    moving_together,
    swapped_words,
)
from fairness_pipeline.measures.dialogue.dialogue_significance import (
    DIALOGUE_SIGNIFICANCE,
    compared,
    controls_of,
    judge_responses,
)
from fairness_pipeline.measures.dialogue.distinguishable import Distinguished
from fairness_pipeline.measures.dialogue.diversity import DiversityMeasure, indexed
from fairness_pipeline.measures.dialogue.instrument import leaking
from fairness_pipeline.measures.dialogue.measure import MASKED, SignificanceSettings, deciding, neutral_reading
from fairness_pipeline.measures.dialogue.naming import compare_naming
from fairness_pipeline.measures.dialogue.recipe_significance import RECIPE_SIGNIFICANCE, judge_recipe
from fairness_pipeline.measures.dialogue.registry import measure_label, measures
from fairness_pipeline.measures.dialogue.spread import spreads, units_of
from fairness_pipeline.measures.dialogue.variations import (
    CARRIERS,
    VARIATIONS,
    Judged,
    by_source,
    judged_again,
    other_scores,
    subsets,
    without,
    without_carriers,
)
from fairness_pipeline.models.dialogue.sight import out_of_sight
from fairness_pipeline.models.vocabulary import VOCABULARY, Vocabulary
from fairness_pipeline.reporting.plots import difference_plot
from fairness_pipeline.reporting.text_plot import summary
from fairness_pipeline.studies.dialogue_fairness.lineage.answers import WEIGHTS, responses
from fairness_pipeline.studies.dialogue_fairness.lineage.corpora import DIALOGUES
from fairness_pipeline.studies.dialogue_fairness.lineage.instruments import instrument_check, parrot_check
from fairness_pipeline.studies.dialogue_fairness.lineage.measures import (
    MEASURED,
    answer_changes,
    distinguishable_answers,
    named_groups,
    no_effect_differences,
    single,
)
from fairness_pipeline.studies.dialogue_fairness.lineage.pairs import context_pairs
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.studies.dialogue_fairness.published import PublishedRow
from fairness_pipeline.studies.dialogue_fairness.results import published_rows_of
from fairness_pipeline.studies.dialogue_fairness.standing import Figures
from fairness_pipeline.studies.dialogue_fairness.study import STUDY
from fairness_pipeline.workspace.distinct import Scorer
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="verdicts", axes=("dimension", "model"), covers=lambda part, key: part.answers(key))

Tables = Mapping[str, pa.Table]
"""The table of each measure, by name."""
TABLES = each_of(*MEASURED)


_FACTORS = {"source_file": "source", "topic": "topic"}


@asset(
    inputs=lambda part, key: None,
    reads={"dialogues": one_of(*DIALOGUES), "pairs": context_pairs, "tables": TABLES},
    code_version="1",
    libraries=("numpy",),
    schema=BREAKDOWN,
    checks=(checks.not_empty,),
)
def dialogue_breakdown(_: None, dialogues: pa.Table, pairs: pa.Table, tables: Tables) -> Result:
    """Where each gap comes from: by swapped word, by the side, the file and the topic of the original context."""
    pairs = pairs.sort_by("pair_id")
    dialogue_rows = pc.index_in(pairs["dialogue_id"], dialogues["dialogue_id"])
    factors = {factor: dialogues[column].take(dialogue_rows).to_pylist() for factor, column in _FACTORS.items()}
    values = [(measure, measure.values(tables[measure.table])) for measure in single(tables)]
    table = break_down(pairs, swapped_words(pairs), values, factors)
    commonest = table.filter(pc.equal(table["factor"], "word")).sort_by([("n", "descending")]).slice(0, 20)
    return Result(table, {"words": len(commonest["level"].unique())}, tables={"words": commonest})


@dataclass(frozen=True)
class Varied:
    """How verdicts are varied: words that are mostly titles, other scorers, how many words of a context a model trained
    here reads, and the names of the groups if contexts were found, so that each originally named one of them."""

    significance: SignificanceSettings
    words: MaskedWords
    titles: tuple[str, ...]
    others: Mapping[str, Mapping[str, Scorer]]
    longest: int | None
    groups: tuple[str, str] | None
    versions: Mapping[str, str]


def _varied(part: DialoguePart, key: Key) -> Varied:
    model, dimension = part.models[key["model"]], part.dimensions[key["dimension"]]
    settings = part.settings.measures
    corpus = model.corpus
    contexts_are_retrieved = (
        part.corpora[corpus].specification.contexts is None and part.pairing(corpus)["senses"] == "rules"
    )
    rescored = [measure for measure in single(settings.further) if measure.others(settings)]
    sizes = (model.seq2seq or model.retrieval) if model.trained else None
    libraries = {name for measure in rescored for name in measure.libraries}
    return Varied(
        part.settings.significance.without("permutations"),
        dimension.masked,
        dimension.titles,
        {measure.table: measure.others(settings) for measure in rescored},
        sizes.longest if sizes else None,
        (dimension.groups.a, dimension.groups.b) if contexts_are_retrieved else None,
        library_versions(*sorted(libraries)),
    )


@asset(
    inputs=_varied,
    reads={"pairs": context_pairs, "answers": responses, "tables": TABLES, "weights": WEIGHTS},
    arrows=(context_pairs, responses, *MEASURED),
    code_version="4",
    libraries=("numpy", "scipy"),
    schema=VARIATIONS,
    checks=(checks.not_empty,),
)
def verdict_variations(
    inputs: Varied, pairs: pa.Table, answers: pa.Table, tables: Tables, weights: Path, run: Run
) -> Result:
    """The same responses judged again: other word lists, thresholds, classifiers, half the contexts; pairs left out."""
    pairs, significance, masked = pairs.sort_by("pair_id"), inputs.significance, inputs.words
    words = swapped_words(pairs)
    clusters = moving_together(words, names_the_group=masked.names_the_group)
    values = [(measure, measure.readings(tables[measure.table])) for measure in single(tables)]
    # Pairs that a model trained here cannot tell apart; for other models these are unknown.
    vocabulary = weights / VOCABULARY
    has_vocabulary = inputs.longest is not None and vocabulary.exists()
    sight = out_of_sight(pairs, Vocabulary.load(vocabulary), inputs.longest or 0) if has_vocabulary else {}
    masks = {**sight, "titles and idioms": words.any_of(inputs.titles)}
    carriers = {
        name: carrying(words, deciding(measure_readings, name))
        for _, measure_readings in values
        for name in measure_readings
        if not name.endswith(MASKED)
    }
    variations = [
        *subsets(words, pairs.num_rows, run.seed_without("model")),
        *other_scores(single(tables), tables, answers, inputs.others, masked, run.folder, run.progress),
        *without(masks),
        *(by_source(pairs["source_side"].to_numpy(), inputs.groups) if inputs.groups else ()),
        *without_carriers(words, pairs.num_rows, carriers),
    ]
    (diversity,) = (measure for measure in measures() if isinstance(measure, DiversityMeasure))
    readings = indexed(answers, neutral_reading(answers, masked), significance)
    table = judged_again(Judged(values, (diversity, readings), clusters), variations, significance)
    figures = {f"share of {name}": round(float(mask.mean()), 4) for name, mask in masks.items()}
    excerpt = table.filter(pc.is_in(table["kind"], pa.array(["without", CARRIERS])))
    return Result(table, {**figures, "variations": len(variations)}, tables={"without": excerpt})


@dataclass(frozen=True)
class Significance:
    """How differences are judged, the words that are masked, whether the contexts were made of frames and persons,
    and what the papers print."""

    significance: SignificanceSettings
    words: MaskedWords
    made: bool
    published: Mapping[str, PublishedRow]


def _significance(part: DialoguePart, key: Key) -> Significance:
    corpus = part.corpora[part.models[key["model"]].corpus].specification
    words = part.dimensions[key["dimension"]].masked
    return Significance(part.settings.significance, words, corpus.contexts is not None, published_rows_of(part, **key))


def _shown(part: DialoguePart, key: Key, result: Result) -> Glance:
    unmasked = [row for row in result.rows if not row["measure"].endswith(MASKED)]
    picture = difference_plot(unmasked, *STUDY.groups(part, key), measure_label)
    return Glance(summary(STUDY, part, key, result.rows), {"differences": picture})


JUDGED = (
    *MEASURED,
    distinguishable_answers,
    named_groups,
    answer_changes,
    no_effect_differences,
    verdict_variations,
    instrument_check,
    parrot_check,
)
"""The assets that an audit's verdicts are made of."""


@asset(
    inputs=_significance,
    reads={
        "dialogues": one_of(*DIALOGUES),
        "pairs": context_pairs,
        "answers": responses,
        "tables": TABLES,
        "told_apart": figures_of(distinguishable_answers),
        "named": named_groups,
        "changes": answer_changes,
        "without_effect": no_effect_differences,
        "varied": verdict_variations,
        "instrument": instrument_check,
        "parrots": parrot_check,
    },
    arrows=JUDGED,
    code_version="13",
    libraries=("numpy", "scipy"),
    schema=DIALOGUE_SIGNIFICANCE,
    checks=(checks.not_empty, checks.rates_in_range),
    show=_shown,
)
def dialogue_significance(
    inputs: Significance,
    dialogues: pa.Table,
    pairs: pa.Table,
    answers: pa.Table,
    tables: Tables,
    told_apart: Figures,
    named: pa.Table,
    changes: pa.Table | None,
    without_effect: pa.Table | None,
    varied: pa.Table,
    instrument: pa.Table,
    parrots: pa.Table,
    run: Run,
) -> Result:
    """Every measure compared between the sides: the paper's Z test, paired tests, equivalence, and verdicts."""
    pairs, settings, seed = pairs.sort_by("pair_id"), inputs.significance, run.seed_without("model")
    words, distinguished = swapped_words(pairs), Distinguished.of(told_apart)
    clusters = moving_together(words, names_the_group=inputs.words.names_the_group)
    controls = controls_of(answers, tables, settings, inputs.words, clusters, leaking(parrots, settings.alpha))
    units = units_of(pairs, dialogues, made=inputs.made)
    between_units = spreads(controls.values, units.number, words.clusterings_of_forms, seed)
    judged = compared(
        answers,
        tables,
        settings=settings,
        seed=seed,
        published=inputs.published,
        masked=inputs.words,
        clusters=clusters,
        controls=controls,
        distinguished=distinguished,
        spreads=between_units,
    )
    table = judge_responses(
        judged,
        answers,
        tables,
        words=words,
        varied=varied,
        instrument=instrument,
        parrots=parrots,
        alpha=settings.alpha,
        controls=controls,
        beside=[
            *(() if changes is None else compare_changes(changes, settings, clusters)),
            *([compare_naming(named, settings.alpha, clusters)] if named.num_rows else ()),
        ],
        without_effect=without_effect,
        distinguished=distinguished,
        spreads=between_units,
        unit=units.name,
    )
    excerpt = table.select(["measure", "value_a", "value_b", "difference", "p_holm", "verdict", "paper_verdict"])
    rows = table.to_pylist()
    differences = {f"difference_{row['measure']}": row["difference"] for row in rows}
    verdicts = {row["measure"]: row["verdict"] for row in rows}
    return Result(table, {**differences, "verdicts": verdicts}, tables={"significance": excerpt})


@asset(
    covers=lambda part, key: part.answers(key) and bool(part.seeds_of(key)),
    inputs=lambda part, key: part.level,
    reads={"seeds": of_seeds(dialogue_significance)},
    code_version="2",
    libraries=("numpy", "scipy"),
    schema=RECIPE_SIGNIFICANCE,
    checks=(checks.not_empty,),
)
def recipe_significance(alpha: float, seeds: Mapping[str, pa.Table]) -> Result:
    """The verdict on a recipe: the model trained with several seeds, with the variance between them in the interval."""
    table = judge_recipe(list(seeds.values()), alpha)
    excerpt = table.select(["measure", "seeds", "difference", "sd_seeds", "ci_low", "ci_high", "verdict", "verdicts"])
    return Result(table, {"seeds": len(seeds)}, tables={"recipe": excerpt})
