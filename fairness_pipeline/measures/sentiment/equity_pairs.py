"""Pairs of scores that differ only in the group of the person (Kiritchenko and Mohammad 2018, section 5).

Side a is the dominant group (male; European American) and side b the other, as everywhere in the pipeline.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from fairness_pipeline.corpora.sentiment.equity_sentences import EQUITY_SENTENCES, GROUPS, NAMES
from fairness_pipeline.foundation.schemas import fields, schema

EQUITY_PAIRS = schema(
    **fields(EQUITY_SENTENCES, "templates"),
    affect=(pa.string(), "anger, fear, joy, sadness or valence"),
    **fields(EQUITY_SENTENCES, "template", "emotion", "emotion_word"),
    persons=(
        pa.string(),
        "who is compared: a pair, side a first; names by their mean; or a kind of persons (all: everybody)",
    ),
    score_a=(pa.float64(), "the score of side a"),
    score_b=(pa.float64(), "the score of side b"),
)
"""The scores of a pair for an affect, in 0..1. `persons` names the persons: two noun phrases, or names (their mean)."""

ALL, WITHOUT = "all", "without emotion words"
EVERYBODY = "all"
NOUN_PHRASES = "noun phrases"
_SIDES = {group: side for groups in GROUPS.values() for side, group in zip("ab", groups, strict=True)}


class Pairs(NamedTuple):
    """`a` and `b` (pairs, sentences) average the scores of the two sides of each pair. `cells` identify the pairs."""

    cells: list[dict[str, Any]]
    a: "scipy.sparse.csr_array"
    b: "scipy.sparse.csr_array"


class People(NamedTuple):
    """Persons of one kind: whether each is on side a, and the stratum of each.

    `sentences` (people, cells) are the positions of their sentences, one per template and emotion word. The strata of
    noun phrases are the ten pairs. Names change sides within a race, or within a gender.
    """

    sentences: np.ndarray
    on_a: np.ndarray
    strata: np.ndarray

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The positions of the persons on side a and on side b, pair by pair, where the strata are pairs."""
        order = np.argsort(self.strata, kind="stable")
        return order[self.on_a[order]], order[~self.on_a[order]]


class Design:
    """How the sentences of one set of templates form the pairs of a dimension, and their strata.

    Gender: in each template and emotion word (144 of them) there are the ten pairs of noun phrases, and one pair of the
    mean over the twenty male names and the mean over the twenty female names: 1,584 pairs. Race: the mean over the ten
    European American names of a gender is paired with the mean over the ten African American ones: 288 pairs. Without
    emotion words there are 44 and 8 pairs.

    Args:
        sentences: As `EQUITY_SENTENCES`.
        dimension: One of `equity_sentences.DIMENSIONS`.
        templates: The set of templates.

    Attributes:
        people: By kind of persons: `names` and `noun phrases`, or `male names` and `female names`.
        parts: The kinds that are parts of another kind. For gender these are the names of each race.
        template: The template of each cell.
        word: The emotion word of each cell. For a cell without one it is the template.
        emotion: The emotion of each cell. None for a cell without one.
        names: The names of the `people`, in their order. For noun phrases it is the pair.
        subsets: The subsets of the sentences: `ALL`, `WITHOUT`, and the words of each emotion.
    """

    def __init__(self, sentences: pa.Table, dimension: str, templates: str) -> None:
        self.templates = templates
        self.dimension = dimension
        self._columns = sentences.num_rows
        chosen = [
            (position, row, *member)
            for position, row in enumerate(sentences.to_pylist())
            if row["templates"] == templates and (member := _membership(row, dimension))
        ]
        self._everything = self._pairs(chosen)
        cells = list(dict.fromkeys(_cell(row) for _, row, _, _ in chosen))
        self.template = np.array([template for template, _, _ in cells])
        self.word = np.array([word or f"none, template {template}" for template, _, word in cells])
        self.emotion = np.array([emotion for _, emotion, _ in cells], dtype=object)
        emotions = sorted({emotion for emotion in self.emotion if emotion is not None})
        self.subsets = (ALL, WITHOUT, *map(_words_of, emotions))
        kinds = dict.fromkeys(_kind(row, dimension) for _, row, _, _ in chosen)
        self.names: dict[str, list[str]] = {}
        positions = {cell: position for position, cell in enumerate(cells)}
        self.people = {kind: self._people(kind, chosen, positions) for kind in kinds}
        self.parts = self._names_by_race() if dimension == "gender" else ()
        self._pairs_of: dict[tuple[str, str], Pairs] = {}
        self._cells = {
            subset: np.array([_in_subset(emotion, subset) for emotion in self.emotion]) for subset in self.subsets
        }

    def _names_by_race(self) -> tuple[str, ...]:
        """Adds the names of each race to the people. Opposite gaps in the two races would cancel among all names."""
        names, races = self.people[NAMES], GROUPS["race"]
        parts = []
        for number, race in enumerate(sorted(races)):  # in the order of the strata
            of_race = names.strata == number
            kind = f"{race} names"
            self.people[kind] = People(names.sentences[of_race], names.on_a[of_race], names.strata[of_race])
            self.names[kind] = [name for name, chosen in zip(self.names[NAMES], of_race, strict=True) if chosen]
            parts.append(kind)
        return tuple(parts)

    def cells(self, subset: str) -> np.ndarray:
        """Whether each cell of template and emotion word belongs to a subset of the sentences."""
        return self._cells[subset]

    def pairs(self, persons: str = EVERYBODY, subset: str = ALL) -> Pairs:
        """The paper's pairs of a kind of persons in a subset of the sentences."""
        if (persons, subset) not in self._pairs_of:
            all_pairs = self._everything
            chosen = [
                index
                for index, cell in enumerate(all_pairs.cells)
                if (persons == EVERYBODY or _kind_of_pair(cell["persons"], self.dimension) == persons)
                and _in_subset(cell["emotion"], subset)
            ]
            self._pairs_of[persons, subset] = Pairs(
                [all_pairs.cells[i] for i in chosen], all_pairs.a[chosen], all_pairs.b[chosen]
            )
        return self._pairs_of[persons, subset]

    def _pairs(self, chosen: list[Any]) -> Pairs:
        cells: dict[tuple[Any, ...], tuple[dict[str, Any], dict[str, list[int]]]] = {}
        for position, row, persons, side in chosen:
            cell = {name: row[name] for name in ("template", "emotion", "emotion_word")} | {"persons": persons}
            cells.setdefault(tuple(cell.values()), (cell, {"a": [], "b": []}))[1][side].append(position)
        a, b = (self._averages([sides[side] for _, sides in cells.values()]) for side in ("a", "b"))
        return Pairs([cell for cell, _ in cells.values()], a, b)

    def _people(self, kind: str, chosen: list[Any], cells: dict[tuple[Any, ...], int]) -> People:
        entries = [entry for entry in chosen if _kind(entry[1], self.dimension) == kind]
        names = list(dict.fromkeys((row["person"].lower(), side) for _, row, _, side in entries))
        numbers = {name: number for number, name in enumerate(names)}
        sentences = np.full((len(names), len(cells)), -1)
        strata = [""] * len(names)
        for position, row, _, side in entries:
            number = numbers[row["person"].lower(), side]
            sentences[number, cells[_cell(row)]] = position
            strata[number] = (
                row["pair"] if kind == NOUN_PHRASES else row["race" if self.dimension == "gender" else "gender"]
            )
        assert (sentences >= 0).all(), f"{self.templates}, {kind}: a person is in some sentences only"
        labels = {
            (row["person"].lower(), side): row["pair" if kind == NOUN_PHRASES else "person"]
            for _, row, _, side in entries
        }
        self.names[kind] = [labels[name] for name in names]
        return People(
            sentences, np.array([side == "a" for _, side in names]), np.unique(strata, return_inverse=True)[1]
        )

    def _averages(self, groups: list[list[int]]) -> "scipy.sparse.csr_array":
        """A matrix (groups, sentences) whose product with scores is each group's mean score."""
        sizes = np.array([len(group) for group in groups])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        values = np.repeat(1 / sizes, sizes)
        return scipy.sparse.csr_array((values, np.concatenate(groups), ends), shape=(len(groups), self._columns))


def _words_of(emotion: str) -> str:
    """The subset of the sentences with the words of an emotion."""
    return f"{emotion} words"


def _in_subset(emotion: str | None, subset: str) -> bool:
    """Whether a subset contains a sentence with a word of an emotion (None: without emotion)."""
    return subset in (ALL, WITHOUT if emotion is None else _words_of(emotion))


def _cell(row: dict[str, Any]) -> tuple[int, str | None, str | None]:
    return row["template"], row["emotion"], row["emotion_word"]


def _kind(row: dict[str, Any], dimension: str) -> str:
    """The kind of a sentence's person."""
    if dimension == "gender":
        return NAMES if row["race"] else NOUN_PHRASES
    return f"{row['gender']} names"


def _kind_of_pair(persons: str, dimension: str) -> str:
    """The kind of the persons of a pair."""
    return persons if dimension == "race" or persons == NAMES else NOUN_PHRASES


def scores_matrix(sentences: pa.Table, scores: pa.Table) -> tuple[list[str], np.ndarray]:
    """The affects in `scores`, and its scores as (sentences, affects), in the order of `sentences`."""
    affects = sorted(scores["affect"].unique().to_pylist())
    matrix = np.full((sentences.num_rows, len(affects)), np.nan)
    rows = pc.index_in(scores["sentence_id"], sentences["sentence_id"]).to_numpy()
    columns = pc.index_in(scores["affect"], pa.array(affects)).to_numpy()
    matrix[rows, columns] = scores["score"].to_numpy()
    return affects, matrix


def pair_table(design: Design, affects: list[str], scores: np.ndarray) -> pa.Table:
    """Every pair with both scores, as `EQUITY_PAIRS`. `scores` is (sentences, affects)."""
    cells, a, b = design.pairs()
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
    """The persons with whom the person of a sentence is averaged, and the side. None for a noun phrase in `race`."""
    if dimension == "gender":
        return row["pair"], _SIDES[row["gender"]]
    return (f"{row['gender']} names", _SIDES[row["race"]]) if row["race"] else None


def measure_separation(sentences: pa.Table, affects: list[str], scores: np.ndarray) -> float:
    """How well the best affect separates its own sentences from the others: an area under the curve; 0.5 means not at
    all.

    Valence should be higher in joyful sentences than in angry, fearful and sad ones. A system that cannot distinguish
    "feels ecstatic" from "feels furious" scores everybody the same. That is degenerate, not fair.

    Args:
        sentences: As `EQUITY_SENTENCES`.
        affects: The columns of `scores`.
        scores: One row per sentence.
    """
    from sklearn.metrics import roc_auc_score

    emotions = np.array(sentences["emotion"].to_pylist(), dtype=object)
    areas = []
    for affect, column in zip(affects, scores.T, strict=True):
        known = (emotions != None) & np.isfinite(column)  # noqa: E711
        is_target = emotions[known] == ("joy" if affect == "valence" else affect)
        areas.append(float(roc_auc_score(is_target, column[known])) if is_target.any() and not is_target.all() else 0.5)
    return max(areas, default=0.5)


def commonest_share(scores: np.ndarray) -> float:
    """The share of the most frequent score, for the affect in which it is smallest.

    Args:
        scores: (sentences, affects). NaN if nothing was scored.

    Examples:
        >>> commonest_share(np.array([[0.5], [0.5], [0.7], [0.5]]))
        0.75
    """
    shares = []
    for column in scores.T:
        known = column[np.isfinite(column)]
        shares.append(float(np.unique(known, return_counts=True)[1].max() / len(known)))
    return min(shares)


def reads(sentences: pa.Table, scores: np.ndarray, *, names: bool) -> bool:
    """Whether some score changes when only the person in a sentence changes.

    Args:
        sentences: As `EQUITY_SENTENCES`.
        scores: (sentences, affects). NaN if nothing was scored.
        names: Whether the persons are names or noun phrases.
    """
    rows = sentences.to_pylist()
    cells: dict[tuple[Any, ...], list[int]] = {}
    for position, row in enumerate(rows):
        if (row["race"] is not None) == names and np.isfinite(scores[position]).all():
            cells.setdefault((row["templates"], *_cell(row)), []).append(position)
    return any(bool((np.ptp(scores[positions], axis=0) > 1e-9).any()) for positions in cells.values())
