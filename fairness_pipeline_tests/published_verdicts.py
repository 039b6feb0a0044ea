"""Writes docs/published-verdicts.md: our rule of verdicts, applied to every row of the papers' tables.

python -m fairness_pipeline_tests.published_verdicts > docs/published-verdicts.md
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fairness_pipeline.measures.dialogue.measure import MARGINS
from fairness_pipeline.measures.dialogue.registry import measure_label
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.equivalence import Bound, tost
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.statistics.verdicts import verdict
from fairness_pipeline.studies.dialogue_fairness.published import PublishedRow, dialogue_fairness, printed_p
from fairness_pipeline_tests.published_limits import impossible

_ALPHA = 0.05
_HEAD = """\
# What the rule says of the papers' own tables

Written by `python -m fairness_pipeline_tests.published_verdicts`. Every row of tables 3 to 7 of Liu et al. 2020 and of
tables 3.3 and 3.4 of Liu 2022, judged by the default margins ([method.md](method.md)). A row is judged by the p that is
printed, where one is. The papers print no pairs, so the two answers of a pair are taken to be independent: with the
real pairs intervals would be narrower. They do not print the spread of counts either, so the spread of a Poisson count
is used. For diversity they print nothing that could be tested: one can only say whether the difference is inside the
margin. p is Holm-adjusted over the rows of a table, model and dimension. “10% of the mean” is the earlier margin, for
comparison. The exchanged words are not printed: this page is about pairs, and ignores words and controls. Rows whose
printed p no answers with the printed values can have are not judged ([what the tables show](what-the-tables-show.md)).

"""
_NOT_JUDGED = "p impossible"


class Judged(NamedTuple):
    """A printed row, its margin in its unit, and its verdicts by the papers' rule, by ours, and by the old margin."""

    row: PublishedRow
    margin: float
    needed: int | None
    papers: str
    ours: str
    old: str


def judged() -> list[Judged]:
    """Every printed row, judged."""
    tables: dict[tuple[str, str, str, str], list[PublishedRow]] = {}
    for row in dialogue_fairness():
        tables.setdefault((row.source, row.corpus, row.model, row.dimension), []).append(row)
    return [entry for rows in tables.values() for entry in _table(rows)]


def _table(rows: list[PublishedRow]) -> Iterator[Judged]:
    tested = [row for row in rows if row.measure != "diversity"]
    p_values = [_p(row) for row in tested]
    adjusted = dict(zip([row.measure for row in tested], holm(p_values), strict=True))
    raw = dict(zip([row.measure for row in tested], p_values, strict=True))
    impossible_rows = [entry.row for entry in impossible()]
    for row in rows:
        if row.measure == "diversity":
            margin = MARGINS["diversity"].of_mean((row.value_a + row.value_b) / 2, 0.0, 0.0).amount
            difference = abs(row.value_a - row.value_b)
            ours, old = ("inside" if difference <= limit else "outside" for limit in (margin, 2 * margin))
            yield Judged(row, margin, None, "not tested", ours, old)
            continue
        estimate, bound = _estimate(row), _bound(row)
        equivalence = tost(estimate, bound, _ALPHA, row.n_pairs)
        if row in impossible_rows:
            yield Judged(row, bound.amount, equivalence.pairs_needed, _NOT_JUDGED, _NOT_JUDGED, _NOT_JUDGED)
            continue
        earlier = tost(estimate, Bound(0.1 * (row.value_a + row.value_b) / 2), _ALPHA)
        p_holm = adjusted[row.measure]
        yield Judged(
            row,
            bound.amount,
            equivalence.pairs_needed,
            "biased" if raw[row.measure] < _ALPHA else "fair",
            verdict(equivalent=equivalence.shown, p_holm=p_holm, alpha=_ALPHA),
            verdict(equivalent=earlier.shown, p_holm=p_holm, alpha=_ALPHA),
        )


def _p(row: PublishedRow) -> float:
    """The printed p, or the p of the printed values if none is printed."""
    printed = printed_p(row)
    return _estimate(row).p_zero() if printed is None else printed


def _variances(row: PublishedRow) -> tuple[float, float]:
    """The variance of one answer on each side: of a rate in percent, or of a Poisson count."""
    values = row.value_a, row.value_b
    if row.unit == "percent":
        return values[0] * (100 - values[0]), values[1] * (100 - values[1])
    return values


def _estimate(row: PublishedRow) -> Estimate:
    return Estimate(row.value_a - row.value_b, math.sqrt(sum(_variances(row)) / row.n_pairs))


def _bound(row: PublishedRow) -> Bound:
    if row.unit == "percent":
        # Answers with the pooled rate: the margin depends on nothing else.
        pooled = (row.value_a + row.value_b) / 200
        answers = (np.arange(200_000) < round(200_000 * pooled)).astype(float)
        return Bound(MARGINS["rates"].bound(answers, answers, 100).amount)
    k = MARGINS["counts"].standard_deviations or 0.0
    return Bound(k * max(math.sqrt(sum(_variances(row)) / 2), k / 4))


def page() -> str:
    """Returns the page."""
    rows = judged()
    tested = [entry for entry in rows if entry.row.measure != "diversity" and entry.ours != _NOT_JUDGED]
    counted = Counter((entry.papers, entry.ours) for entry in tested)
    lines = [f"Of {len(tested)} tested rows:", "", "| the papers' rule | this rule | rows |", "| --- | --- | --- |"]
    lines += [f"| {papers} | {ours} | {count} |" for (papers, ours), count in sorted(counted.items())]
    changed = [entry for entry in tested if entry.ours != entry.old]
    lines += ["", f"A margin of 10% of the mean would give {len(changed)} of them another verdict.", ""]
    columns = (
        "table", "corpus, model", "measure", "a", "b", "difference", "margin", "pairs", "pairs for fair", "papers",
        "**this rule**", "10% of the mean",
    )  # fmt: skip
    lines += [f"| {' | '.join(columns)} |", "| --- " * len(columns) + "|"]
    for row, margin, needed, papers, ours, old in rows:
        lines.append(
            f"| {row.source.replace('Table ', '')} | {row.corpus}, {row.model}, {row.dimension} | "
            f"{measure_label(row.measure)} | {row.value_a:g} | {row.value_b:g} | {row.value_a - row.value_b:+.3g} | "
            f"{margin:.3g} | {row.n_pairs:,} | {f'{needed:,}' if needed else '–'} | {papers} | **{ours}** | {old} |"
        )
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
