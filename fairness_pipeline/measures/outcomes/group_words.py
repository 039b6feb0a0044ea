"""Group words: can one tell from an answer, with the group's words masked, which group was asked about?

It looks for any difference in words, as `distinguishable` does for two sides, for groups of any number and against the
unmarked arm. Whole bundles of spans change groups under the null hypothesis (`statistics/many_sample.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln

from fairness_pipeline.corpora.outcomes.trials import Codes, Trials, numbered
from fairness_pipeline.foundation.schemas import fields, schema
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE
from fairness_pipeline.measures.dialogue.text_features import commonest_names, commonest_sentence, features_of
from fairness_pipeline.measures.outcomes.group_effects import FEWEST_NAMES
from fairness_pipeline.measures.outcomes.rows import (
    CROSS,
    OMNIBUS,
    OUTCOME_SIGNIFICANCE,
    SAID,
    SAID_OR_NOT,
    Judged,
    measure_of,
)
from fairness_pipeline.statistics.comparison import Comparison, bare_row
from fairness_pipeline.statistics.many_sample import GroupsTold, Texts, tell_groups
from fairness_pipeline.statistics.verdicts import too_few

_LEVEL = 0.05
_TOLD, _LOOKED_AT = 8, 40
"""Words that are named at most, and those among which they are chosen."""
_OVERLAP = 0.8
"""What stands in answers most of which have something named before is left out."""

GROUP_WORDS = schema(
    **fields(OUTCOME_SIGNIFICANCE, "attribute", "contrast"),
    p=(pa.float64(), "that bundles of spans may change groups: the answers cannot be told apart"),
    answers=(pa.int64(), "how many answers"),
    spans=(pa.int64(), "bundles of spans, or matched texts, of the group with the fewest"),
    smallest_p=(pa.float64(), "the smallest p that exchanging so few bundles can show"),
    group=(pa.string(), "the group whose answers have the first of the words more often, or less"),
    text=(pa.string(), "a word, or two in a row; empty where none carries the difference alone"),
    share=(pa.float64(), "the share of the group's answers with it, in percent"),
    share_of_others=(pa.float64(), "the same of all other answers"),
    p_word=(pa.float64(), "adjusted over all words and groups"),
    sentence=(pa.string(), "the commonest sentence with it"),
)
"""A row for each word that carries a difference, the strongest first; one row at least for each column."""


class _Told(NamedTuple):
    group: str
    text: str
    share: float
    share_of_others: float
    p_word: float
    sentence: str


def group_words(trials: Trials, outcome: str, unmarked: str | None, seed: int) -> pa.Table:
    """A table of `GROUP_WORDS`: by group column, and crossed; and whether anything is said at all.

    Args:
        trials: Of one condition, with names or clusters.
        outcome: The outcome that is a text, with the groups' words masked.
        unmarked: The level of group columns at which nothing is said.
        seed: The seed of the draws.
    """
    texts = trials.texts[outcome]
    words = pc.fill_null(texts.cast(pa.string()), "").dictionary_encode()
    present, _ = features_of(words.dictionary, np.empty(0, dtype=np.int64))
    present = present[words.indices.to_numpy()]
    rows: list[dict[str, Any]] = []
    for attribute, contrast, codes in _columns(trials, unmarked):
        known = codes.code >= 0
        others = [name for name in trials.groups if contrast == OMNIBUS and name not in attribute.split(CROSS)]
        told, spans, smallest_p = _tell(trials, codes, others, present, known, seed)
        own: Mapping[str, Any] = {
            "attribute": attribute, "contrast": contrast, "p": told.p, "answers": int(known.sum()), "spans": spans,
            "smallest_p": smallest_p,
        }  # fmt: skip
        named = list(_named(told, codes, words.dictionary, words.indices.to_numpy(), present, known))
        rows += [{**own, **word._asdict()} for word in named]
    return pa.Table.from_pylist(rows, schema=GROUP_WORDS)


def _columns(trials: Trials, unmarked: str | None) -> Iterator[tuple[str, str, Codes]]:
    """The groups to be told apart: each column without what is unmarked, all columns crossed, and said or not."""
    said = {name: codes.without(unmarked) for name, codes in trials.groups.items()}
    yield from ((name, OMNIBUS, codes) for name, codes in said.items())
    if len(said) > 1:
        yield CROSS.join(said), OMNIBUS, reduce(Codes.crossed, said.values()).used()
    for name, codes in trials.groups.items():
        if unmarked is not None and unmarked in codes.names:
            yield name, SAID, codes.said_or_not(name, unmarked)
            return  # of crossed columns all are said, or none


def _tell(
    trials: Trials, codes: Codes, others: Sequence[str], present: sparse.csr_array, known: np.ndarray, seed: int
) -> tuple[GroupsTold, int, float]:
    """The test, how many bundles of spans the group with the fewest has, and the smallest p that they can show. Bundles
    of one place, or matched texts that mean the same, change groups."""
    assert trials.item is not None
    item = np.unique(trials.item.code[known], return_inverse=True)[1]
    place = (trials.cluster.code[known] if trials.cluster else item) if trials.name is None else _bundles(trials, known)
    arms = numbered(*trials.groups.values())[known]
    beside = [trials.groups[name].code[known] for name in others]  # what else is said stays in its place
    columns = np.stack([place, arms, codes.code[known], *beside])
    units, bundle = np.unique(columns, axis=1, return_inverse=True)
    stratum = np.unique(units[[0, *range(3, len(units))]], axis=1, return_inverse=True)[1].ravel()
    told = tell_groups(Texts(present[known], item, bundle.ravel(), units[2], stratum), seed=seed)
    fewest = int(np.bincount(units[2], minlength=len(codes.names)).min())
    if fewest < FEWEST_NAMES:
        told = told._replace(p=1.0, p_features=np.ones_like(told.p_features))
    return told, fewest, _smallest_p(units[2], stratum)


def _smallest_p(group: np.ndarray, stratum: np.ndarray) -> float:
    """One in so many ways to exchange the groups of bundles within strata; two groups that change all their places are
    told apart by as much."""
    log_ways = 0.0
    for own in (group[stratum == place] for place in np.unique(stratum)):
        log_ways += gammaln(len(own) + 1) - gammaln(np.bincount(own) + 1).sum()
    return float(min(1.0, (2 if len(np.unique(group)) == 2 else 1) * np.exp(-log_ways)))


def _bundles(trials: Trials, known: np.ndarray) -> np.ndarray:
    """(known,) the place of each text's span: spans are of one place if they are asked in the same items."""
    spans, items = trials.name, trials.item
    assert spans is not None and items is not None
    count = len(spans.names)
    edges = (np.ones(int(known.sum())), (spans.code[known], count + items.code[known]))
    graph = sparse.coo_array(edges, (count + len(items.names),) * 2)
    return np.asarray(connected_components(graph, directed=False)[1][spans.code[known]])


def _named(
    told: GroupsTold,
    codes: Codes,
    texts: pa.StringArray,
    index: np.ndarray,
    present: sparse.csr_array,
    known: np.ndarray,
) -> Iterator[_Told]:
    """The words that carry the difference, the strongest first; one without words where there is none."""
    strength = np.abs(told.statistics)
    best = strength.argmax(axis=0) if len(told.kept) else np.empty(0, dtype=np.int64)
    p = told.p_features[best, np.arange(len(best))]
    strongest = strength.max(axis=0) if len(best) else np.empty(0)
    order = np.lexsort([-strongest, p])
    places = [place for place in order.tolist() if told.p < _LEVEL and p[place] <= _LEVEL][:_LOOKED_AT]
    _, holders = features_of(texts, told.kept[places]) if places else (None, {})
    names = commonest_names(told.kept[places], {key: len(own) for key, own in holders.items()})
    seen: list[np.ndarray] = []
    named = sorted(zip(places, (name for _, name in names), strict=True), key=_of_content(p, strongest))
    for place, name in named:
        has = present[:, [told.kept[place]]].toarray().ravel() > 0
        if len(seen) == _TOLD or any((has & other).sum() >= _OVERLAP * has.sum() for other in seen):
            continue
        seen.append(has)
        inside = codes.code == best[place]
        side = inside if told.statistics[best[place], place] > 0 else known & ~inside
        sentence = commonest_sentence((texts[index[row]].as_py() for row in np.flatnonzero(has & side)), name)
        yield _Told(codes.names[best[place]], name, *_shares(has, inside, known), float(p[place]), sentence)
    if not seen and len(order):  # the word that comes nearest
        nearest = int(order[0])
        has = present[:, [told.kept[nearest]]].toarray().ravel() > 0
        shares = _shares(has, codes.code == best[nearest], known)
        yield _Told(codes.names[best[nearest]], "", *shares, float(p[nearest]), "")
    elif not seen:
        yield _Told(codes.names[0], "", 0.0, 0.0, 1.0, "")


def _shares(has: np.ndarray, inside: np.ndarray, known: np.ndarray) -> tuple[float, float]:
    """The shares of a group's texts, and of all others, that have something, in percent."""
    of_group, of_others = (100 * float(has[rows].mean()) if rows.any() else 0.0 for rows in (inside, known & ~inside))
    return of_group, of_others


def _of_content(p: np.ndarray, strongest: np.ndarray) -> Callable[[tuple[int, str]], tuple[float, float, int]]:
    """A sort key of features with their names: the strongest first; of those alike the one with the longest word."""
    return lambda own: (p[own[0]], -round(float(strongest[own[0]]), 6), -max(map(len, own[1].split()), default=0))


def word_rows(words: pa.Table, unmarked: str | None) -> Iterator[Judged]:
    """A row for each column of a table of `GROUP_WORDS`, before correction: never `fair`, as a test that finds nothing
    shows nothing.

    Args:
        words: The table.
        unmarked: As `group_words` takes it.
    """
    rows = words.to_pylist()
    for place in dict.fromkeys((row["attribute"], row["contrast"]) for row in rows):
        first = next(row for row in rows if (row["attribute"], row["contrast"]) == place)
        told = first["spans"] >= FEWEST_NAMES and first["smallest_p"] < _LEVEL
        against = f"{first['attribute']} said" if first["group"] == unmarked else unmarked
        row = _comparison(first, _note(first))
        columns = {
            "outcome": DISTINGUISHABLE,
            "attribute": first["attribute"],
            "contrast": first["contrast"],
            "group": first["group"],
            "against": against if first["contrast"] == SAID else "the others",
        }
        yield Judged(row, columns, False, told, differs=True)


def _note(first: Mapping[str, Any]) -> str:
    """What so few bundles cannot show."""
    if first["spans"] < FEWEST_NAMES:
        return too_few(first["spans"], "bundle", FEWEST_NAMES) + " in each group"
    if first["smallest_p"] < _LEVEL / 10 or first["p"] < _LEVEL:
        return ""
    few = f"exchanging {first['spans']} bundles of spans can show no p below {first['smallest_p']:.2g}"
    return f"{few}: give each group more spans, or messages of both places ({{person}} and {{me}})"


def _comparison(first: Mapping[str, Any], note: str) -> Comparison:
    columns = first["attribute"].split(CROSS)
    word = f'"{first["text"]}" in {first["share"]:.2g}% of the answers, elsewhere in {first["share_of_others"]:.2g}%'
    row = bare_row(measure_of(DISTINGUISHABLE, columns) + (SAID_OR_NOT if first["contrast"] == SAID else ""), "percent")
    return replace(
        row,
        n=first["answers"],
        value_a=first["share"],
        value_b=first["share_of_others"],
        difference=first["share"] - first["share_of_others"],
        p_holm=first["p"],
        p_bh=first["p"],
        paired_test="groups exchanged among whole bundles of spans",
        p_paired=first["p"],
        clusters=first["spans"],
        note=note or (word if first["text"] else ""),
    )
