"""Answers in words as outcomes: length, refusal, offence, sentiment, and what kind of help they are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.outcomes.specification import Kind, Outcome, TextMeasure
from fairness_pipeline.corpora.outcomes.trials import Trials
from fairness_pipeline.foundation.inputs import optional
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.measures.dialogue.help import HelpScorer
from fairness_pipeline.measures.dialogue.length import LengthScorer
from fairness_pipeline.measures.dialogue.politeness import PolitenessScorer
from fairness_pipeline.measures.dialogue.refusal import RefusalScorer
from fairness_pipeline.measures.dialogue.sentiment import SentimentScorer
from fairness_pipeline.measures.dialogue.settings import MeasureSettings
from fairness_pipeline.workspace.distinct import Scorer, each_distinct

_KINDS: Mapping[TextMeasure, tuple[str, str, Kind]] = {
    "words": ("length", "words", "count"),
    "refusal": ("refusal", "refusal", "yes_no"),
    "offensive": ("offence", "offensive", "yes_no"),
    "sentiment": ("sentiment", "compound", "number"),
    "steps": ("help", "steps", "count"),
    "level": ("help", "level", "number"),
    "asks_back": ("help", "asks_back", "yes_no"),
    "referral": ("help", "referral", "yes_no"),
    "police": ("help", "police", "yes_no"),
}
"""The scorer, its column, and the kind of outcome, by what is measured."""


@dataclass(frozen=True)
class TextScorers:
    """The scorers of texts, each with the files that it reads."""

    length: LengthScorer
    refusal: RefusalScorer
    offence: PolitenessScorer
    sentiment: SentimentScorer
    help: HelpScorer | None = optional()

    @classmethod
    def of(cls, settings: MeasureSettings, outcomes: Iterable[Outcome]) -> "TextScorers | None":
        """The scorers of a profile's settings that outcomes need; None if no outcome is a text."""
        needed = {_KINDS[name][0] for outcome in outcomes if outcome.kind == "text" for name in outcome.measures}
        if not needed:
            return None
        offence = PolitenessScorer.of(settings)
        sentiment = SentimentScorer(settings.sentiment_threshold)
        return cls(LengthScorer(), RefusalScorer(), offence, sentiment, HelpScorer() if "help" in needed else None)


def expanded(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes, with each text replaced by the outcomes that are measured of it.

    Examples:
        >>> list(expanded({"reply": Outcome(kind="text")}))
        ['reply_words', 'reply_refusal', 'reply_offensive', 'reply_sentiment']
    """
    result: dict[str, Outcome] = {}
    for name, outcome in outcomes.items():
        if outcome.kind == "text":
            result |= {f"{name}_{ending}": Outcome(kind=_KINDS[ending][2]) for ending in outcome.measures}
        else:
            result[name] = outcome
    return result


def scored(
    trials: Trials, outcomes: Mapping[str, Outcome], scorers: TextScorers | None, progress: Progress | None = None
) -> Trials:
    """The trials with the values of outcomes that are texts. Each distinct text is scored once.

    Args:
        trials: The trials.
        outcomes: By name, before they are `expanded`.
        scorers: The scorers of texts; None if no outcome is a text.
        progress: Called with the number of distinct texts scored.
    """
    values = dict(trials.values)
    for name, outcome in outcomes.items():
        if outcome.kind == "text" and scorers is not None:
            column = trials.texts[name]
            missing = np.asarray(column.indices.is_null())
            texts = pc.fill_null(column.cast(pa.string()), "")
            scores: dict[str, pa.Table] = {}
            for ending in outcome.measures:
                scorer, column, _ = _KINDS[ending]
                if scorer not in scores:
                    score: Scorer = getattr(scorers, scorer)
                    scores[scorer] = each_distinct(texts, score, progress=progress, note=scorer)
                measured = np.asarray(scores[scorer][column].cast(pa.float64()))
                values[f"{name}_{ending}"] = np.where(missing, np.nan, measured)
    return replace(trials, values=values)
