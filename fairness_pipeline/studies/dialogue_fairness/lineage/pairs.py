"""The pairs: contexts that name one group, and the same with the other group's words (Liu et al. 2020, 2.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.dialogue.dialogues import prepare
from fairness_pipeline.corpora.dialogue.framed_contexts import read_frames
from fairness_pipeline.foundation import checks
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.guard import read_once
from fairness_pipeline.foundation.inputs import DataFile, optional
from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.lexicons.contexts import CONTEXT_PAIRS, CONTEXTS, find_contexts, make_pairs
from fairness_pipeline.lexicons.dimensions import ExchangedWords, InterchangeableWords
from fairness_pipeline.lexicons.no_effect import NO_EFFECT_CONTEXTS, make_no_effect
from fairness_pipeline.lexicons.swapping import PersonSpans, PronounRule, Swapper
from fairness_pipeline.lineage.assets import Assets, Result, one_of
from fairness_pipeline.lineage.run import Run
from fairness_pipeline.studies.dialogue_fairness.lineage.corpora import DIALOGUES, about, topic_of
from fairness_pipeline.studies.dialogue_fairness.profile import DialoguePart
from fairness_pipeline.workspace.lake import Key

asset = Assets(DialoguePart, stage="pairs", axes=("corpus", "dimension"))


@dataclass(frozen=True)
class Search:
    """The words that contexts are searched for, the topic of the searched dialogues, and the frames and persons that
    written contexts are made of."""

    dimension: str
    words: ExchangedWords
    pronouns: PronounRule
    senses: bool
    further: bool
    topic: str | None
    frames: DataFile | None = optional()
    replace: Mapping[str, str] | None = optional()

    def spans(self) -> PersonSpans | None:
        """The spans of the persons in the contexts; None for contexts without frames."""
        cleaned = partial(prepare, replace=self.replace or {})
        if self.frames is None:
            return None
        return read_once(self.frames.name, read_frames).spans(self.dimension, cleaned)


def _search(part: DialoguePart, key: Key) -> Search:
    settings, name = part.pairing(key["corpus"]), key["dimension"]
    senses, further = settings["senses"] == "rules", settings["further"]
    words = part.dimensions[name].exchanged(senses=senses, further=further, searched=True)
    corpus = part.corpora[key["corpus"]].specification
    frames = DataFile.of(corpus.contexts.file) if corpus.contexts else None
    topic = topic_of(part, key["corpus"], name)
    return Search(name, words, settings["pronouns"], senses, further, topic, frames, corpus.replace if frames else None)


@asset(
    inputs=_search,
    reads={"dialogues": one_of(*DIALOGUES)},
    code_version="3",
    schema=CONTEXTS,
)
def contexts(search: Search, dialogues: pa.Table, run: Run) -> Result:
    """Contexts of the audit split in which a word of the dimension means the group, and that no model trained on."""
    swapper = Swapper(search.words, pronouns=search.pronouns, senses=search.senses, further=search.further)
    matches = find_contexts(about(dialogues, search.topic), swapper, run.progress, search.spans())
    if not matches.table.num_rows:
        count = f"of {matches.figures['audit_dialogues']:,} dialogues kept for the audit none"
        if search.frames and matches.ruled.num_rows:
            raise FairnessError(
                f"{search.frames.name}: {count} has a person of '{search.dimension}' whose word is exchanged: "
                f"{'; '.join(describe_dropped(matches.ruled.to_pylist()))} (docs/pairs.md)"
            )
        raise FairnessError(
            f"{count} has a context with a word of '{search.dimension}' that no model trained on; give it a larger "
            "corpus or commoner words, or leave the dimension out"
        )
    ruled = matches.ruled
    dropped = describe_dropped(ruled.to_pylist()) if search.frames else []
    if dropped:  # rows that give no pair first
        ruled = ruled.take(pc.sort_indices(pc.equal(ruled["outcome"], "stays")))
    figures = {**matches.figures, "rules_of_sense": ruled.slice(0, 8 + len(dropped)).to_pylist()}
    dropped_figures = {"dropped": dropped} if dropped else {}
    return Result(
        matches.table, {**figures, **dropped_figures}, tables={"rules of sense": ruled.slice(0, 20 + len(dropped))}
    )


def describe_dropped(ruled: Sequence[Mapping[str, Any]]) -> list[str]:
    """The persons and frames that give no pair, with the reason, from what the rules did (rows of `RULED`)."""
    reasons = {
        "no counterpart": "the person {} has no counterpart by the rules of sense",
        "left out": "{} beside the person may tell the group",
    }
    return [
        f"{reasons[row['outcome']].format(repr(row['word']))} ({number_of(row['contexts'], 'text')}, for example "
        f"{row['example']!r})"
        for row in ruled
        if row["outcome"] in reasons
    ]


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
    settings = part.pairing(key["corpus"])
    words = part.dimensions[key["dimension"]].exchanged(
        senses=settings["senses"] == "rules", further=settings["further"]
    )
    return Pairing(words, **settings)


@asset(
    inputs=_pairing,
    reads={"contexts": contexts},
    code_version="4",
    schema=CONTEXT_PAIRS,
    checks=(checks.not_empty, checks.sides_differ),
)
def context_pairs(pairing: Pairing, contexts: pa.Table, run: Run) -> Result:
    """Parallel contexts: each context and the same with the other group's words (Liu et al. 2020, section 2.3)."""
    settings = {name: value for name, value in vars(pairing).items() if name != "words"}
    pairs = make_pairs(contexts, pairing.words, **settings, seed=run.profile_seed, progress=run.progress)
    excerpt = pairs.table.select(["context_a", "context_b"]).slice(0, 5)
    return Result(pairs.table, pairs.figures, tables={"sample": excerpt})


@dataclass(frozen=True)
class NoEffect:
    """The interchangeable words, and the share of the pairs that is changed."""

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
