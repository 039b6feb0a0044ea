"""Answers in words as outcomes: how long they are, whether they refuse or offend, and their sentiment."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.outcomes.specification import Kind, Outcome
from fairness_pipeline.corpora.outcomes.trials import Trials
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.measures.dialogue.length import LengthScorer
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.measures.dialogue.refusal import RefusalScorer
from fairness_pipeline.measures.dialogue.sentiment import SentimentScorer
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.workspace.distinct import Scorer, each_distinct

_KINDS: Mapping[str, tuple[str, Kind]] = {
    "words": ("words", "count"),
    "refusal": ("refusal", "yes_no"),
    "offensive": ("offensive", "yes_no"),
    "sentiment": ("compound", "number"),
}
"""By the ending of the outcome's name the scorer's column, and the kind."""


@dataclass(frozen=True)
class TextScorers:
    """The scorers of texts, each with the files that it reads."""

    words: LengthScorer
    refusal: RefusalScorer
    offensive: PolitenessScorer
    sentiment: SentimentScorer

    @classmethod
    def of(cls, settings: MeasureSettings) -> "TextScorers":
        """Those of a profile's settings."""
        offensive = PolitenessScorer.of(settings)
        return cls(LengthScorer(), RefusalScorer(), offensive, SentimentScorer(settings.sentiment_threshold))

    def of_ending(self, ending: str) -> Scorer:
        """The scorer of one kind of outcome."""
        scorer: Scorer = getattr(self, ending)
        return scorer


def expanded(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes, those that are texts replaced by what is measured of them.

    Examples:
        >>> list(expanded({"reply": Outcome(kind="text")}))
        ['reply_words', 'reply_refusal', 'reply_offensive', 'reply_sentiment']
    """
    found: dict[str, Outcome] = {}
    for name, outcome in outcomes.items():
        if outcome.kind == "text":
            found |= {f"{name}_{ending}": Outcome(kind=kind) for ending, (_, kind) in _KINDS.items()}
        else:
            found[name] = outcome
    return found


def scored(
    trials: Trials, outcomes: Mapping[str, Outcome], scorers: TextScorers | None, progress: Progress | None = None
) -> Trials:
    """The trials with the values of outcomes that are texts. Each distinct text is scored once.

    Args:
        trials: The trials.
        outcomes: By name, before they are `expanded`.
        scorers: What scores texts; None if no outcome is one.
        progress: Called with the number of distinct texts scored.
    """
    values = dict(trials.values)
    for name, outcome in outcomes.items():
        if outcome.kind == "text" and scorers is not None:
            column = trials.texts[name]
            missing = np.asarray(column.indices.is_null())
            texts = pc.fill_null(column.cast(pa.string()), "")
            for ending, (wanted, _) in _KINDS.items():
                score = partial(each_distinct, texts, scorers.of_ending(ending), progress=progress, note=ending)
                own = np.asarray(score()[wanted].cast(pa.float64()))
                values[f"{name}_{ending}"] = np.where(missing, np.nan, own)
    return replace(trials, values=values)
