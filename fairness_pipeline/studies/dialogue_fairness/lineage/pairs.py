"""Pairs: contexts that name one group, and the same with the other group's words (Liu et al. 2020, section 2.3)."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS, find_contexts, make_pairs
from fairness_pipeline.lexicons.dimensions import ExchangedWords, InterchangeableWords
from fairness_pipeline.lexicons.no_effect import NO_EFFECT_CONTEXTS, make_no_effect
from fairness_pipeline.lexicons.swapping import PronounRule, Swapper
from fairness_pipeline.lineage.assets import Assets, Result, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.studies.dialogue_fairness.lineage.corpora import DIALOGUES, about, topic_of
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="pairs", axes=("corpus", "dimension"))


@dataclass(frozen=True)
class Search:
    """The words that contexts are searched for, and the topic of the dialogues that are searched."""

    dimension: str
    words: ExchangedWords
    pronouns: PronounRule
    senses: bool
    further: bool
    topic: str | None


def _search(part: DialoguePart, key: Key) -> Search:
    how, name = part.pairing(key["corpus"]), key["dimension"]
    senses, further = how["senses"] == "rules", how["further"]
    words = part.dimensions[name].exchanged(senses=senses, further=further, searched=True)
    return Search(name, words, how["pronouns"], senses, further, topic_of(part, key["corpus"], name))


@asset(
    inputs=_search,
    reads={"dialogues": one_of(*DIALOGUES)},
    code_version="2",
    schema=CONTEXTS,
)
def contexts(search: Search, dialogues: pa.Table, run: Run) -> Result:
    """Contexts of the audit split in which a word of the dimension means the group, and that no model trained on."""
    swapper = Swapper(search.words, pronouns=search.pronouns, senses=search.senses, further=search.further)
    matches = find_contexts(about(dialogues, search.topic), swapper, run.progress)
    if not matches.table.num_rows:
        raise FairnessError(
            f"of {matches.figures['audit_dialogues']:,} dialogues kept for the audit none has a context with a word of "
            f"'{search.dimension}' that no model trained on; give it a larger corpus or commoner words, or leave the "
            "dimension out"
        )
    figures = {**matches.figures, "rules_of_sense": matches.ruled.slice(0, 8).to_pylist()}
    return Result(matches.table, figures, tables={"rules of sense": matches.ruled.slice(0, 20)})


@dataclass(frozen=True)
class Pairing:
    """The words that are exchanged, and how (`PairSettings`)."""

    words: ExchangedWords
    maximum: int
    both_sides: Literal["drop", "swap"]
    pronouns: PronounRule
    articles: Literal["adapt", "keep"]
    senses: Literal["rules", "list"]
    one_word: bool
    largest_share: float
    further: bool


def _pairing(part: DialoguePart, key: Key) -> Pairing:
    how = part.pairing(key["corpus"])
    words = part.dimensions[key["dimension"]].exchanged(senses=how["senses"] == "rules", further=how["further"])
    return Pairing(words, **how)


@asset(
    inputs=_pairing,
    reads={"contexts": contexts},
    code_version="4",
    schema=CONTEXT_PAIRS,
    checks=(checks.not_empty, checks.sides_differ),
)
def context_pairs(pairing: Pairing, contexts: pa.Table, run: Run) -> Result:
    """Parallel contexts: each context and the same with the other group's words (Liu et al. 2020, section 2.3)."""
    how = {name: value for name, value in vars(pairing).items() if name != "words"}
    pairs = make_pairs(contexts, pairing.words, **how, seed=run.profile_seed, progress=run.progress)
    shown = pairs.table.select(["context_a", "context_b"]).slice(0, 5)
    return Result(pairs.table, pairs.figures, tables={"sample": shown})


@dataclass(frozen=True)
class NoEffect:
    """The words that fit into the same places, and the share of the pairs that is changed."""

    words: InterchangeableWords
    share: float


@asset(
    covers=lambda part, key: part.settings.pairs.no_effect > 0,
    inputs=lambda part, key: NoEffect(part.dimensions[key["dimension"]].fitting, part.settings.pairs.no_effect),
    reads={"pairs": context_pairs},
    code_version="2",
    schema=NO_EFFECT_CONTEXTS,
)
def no_effect_contexts(inputs: NoEffect, pairs: pa.Table, run: Run) -> Result:
    """Some of the contexts with changes that should change nothing: another word of the same group, another wording."""
    table = make_no_effect(pairs, inputs.words, share=inputs.share, seed=run.profile_seed)
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table["change"]).to_pylist()}
    return Result(table, counts, tables={"sample": table.select(["change", "context", "changed"]).slice(0, 6)})
