"""Group words: does an answer, with the group's words masked, reveal which group was asked about?

The test looks for any difference in words, like `distinguishable` for two sides, between any number of groups and
against the unmarked arm. Whole bundles of spans change groups under the null hypothesis (`statistics/many_sample.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from fairness_pipeline.statistics.comparison import Comparison
from fairness_pipeline.statistics.many_sample import ManySampleResult, Texts, distinguish_groups
from fairness_pipeline.statistics.verdicts import too_few

_LEVEL = 0.05
_MOST_WORDS, _CANDIDATES = 8, 40
"""The most words that are named, and the number of candidates."""
_OVERLAP = 0.8
"""A word is left out if this share of the answers with it contains a word that was named before."""

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
"""A row for each word that carries a difference, the strongest first; at least one row for each column."""


class _Word(NamedTuple):
    group: str
    text: str
    share: float
    share_of_others: float
    p_word: float
    sentence: str


def group_words(trials: Trials, outcome: str, unmarked: str | None, seed: int) -> pa.Table:
    """A table of `GROUP_WORDS`: by group column, for all columns crossed, and for any group against none.

    Args:
        trials: The trials of one condition, with names or clusters.
        outcome: The outcome that is a text, with the groups' words masked.
        unmarked: The level of group columns at which no group is said.
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
        result, spans, smallest_p = _test_groups(trials, codes, others, present, known, seed)
        common: Mapping[str, Any] = {
            "attribute": attribute, "contrast": contrast, "p": result.p, "answers": int(known.sum()), "spans": spans,
            "smallest_p": smallest_p,
        }  # fmt: skip
        telling = list(_telling_words(result, codes, words.dictionary, words.indices.to_numpy(), present, known))
        rows += [{**common, **word._asdict()} for word in telling]
    return pa.Table.from_pylist(rows, schema=GROUP_WORDS)


def _columns(trials: Trials, unmarked: str | None) -> Iterator[tuple[str, str, Codes]]:
    """The groups to be told apart: each column without the unmarked level, all columns crossed, and said or not."""
    marked = {name: codes.without(unmarked) for name, codes in trials.groups.items()}
    yield from ((name, OMNIBUS, codes) for name, codes in marked.items())
    if len(marked) > 1:
        yield CROSS.join(marked), OMNIBUS, reduce(Codes.crossed, marked.values()).used()
    for name, codes in trials.groups.items():
        if unmarked is not None and unmarked in codes.names:
            yield name, SAID, codes.mentioned_or_not(name, unmarked)
            return  # crossed columns are all said, or none is


def _test_groups(
    trials: Trials, codes: Codes, others: Sequence[str], present: sparse.csr_array, known: np.ndarray, seed: int
) -> tuple[ManySampleResult, int, float]:
    """The test, the number of bundles of spans of the group with the fewest, and the smallest p that they can show.
    Bundles of one slot, or matched texts that mean the same, change groups."""
    assert trials.item is not None
    item = np.unique(trials.item.code[known], return_inverse=True)[1]
    slot = (trials.cluster.code[known] if trials.cluster else item) if trials.name is None else _slots(trials, known)
    arms = numbered(*trials.groups.values())[known]
    other_codes = [trials.groups[name].code[known] for name in others]  # the other columns keep their levels
    columns = np.stack([slot, arms, codes.code[known], *other_codes])
    units, bundle = np.unique(columns, axis=1, return_inverse=True)
    stratum = np.unique(units[[0, *range(3, len(units))]], axis=1, return_inverse=True)[1].ravel()
    result = distinguish_groups(Texts(present[known], item, bundle.ravel(), units[2], stratum), seed=seed)
    fewest = int(np.bincount(units[2], minlength=len(codes.names)).min())
    if fewest < FEWEST_NAMES:
        result = result._replace(p=1.0, p_features=np.ones_like(result.p_features))
    return result, fewest, _smallest_p(units[2], stratum)


def _smallest_p(group: np.ndarray, stratum: np.ndarray) -> float:
    """One divided by the number of ways to exchange the groups of bundles within strata. For two groups it is
    doubled, as swapping them everywhere leaves the statistic the same."""
    log_ways = 0.0
    for members in (group[stratum == number] for number in np.unique(stratum)):
        log_ways += gammaln(len(members) + 1) - gammaln(np.bincount(members) + 1).sum()
    return float(min(1.0, (2 if len(np.unique(group)) == 2 else 1) * np.exp(-log_ways)))


def _slots(trials: Trials, known: np.ndarray) -> np.ndarray:
    """(known,) the slot of each text's span: spans share a slot if they are asked in the same items."""
    spans, items = trials.name, trials.item
    assert spans is not None and items is not None
    count = len(spans.names)
    edges = (np.ones(int(known.sum())), (spans.code[known], count + items.code[known]))
    graph = sparse.coo_array(edges, (count + len(items.names),) * 2)
    return np.asarray(connected_components(graph, directed=False)[1][spans.code[known]])


def _telling_words(
    result: ManySampleResult,
    codes: Codes,
    texts: pa.StringArray,
    index: np.ndarray,
    present: sparse.csr_array,
    known: np.ndarray,
) -> Iterator[_Word]:
    """The words that carry the difference, the strongest first; a single one without text if there is none."""
    strength = np.abs(result.statistics)
    best = strength.argmax(axis=0) if len(result.kept) else np.empty(0, dtype=np.int64)
    p = result.p_features[best, np.arange(len(best))]
    strongest = strength.max(axis=0) if len(best) else np.empty(0)
    order = np.lexsort([-strongest, p])
    features = [feature for feature in order.tolist() if result.p < _LEVEL and p[feature] <= _LEVEL][:_CANDIDATES]
    _, holders = features_of(texts, result.kept[features]) if features else (None, {})
    names = commonest_names(result.kept[features], {key: len(members) for key, members in holders.items()})
    seen: list[np.ndarray] = []
    candidates = sorted(zip(features, (name for _, name in names), strict=True), key=_strongest_first(p, strongest))
    for feature, name in candidates:
        has = present[:, [result.kept[feature]]].toarray().ravel() > 0
        if len(seen) == _MOST_WORDS or any((has & previous).sum() >= _OVERLAP * has.sum() for previous in seen):
            continue
        seen.append(has)
        inside = codes.code == best[feature]
        side = inside if result.statistics[best[feature], feature] > 0 else known & ~inside
        sentence = commonest_sentence((texts[index[row]].as_py() for row in np.flatnonzero(has & side)), name)
        yield _Word(codes.names[best[feature]], name, *_shares(has, inside, known), float(p[feature]), sentence)
    if not seen and len(order):  # the word that comes nearest
        nearest = int(order[0])
        has = present[:, [result.kept[nearest]]].toarray().ravel() > 0
        shares = _shares(has, codes.code == best[nearest], known)
        yield _Word(codes.names[best[nearest]], "", *shares, float(p[nearest]), "")
    elif not seen:
        yield _Word(codes.names[0], "", 0.0, 0.0, 1.0, "")


def _shares(has: np.ndarray, inside: np.ndarray, known: np.ndarray) -> tuple[float, float]:
    """The shares of a group's texts, and of all others, that have something, in percent."""
    of_group, of_others = (100 * float(has[rows].mean()) if rows.any() else 0.0 for rows in (inside, known & ~inside))
    return of_group, of_others


def _strongest_first(p: np.ndarray, strongest: np.ndarray) -> Callable[[tuple[int, str]], tuple[float, float, int]]:
    """A sort key of features with their names: the strongest first; of equal ones that with the longest word."""
    return lambda item: (p[item[0]], -round(float(strongest[item[0]]), 6), -max(map(len, item[1].split()), default=0))


def word_rows(words: pa.Table, unmarked: str | None) -> Iterator[Judged]:
    """A row for each column of a table of `GROUP_WORDS`, before correction: never `fair`, as a test that finds nothing
    shows nothing.

    Args:
        words: The table.
        unmarked: As `group_words` takes it.
    """
    rows = words.to_pylist()
    for key in dict.fromkeys((row["attribute"], row["contrast"]) for row in rows):
        first = next(row for row in rows if (row["attribute"], row["contrast"]) == key)
        enough_data = first["spans"] >= FEWEST_NAMES and first["smallest_p"] < _LEVEL
        against = f"{first['attribute']} said" if first["group"] == unmarked else unmarked
        row = _comparison(first, _note(first))
        columns = {
            "outcome": DISTINGUISHABLE,
            "attribute": first["attribute"],
            "contrast": first["contrast"],
            "group": first["group"],
            "against": against if first["contrast"] == SAID else "the others",
        }
        yield Judged(row, columns, False, enough_data, differs=True)


def _note(first: Mapping[str, Any]) -> str:
    """The note that there are too few bundles; empty if there are enough."""
    if first["spans"] < FEWEST_NAMES:
        return too_few(first["spans"], "bundle", FEWEST_NAMES) + " in each group"
    if first["smallest_p"] < _LEVEL / 10 or first["p"] < _LEVEL:
        return ""
    limit = f"exchanging {first['spans']} bundles of spans can show no p below {first['smallest_p']:.2g}"
    return f"{limit}: give each group more spans, or messages with both placeholders ({{person}} and {{me}})"


def _comparison(first: Mapping[str, Any], note: str) -> Comparison:
    columns = first["attribute"].split(CROSS)
    word = f'"{first["text"]}" in {first["share"]:.2g}% of the answers, elsewhere in {first["share_of_others"]:.2g}%'
    return Comparison(
        measure=measure_of(DISTINGUISHABLE, columns) + (SAID_OR_NOT if first["contrast"] == SAID else ""),
        unit="percent",
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
