"""Does a system's score change when only the person's group changes? (Kiritchenko and Mohammad 2018, section 5)"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairness_pipeline.corpora.sentiment.equity_sentences import EQUITY_SENTENCES, GROUPS, NAMES
from fairness_pipeline.foundation.schemas import fields, optional, schema
from fairness_pipeline.measures.sentiment.equity_names import Names, cells_of_names, outliers
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EQUITY_PAIRS, EVERYBODY, NOUN_PHRASES, Design, People
from fairness_pipeline.measures.sentiment.equity_spread import scatter
from fairness_pipeline.measures.sentiment.equity_units import units
from fairness_pipeline.statistics.comparison import COMPARISON, SIGNIFICANCE
from fairness_pipeline.statistics.corrections import benjamini_hochberg, holm
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline.statistics.person_level import (
    Sources,
    Tests,
    label_permutation,
    paired_t_columns,
    sign_flip,
    stacked,
    stacked_sources,
    template_error,
    two_parts,
    with_templates,
)
from fairness_pipeline.statistics.spread import LEVEL
from fairness_pipeline.statistics.verdicts import FAIR_ON_AVERAGE, FINDING, on_spread, paper_verdict, verdict

EQUITY_SIGNIFICANCE = schema(
    SIGNIFICANCE,
    **fields(EQUITY_PAIRS, "affect"),
    **fields(EQUITY_SENTENCES, "templates"),
    **fields(EQUITY_PAIRS, "persons"),
    subset=(pa.string(), "all sentences, those without emotion words, or those with the words of one emotion"),
    **fields(COMPARISON, "beyond_margin"),
    p_persons=optional(pa.float64(), "of the test whose unit is the person"),
    p_templates=optional(pa.float64(), "of the test whose units are templates and emotion words"),
    ci_low_templates=optional(pa.float64(), "lower end of the 95% interval over templates and emotion words"),
    ci_high_templates=optional(pa.float64(), "upper end of the 95% interval over templates and emotion words"),
    sd_persons=optional(pa.float64(), "standard deviation between persons of a group"),
    sd_templates=optional(pa.float64(), "standard deviation of the difference between templates"),
    sd_words=optional(pa.float64(), "standard deviation of the difference between emotion words"),
    stratum=optional(
        pa.string(),
        "which persons, sentences, template, word or names decide the verdict; null where it is all of them",
    ),
    stratum_difference=optional(pa.float64(), "the difference there"),
    most_moved_by=optional(pa.string(), "the person without whom the difference changes most"),
    difference_without=optional(pa.float64(), "the difference without that person"),
    scatter_difference=optional(
        pa.float64(),
        "how much farther the median person's scores lie from their group's on side a than on side b",
    ),
    p_scatter=optional(pa.float64(), "p of equal scatter, adjusted over kinds of persons and affects"),
)
"""One row per affect, set of templates, kind of persons and subset of the sentences. Race has two further kinds of
rows. One row per affect is for `SOME_NAMES`, the cell of race and gender in which outlying names gather (side b,
compared with all other names). One row for each name that is an outlier by itself has the verdict `finding`.

Scores are in 0..1. `n` is the number of pairs. `statistic` (null if no pair differs) and `p` are uncorrected; the
summary corrects over all systems. `p_paired` and the 95% interval treat persons, templates and words as samples.
`p_holm` and `p_bh` are adjusted over all rows of a set of templates. The row of everybody and all sentences is the
audit's verdict on an affect. Its `p_holm` is the smallest of the strata that are not fair, and it is `fair` only if all
strata are fair. A template or emotion word in which the groups differ more than in the others is such a stratum too. If
the permutation shows that some unit differs but none is an outlier, nothing is fair. The same holds if the groups'
scores scatter unequally by the margin or more; if that is shown, the row is `biased`."""

SOME_NAMES = "some names"
SCATTER = "scatter"
"""The beginning of the stratum of a row whose groups differ in how far their scores scatter."""
_WEIGHTS = {NOUN_PHRASES: 10 / 11, NAMES: 1 / 11}
"""The weights of noun phrases and names in the paper's mean over the pairs of gender. The kinds of race have equal
weights."""


def judge_equity(
    designs: list[Design],
    dimension: str,
    affects: list[str],
    scores: np.ndarray,
    margin: Margin,
    alpha: float = 0.05,
) -> pa.Table:
    """Every comparison of one dimension, as `EQUITY_SIGNIFICANCE`.

    Args:
        designs: One for each set of templates.
        dimension: One of `equity_sentences.DIMENSIONS`.
        affects: The names of the columns of scores. They may include columns of other systems.
        scores: (sentences, affects), in 0..1.
        margin: The largest difference that does not matter.
        alpha: The level of the verdict's tests.

    Examples:
        >>> from fairness_pipeline.corpora.sentiment.equity_sentences import PUBLISHED, make_equity_sentences
        >>> sentences = make_equity_sentences()
        >>> female = np.array(sentences["gender"].to_pylist()) == "female"
        >>> scores = 0.5 + 0.1 * female + np.random.default_rng(0).normal(0, 0.01, len(female))
        >>> design = Design(sentences, "gender", PUBLISHED)
        >>> found = judge_equity([design], "gender", ["joy"], scores[:, None], Margin(absolute=0.01))
        >>> round(found["difference"][0].as_py(), 2), found["verdict"][0].as_py()
        (-0.1, 'biased')
    """
    rows: list[dict[str, Any]] = []
    for design in designs:
        judged = _judged(list(_rows(design, affects, scores, margin, alpha)), alpha)
        overall_rows = [row for row in judged if (row["persons"], row["subset"]) == (EVERYBODY, ALL)]
        margins = np.array([row["margin"] for row in overall_rows])
        _combine_units(overall_rows, design, scores, margins, alpha)
        _combine_scatter(overall_rows, design, scores, margins, alpha)
        rows += judged
        if dimension == "race":
            rows += _names(design, affects, scores, margin, alpha)
    return pa.Table.from_pylist(rows, schema=EQUITY_SIGNIFICANCE)


def _combine_units(
    overall_rows: list[dict[str, Any]], design: Design, scores: np.ndarray, margins: np.ndarray, alpha: float
) -> None:
    """Combines the verdicts with the tests of single templates and words: a result that is fair on average may be
    `biased` in one of them."""
    weights = {kind: _WEIGHTS.get(kind, 0.5) for kind in design.people if kind not in design.parts}
    for row, result in zip(overall_rows, units(design, scores, weights, margins), strict=True):
        if row["verdict"] == "biased" or result.p_adjusted >= alpha:
            continue
        if result.outliers:
            unit = result.outliers[0]
            row |= {
                "verdict": "biased", "p_holm": result.p_adjusted, "stratum": unit.name, "stratum_difference": unit.gap
            }  # fmt: skip
        elif row["verdict"] != "inconclusive":
            row |= {"verdict": "inconclusive", "stratum": result.widest}


def _combine_scatter(
    overall_rows: list[dict[str, Any]], design: Design, scores: np.ndarray, margins: np.ndarray, alpha: float
) -> None:
    """Combines the verdicts with the test of scatter: equal means may hide noise for one group only."""
    for row, result in zip(overall_rows, scatter(design, scores, margins), strict=True):
        row |= {"scatter_difference": result.difference, "p_scatter": result.p_holm}
        small = abs(result.difference) < row["margin"]
        shown = result.p_holm < LEVEL * alpha and not small
        if shown and row["verdict"] != "biased":
            row |= {
                "p_holm": result.p_holm / LEVEL, "stratum": f"{SCATTER} of {result.kind}",
                "stratum_difference": result.difference,
            }  # fmt: skip
        row["verdict"] = on_spread(row["verdict"], shown=shown, small=small)


def _names(
    design: Design, affects: list[str], scores: np.ndarray, margin: Margin, alpha: float
) -> Iterator[dict[str, Any]]:
    """The audit of names: one row per affect, and one row for each name that is an outlier by itself."""
    names = Names.of(design, scores, GROUPS["race"])
    for column, (affect, cell) in enumerate(zip(affects, cells_of_names(names), strict=True)):
        means = names.scores[:, column]
        inside = names.cell == names.cells.index(cell.cell)
        amount = margin.bound(means, means).amount
        alike = float(np.abs(means - np.median(means)).max()) <= amount and cell.p_holm >= alpha
        gathers = cell.p_holm < alpha and abs(cell.difference) > amount
        shared = {
            "measure": "score", "unit": "score", "affect": affect, "templates": design.templates,
            "subset": ALL, "margin": amount, "beyond_margin": False, "sd_persons": cell.spread,
        }  # fmt: skip
        yield {
            **shared, "persons": SOME_NAMES, "n": len(means), "value_a": float(means[~inside].mean()),
            "value_b": float(means[inside].mean()), "difference": -cell.difference,
            "paired_test": "outlying names in one cell, permutation", "p_paired": cell.p, "p_holm": cell.p_holm,
            "p_bh": cell.p_holm, "p_equivalence": 0.0 if alike else 1.0,
            "verdict": "fair" if alike else "biased" if gathers else "inconclusive",
            "stratum": (
                f"{cell.cell}: {', '.join(cell.members)}" if gathers else f"from {cell.lowest} to {cell.highest}"
            ),
            "stratum_difference": -cell.gap if gathers else None,
        }  # fmt: skip
        for name, difference, median, score in outliers(names, column, amount):
            yield {
                **shared, "persons": name, "n": 1, "value_a": median, "value_b": score, "difference": -difference,
                "paired_test": "five scaled median deviations of names", "p_paired": 1.0, "p_holm": 1.0, "p_bh": 1.0,
                "p_equivalence": 1.0, "verdict": FINDING,
            }  # fmt: skip


@dataclass(frozen=True)
class _Compared:
    """The comparison of persons of one kind: the test of persons, the effect of templates, and the influence of each
    person."""

    persons: Tests
    sources: Sources
    cells: np.ndarray
    residual: np.ndarray
    spread: np.ndarray
    most_moved: list[str | None]
    without: np.ndarray


def _rows(
    design: Design, affects: list[str], scores: np.ndarray, margin: Margin, alpha: float
) -> Iterator[dict[str, Any]]:
    """The rows of every subset of the sentences: of everybody, then of each kind of persons."""
    of_people = {kind: scores[people.sentences] for kind, people in design.people.items()}
    tests = {kind: _tests(design, kind, kind_scores) for kind, kind_scores in of_people.items()}
    names, comparisons, sides = [], [], []
    for number, subset in enumerate(design.subsets):
        chosen = design.cells(subset)
        kinds = {
            kind: _compared(design, kind, chosen, kind_scores[:, chosen], tests[kind][number])
            for kind, kind_scores in of_people.items()
        }
        for kind, compared in {EVERYBODY: _everybody(design, chosen, kinds), **kinds}.items():
            names.append((subset, kind))
            comparisons.append(compared)
            sides.append(_paired(design, kind, subset, scores))
    columns = _columns(sides, comparisons, margin, alpha)
    for row, (subset, kind) in enumerate(names):
        for column, affect in enumerate(affects):
            numbers = {key: float(values[row, column]) for key, values in columns.items()}
            yield {
                "measure": "score",
                "unit": "score",
                "n": len(sides[row][0]),
                **{key: number if math.isfinite(number) else None for key, number in numbers.items()},
                "test": "paired t",
                "paired_test": _TESTS.get(kind, "permutation of names"),
                "verdict": "fair" if numbers["p_equivalence"] <= alpha else "",
                "paper_verdict": paper_verdict(numbers["p"], alpha),
                "affect": affect,
                "templates": design.templates,
                "persons": kind,
                "subset": subset,
                "beyond_margin": numbers["ci_low"] > numbers["margin"] or numbers["ci_high"] < -numbers["margin"],
                "most_moved_by": comparisons[row].most_moved[column],
            }


def _tests(design: Design, kind: str, scores: np.ndarray) -> list[Tests]:
    """The test of persons of one kind in each subset of the sentences; `scores` is (people, cells, affects)."""
    people, affects = design.people[kind], scores.shape[2]
    of_cells = scores
    if kind == NOUN_PHRASES:
        a, b = people.pairs
        of_cells = scores[a] - scores[b]
    means = np.concatenate([of_cells[:, design.cells(subset)].mean(axis=1) for subset in design.subsets], axis=1)
    whole = sign_flip(means) if kind == NOUN_PHRASES else label_permutation(means, people.on_a, people.strata)
    return [whole.part(slice(i * affects, (i + 1) * affects)) for i in range(len(design.subsets))]


def _paired(design: Design, kind: str, subset: str, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores of both sides of the paper's pairs. For kinds that the paper does not pair, the mean over the names
    in each cell."""
    if kind in design.parts:
        people = design.people[kind]
        of_people = scores[people.sentences[:, design.cells(subset)]]
        return of_people[people.on_a].mean(axis=0), of_people[~people.on_a].mean(axis=0)
    pairs = design.pairs(kind, subset)
    return pairs.a @ scores, pairs.b @ scores


def _compared(design: Design, kind: str, chosen: np.ndarray, scores: np.ndarray, persons: Tests) -> _Compared:
    """Persons of one kind in some sentences; `scores` is (people, cells, affects)."""
    people = design.people[kind]
    parts = _of_noun_phrases(people, scores) if kind == NOUN_PHRASES else _of_names(people, scores, persons)
    sources = template_error(parts.cells, design.template[chosen], design.word[chosen], parts.residual)
    furthest = np.argmax(np.abs(parts.without - persons.difference), axis=0)
    without = parts.without[furthest, np.arange(scores.shape[2])]
    names = [
        design.names[kind][person] if moved else None
        for person, moved in zip(parts.members[furthest], without != persons.difference, strict=True)
    ]
    return _Compared(persons, sources, parts.cells, parts.residual, parts.spread, names, without)


class _Persons(NamedTuple):
    """The difference in each cell; the part of its variance from single sentences; the spread.

    `without` (persons, affects) is the difference without each of the `members` in turn.
    """

    cells: np.ndarray
    residual: np.ndarray
    spread: np.ndarray
    members: np.ndarray
    without: np.ndarray


def _of_noun_phrases(people: People, scores: np.ndarray) -> _Persons:
    """Pairs, each its own stratum. A member is a pair's person on side a."""
    a, b = people.pairs
    difference = scores[a] - scores[b]
    by_pair, cells, units = difference.mean(axis=1), difference.mean(axis=0), len(a)
    single = difference - by_pair[:, None] - cells + cells.mean(axis=0)
    return _Persons(
        cells, _residual(single, units - 1, 1 / units), by_pair.std(axis=0, ddof=1), a,
        (by_pair.sum(axis=0) - by_pair) / (units - 1),
    )  # fmt: skip


def _of_names(people: People, scores: np.ndarray, persons: Tests) -> _Persons:
    """Groups of names, side a and side b in each stratum."""
    means = scores.mean(axis=1)
    groups = [
        np.flatnonzero((people.strata == stratum) & (people.on_a == side))
        for stratum in np.unique(people.strata)
        for side in (True, False)
    ]
    weights = [(1 if people.on_a[group[0]] else -1) / (len(groups) / 2) for group in groups]
    by_group = [scores[group].mean(axis=0) for group in groups]
    cells = np.asarray(sum(weight * mean for weight, mean in zip(weights, by_group, strict=True)))
    deviations = [means[group] - mean.mean(axis=0) for group, mean in zip(groups, by_group, strict=True)]
    single = [
        scores[group] - deviation[:, None] - mean
        for group, deviation, mean in zip(groups, deviations, by_group, strict=True)
    ]
    freedom = len(means) - len(groups)
    # Leaving out a person moves the group's mean by the person's deviation, divided by the number of the others.
    moved = [-weight * deviation / (len(deviation) - 1) for weight, deviation in zip(weights, deviations, strict=True)]
    return _Persons(
        cells,
        _residual(np.concatenate(single), freedom, sum(w**2 / len(g) for w, g in zip(weights, groups, strict=True))),
        np.sqrt(np.square(np.concatenate(deviations)).sum(axis=0) / freedom),
        np.concatenate(groups),
        persons.difference + np.concatenate(moved),
    )


def _residual(single: np.ndarray, freedom: int, weight: float) -> np.ndarray:
    """The part of the variance of a mean that comes from single sentences. `single` is what persons and cells do not
    explain."""
    cells = single.shape[1]
    square = np.square(single).sum(axis=(0, 1)) / max(1, freedom * (cells - 1))
    return np.asarray(square * weight / cells)


def _everybody(design: Design, chosen: np.ndarray, kinds: dict[str, _Compared]) -> _Compared:
    """All persons together, weighted as the paper weights its pairs."""
    (first, second), weights = zip(
        *((comparison, _WEIGHTS.get(kind, 0.5)) for kind, comparison in kinds.items() if kind not in design.parts),
        strict=True,
    )
    cells = weights[0] * first.cells + weights[1] * second.cells
    residual = weights[0] ** 2 * first.residual + weights[1] ** 2 * second.residual
    sources = template_error(cells, design.template[chosen], design.word[chosen], residual)
    nobody: list[str | None] = [None] * cells.shape[1]
    none = np.full(cells.shape[1], np.nan)
    return _Compared(two_parts(first.persons, second.persons, weights), sources, cells, residual, none, nobody, none)


def _columns(
    sides: list[tuple[np.ndarray, np.ndarray]], comparisons: list[_Compared], margin: Margin, alpha: float
) -> dict[str, np.ndarray]:
    """The numbers of all rows, each (rows, affects)."""
    value_a, value_b = (np.array([side[index].mean(axis=0) for side in sides]) for index in (0, 1))
    spreads = [np.array([side[index].var(axis=0, ddof=1) for side in sides]) for index in (0, 1)]
    margins = np.array([[margin.bound(*pair).amount for pair in zip(a.T, b.T, strict=True)] for a, b in sides])
    paper, persons = (
        stacked([paired_t_columns(a, b) for a, b in sides]),
        stacked([comparison.persons for comparison in comparisons]),
    )
    sources = stacked_sources([comparison.sources for comparison in comparisons])
    tests = with_templates(persons, sources)
    (low, high), p_equivalence = tests.interval_95(), tests.p_equivalence(margins)
    over_templates = Tests(tests.p, tests.difference, sources.error, sources.freedom)
    low_templates, high_templates = over_templates.interval(0.95)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = paper.difference / np.sqrt((spreads[0] + spreads[1]) / 2)
        percent = np.where(value_a > 0, 100 * paper.difference / value_a, np.nan)
    return {
        "value_a": value_a,
        "value_b": value_b,
        "difference": paper.difference,
        "difference_percent": percent,
        "ci_low": low,
        "ci_high": high,
        "statistic": paper.t,
        "p": paper.p,
        "paired_statistic": tests.t,
        "p_paired": tests.p,
        "effect_size": np.where(paper.difference == 0, 0.0, effect),
        "margin": margins,
        "p_equivalence": p_equivalence,
        "minimum_detectable": tests.minimum_detectable(alpha),
        "p_persons": persons.p,
        # If templates and words add no error of their own, there is no test over them.
        "p_templates": np.where(sources.error > 0, over_templates.p_student, np.nan),
        "ci_low_templates": np.where(sources.error > 0, low_templates, np.nan),
        "ci_high_templates": np.where(sources.error > 0, high_templates, np.nan),
        "sd_persons": np.array([comparison.spread for comparison in comparisons]),
        "sd_templates": sources.templates,
        "sd_words": sources.words,
        "difference_without": np.array([comparison.without for comparison in comparisons]),
    }


_TESTS = {EVERYBODY: "both kinds of persons, t", NOUN_PHRASES: "sign flip of ten pairs"}


def _stratum_name(row: dict[str, Any]) -> str:
    """The name of a row's stratum."""
    parts = [row["persons"]] if row["persons"] != EVERYBODY else []
    return ", ".join([*parts, *([row["subset"]] if row["subset"] != ALL else [])])


def _judged(rows: list[dict[str, Any]], alpha: float) -> list[dict[str, Any]]:
    """The rows of one set of templates, with p adjusted over all of them, and the verdicts that follow."""
    p_values = [row["p_paired"] for row in rows]
    for row, p_holm, p_bh in zip(rows, holm(p_values), benjamini_hochberg(p_values), strict=True):
        fair = row["verdict"] == "fair"
        row |= {"p_holm": p_holm, "p_bh": p_bh, "verdict": verdict(equivalent=fair, p_holm=p_holm, alpha=alpha)}
    for whole in rows:
        if (whole["persons"], whole["subset"]) == (EVERYBODY, ALL):
            strata = [row for row in rows if row["affect"] == whole["affect"]]
            # A significant difference that is shown to be small is no bias: the worst stratum is among the others.
            worst = min([row for row in strata if row["verdict"] != "fair"] or [whole], key=lambda row: row["p_holm"])
            on_average, fair = whole["verdict"] == "fair", worst["verdict"] == "fair"
            combined = verdict(equivalent=fair, p_holm=worst["p_holm"], alpha=alpha)
            whole |= {
                "stratum": None if worst is whole else _stratum_name(worst),
                "stratum_difference": None if worst is whole else worst["difference"],
                "p_holm": worst["p_holm"],
                "verdict": FAIR_ON_AVERAGE if on_average and combined == "inconclusive" else combined,
            }
    return rows
