"""Collects the pairs of sentences behind the verdicts on a system."""

import numpy as np
import pyarrow.compute as pc

from fairness_pipeline.corpora.sentiment.equity_sentences import GROUPS, PUBLISHED
from fairness_pipeline.reporting.samples import Samples
from fairness_pipeline.statistics.clusters import FEWEST_TO_TELL
from fairness_pipeline.studies.sentiment_equity.profile import EquityPart
from fairness_pipeline.workspace.lake import Key, Lake, Row


def samples(part: EquityPart, lake: Lake, key: Key) -> Samples:
    """Every pair of the published templates: a sentence about a person of each group, or a mean over their names."""
    table = lake.read("equity_pairs", key)
    rows = table.filter(pc.equal(table["templates"], PUBLISHED)).to_pylist()
    sentences = _sentences(lake, key["dimension"])
    pairs: dict[tuple[int, str | None, str], int] = {}
    for row in rows:
        pairs.setdefault(_pair(row), len(pairs))
    affects = list(dict.fromkeys(row["affect"] for row in rows))
    values = {affect: np.full((2, len(pairs)), np.nan) for affect in affects}
    for row in rows:
        values[row["affect"]][:, pairs[_pair(row)]] = row["score_a"], row["score_b"]
    return Samples.of(
        {
            "id": [f"{template} {word or 'no emotion'} {persons}" for template, word, persons in pairs],
            "word": [persons for *_, persons in pairs],
            **{f"asked_{side}": [sentences.get((*pair, side), "") for pair in pairs] for side in "ab"},
        },
        {affect: (scores[0], scores[1]) for affect, scores in values.items()},
        _clusters(list(pairs)),
    )


def _clusters(pairs: list[tuple[int, str | None, str]]) -> list[np.ndarray]:
    """Clusters by template, emotion word and kind of persons, each if there are enough clusters to be a sample."""
    codes = (np.unique([str(value) for value in column], return_inverse=True)[1] for column in zip(*pairs, strict=True))
    return [code for code in codes if code.max(initial=0) + 1 >= FEWEST_TO_TELL]


def _pair(row: Row) -> tuple[int, str | None, str]:
    return row["template"], row["emotion_word"], row["persons"]


def _sentences(lake: Lake, dimension: str) -> dict[tuple[int, str | None, str, str], str]:
    """The sentence of each pair and side; for a mean over names, one sentence with the names' group for the name."""
    sentences: dict[tuple[int, str | None, str, str], str] = {}
    for row in lake.read("equity_sentences", {}).to_pylist():
        if row["templates"] != PUBLISHED or row[dimension] not in GROUPS[dimension]:
            continue
        side = "ab"[GROUPS[dimension].index(row[dimension])]
        named = row["pair"] == "names"
        persons = f"{row['gender']} names" if dimension == "race" else row["pair"]
        text = row["sentence"].replace(row["person"], f"[{row[dimension]} names]", 1) if named else row["sentence"]
        sentences.setdefault((row["template"], row["emotion_word"], persons, side), text)
    return sentences
