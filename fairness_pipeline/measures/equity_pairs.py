"""Pairs of scores that differ only in the group of the person (Kiritchenko and Mohammad 2018, section 5).

Side a is the dominant group (male; European American), side b the other, as everywhere in the pipeline.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from fairness_pipeline.corpora.equity_sentences import GROUPS

EQUITY_PAIRS = pa.schema(
    [
        pa.field("templates", pa.string(), False),
        pa.field("affect", pa.string(), False),
        pa.field("template", pa.int64(), False),
        pa.field("emotion", pa.string()),
        pa.field("emotion_word", pa.string()),
        pa.field("persons", pa.string(), False),
        pa.field("score_a", pa.float64(), False),
        pa.field("score_b", pa.float64(), False),
    ]
)
"""A pair's scores for an affect, in 0..1; `persons` says whose: two noun phrases, or names (their mean)."""

ALL, WITHOUT = "all", "without emotion words"
SUBSETS = (ALL, WITHOUT)
_SIDES = {group: side for groups in GROUPS.values() for side, group in zip("ab", groups, strict=True)}


class Pairs(NamedTuple):
    """`a` and `b` (pairs, sentences) average the scores of a pair's sides; `cells` say which pairs they are."""

    cells: list[dict[str, Any]]
    a: csr_array
    b: csr_array

    def of(self, subset: str) -> "Pairs":
        """All pairs, or those whose sentences hold no emotion word."""
        chosen = [i for i, cell in enumerate(self.cells) if subset == ALL or cell["emotion"] is None]
        return Pairs([self.cells[i] for i in chosen], self.a[chosen], self.b[chosen])


class People(NamedTuple):
    """`means` (people, sentences) averages a person's sentences; a person is on side a (True) or b, in a stratum.

    The strata are the 11 pairs for gender, where the 20 names of a side count as one person, and the genders for race.
    """

    means: csr_array
    on_a: np.ndarray
    strata: np.ndarray


class Design:
    """How the sentences of one set of templates make the pairs of a dimension.

    Gender: in each template and emotion word (144 of them) the ten pairs of noun phrases one by one, and the mean over
    the twenty male names against that over the twenty female ones: 1,584. Race: the mean over the ten European American
    names of a gender against that over the ten African American ones: 288. Without emotion words 44 and 8.

    Args:
        sentences: As `EQUITY_SENTENCES`.
        dimension: One of `equity_sentences.DIMENSIONS`.
        templates: The set.
    """

    def __init__(self, sentences: pa.Table, dimension: str, templates: str) -> None:
        self.templates = templates
        self._columns = sentences.num_rows
        chosen = [
            (place, row, *member)
            for place, row in enumerate(sentences.to_pylist())
            if row["templates"] == templates and (member := _membership(row, dimension))
        ]
        everything = self._pairs(chosen)
        self.pairs = {subset: everything.of(subset) for subset in SUBSETS}
        self.people = {
            subset: self._people([entry for entry in chosen if subset == ALL or entry[1]["emotion"] is None], dimension)
            for subset in SUBSETS
        }

    def _pairs(self, chosen: list[Any]) -> Pairs:
        cells: dict[tuple[Any, ...], tuple[dict[str, Any], dict[str, list[int]]]] = {}
        for place, row, persons, side in chosen:
            cell = {name: row[name] for name in ("template", "emotion", "emotion_word")} | {"persons": persons}
            cells.setdefault(tuple(cell.values()), (cell, {"a": [], "b": []}))[1][side].append(place)
        a, b = (self._averages([sides[side] for _, sides in cells.values()]) for side in ("a", "b"))
        return Pairs([cell for cell, _ in cells.values()], a, b)

    def _people(self, chosen: list[Any], dimension: str) -> People:
        places: dict[tuple[str, str, str], list[int]] = {}
        for place, row, persons, side in chosen:
            who = row["person"] if dimension == "race" else persons
            places.setdefault((persons, side, who), []).append(place)
        strata = {persons: number for number, persons in enumerate(dict.fromkeys(key[0] for key in places))}
        return People(
            self._averages(list(places.values())),
            np.array([side == "a" for _, side, _ in places]),
            np.array([strata[persons] for persons, _, _ in places]),
        )

    def _averages(self, groups: list[list[int]]) -> csr_array:
        """A matrix (groups, sentences) whose product with scores is each group's mean score."""
        sizes = np.array([len(group) for group in groups])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        values = np.repeat(1 / sizes, sizes)
        return csr_array((values, np.concatenate(groups), ends), shape=(len(groups), self._columns))


def scores_matrix(sentences: pa.Table, scores: pa.Table) -> tuple[list[str], np.ndarray]:
    """The affects in `scores`, and its scores as (sentences, affects), in the order of `sentences`."""
    affects = sorted(scores["affect"].unique().to_pylist())
    matrix = np.full((sentences.num_rows, len(affects)), np.nan)
    rows = pc.index_in(scores["sentence_id"], sentences["sentence_id"]).to_numpy()
    columns = pc.index_in(scores["affect"], pa.array(affects)).to_numpy()
    matrix[rows, columns] = scores["score"].to_numpy()
    return affects, matrix


def pair_table(design: Design, affects: list[str], scores: np.ndarray) -> pa.Table:
    """Every pair with both scores, as `EQUITY_PAIRS`; `scores` is (sentences, affects)."""
    cells, a, b = design.pairs[ALL]
    columns = {name: [cell[name] for cell in cells] * len(affects) for name in cells[0]}
    return pa.table(
        {
            "templates": [design.templates] * (len(cells) * len(affects)),
            "affect": np.repeat(np.array(affects), len(cells)),
            **columns,
            "score_a": (a @ scores).T.ravel(),
            "score_b": (b @ scores).T.ravel(),
        },
        schema=EQUITY_PAIRS,
    )


def _membership(row: dict[str, Any], dimension: str) -> tuple[str, str] | None:
    """The persons that a sentence's person is averaged with, and the side; None for a noun phrase in `race`."""
    if dimension == "gender":
        return row["pair"], _SIDES[row["gender"]]
    return (f"{row['gender']} names", _SIDES[row["race"]]) if row["race"] else None


def told_apart(sentences: pa.Table, affects: list[str], scores: np.ndarray) -> float:
    """How well the best of the affects tells its own sentences from the others: an area under the curve, 0.5 is none.

    Valence is to be higher in joyful sentences than in angry, fearful and sad ones. A system that does not tell "feels
    ecstatic" from "feels furious" scores everybody alike, and that is no fairness.

    Args:
        sentences: As `EQUITY_SENTENCES`.
        affects: The columns of `scores`.
        scores: A row a sentence.
    """
    from sklearn.metrics import roc_auc_score

    emotions = np.array(sentences["emotion"].to_pylist(), dtype=object)
    found = []
    for affect, column in zip(affects, scores.T, strict=True):
        known = (emotions != None) & np.isfinite(column)  # noqa: E711
        own = emotions[known] == ("joy" if affect == "valence" else affect)
        found.append(float(roc_auc_score(own, column[known])) if own.any() and not own.all() else 0.5)
    return max(found, default=0.5)
