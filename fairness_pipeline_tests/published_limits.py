"""Writes docs/what-the-tables-show.md: what the papers' tables can show, and what they cannot.

python -m fairness_pipeline_tests.published_limits > docs/what-the-tables-show.md
"""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple

from fairness_pipeline.lexicons.stereotypes import stereotypes_of
from fairness_pipeline.measures.dialogue.registry import measure_label
from fairness_pipeline.project.project import load_dimension
from fairness_pipeline.statistics.intervals import Estimate
from fairness_pipeline.studies.dialogue_fairness.published import PublishedRow, dialogue_fairness, printed_p

_LONGEST = 30
"""The most words of an answer (Liu et al. 2020, 3.1; Liu 2022, 3.3.3.1)."""
_FALLEN = 0.1
"""A measure's level has fallen if it is below this share of the base's level."""
_LAST_DIGIT = 1e-3
"""The tolerance of a printed p: one unit of its last digit, which may be cut off instead of rounded."""
_DIMENSIONS = ("religion1", "religion2", "race", "gender", "orientation")
_PAGE = """\
# What the papers' tables can show

Written by `python -m fairness_pipeline_tests.published_limits`, which repeats every number here that has no command of
its own. It is about table 7 of Liu et al. 2020, tables 3.3 and 3.4 of Liu 2022, and the pairs of words of Barikeri et
al. 2021. Which verdicts the rows would get is told in [published-verdicts.md](published-verdicts.md).

## The level moves with the gap

A gap closes if both groups get less, or more. “Level kept” is the mean of both groups' values as a share of the base's,
“gap left” the same of the absolute difference.

- The mean of both groups is below what either got from the base in {lower}.
- It is above what either got in {higher}.

| table | model | measure | base a / b | a / b | level kept | gap left |
| --- | --- | --- | --- | --- | --- | --- |
{left}

- Rare things nearly vanish for everybody on Twitter. Of the base's level Debiased-Chat keeps: {chat}. CDA: {cda}.
- It does not make everything fair: positive answers differ on Twitter (p {positive}).
- WER's differences of nearly 0 come with identical answers. Which group these name no table says. Here WER's answers
  name the other group about as often as the right one ([debiasing.md](debiasing.md#names-the-other-group)).

## The base has another origin than what it is compared with

Chapter 3 and table 7 compare an “original” with CDA, WER and Debiased-Chat “in the same setting”. The options that the
authors released tell otherwise. The original is called `original_ParlAI_twitter_seq2seq_model`; its data lay with
another account (`/private/home/ahm/ParlAI`), and it has GloVe embeddings. CDA and WER have paths of the authors' own
and `random` embeddings (a line of the files that is commented out still says GloVe). So far as these files tell, what
CDA and WER change is mixed with what another training changes. Debiased-Chat goes on from the original. To see it:

    for model in Seq2Seq Seq2Seq_CDA Seq2Seq_WER; do
      curl -s {released}/$model/opts.py |
        grep -v "#" | grep -oE "'(datapath|model_file|embedding_type)': '[^']*'"
    done

The options of table 7's WER name its model `seq_twitter_reg_0.25`, where the paper says k = 0.5.

## {count} printed p values are impossible

No answers with the printed values have these p. A printed rate stands for one number of answers or a few, each with
its Z. For counts of words the values bound Z: with 30 words an answer at most, the spread is largest where an answer
has 30 listed words or none.

| table | model | measure | a | b | printed p | possible p |
| --- | --- | --- | --- | --- | --- | --- |
{impossible}

All are of Debiased-Chat on Reddit, so that its rows of table 3.4 cannot be judged by p. As percentages (45 and 34 words
in 30,000 answers) the p of career words would be right, but then the base's (0.202 and 0.138, p < 10^-5) would not.

## WER's term and the clipping of gradients

The released options clip the gradient of the whole loss at 0.1, with SGD at a rate of 1 and momentum. The gradient of
WER's term has the norm k sqrt(2 pairs) however near the words are, so that little is left for learning to answer.
Clipped together, a small model ends at a clearly higher perplexity than without the term. Clipped apart, and then
weighted by k, it does not. The settings are `clip: apart` (default) and `clip: as_printed`. To see it, over 3 seeds:

    pytest -o addopts= fairness_pipeline_tests/debiasing/dialogue/test_methods.py -k clipped_together

## RedditBias: how many pairs a loss runs over

The paper prints these numbers of pairs of words: {printed_pairs}.
The phrases need more: {all_pairs}.
LMD is a mean over the pairs of a target, and HD uses their directions, but ADD is a sum: with more pairs the same
lambda weighs it more. `pairs: printed` or `pairs: extended` in a profile's section `language_model_bias` chooses;
[redditbias.yaml](../data/profiles/redditbias.yaml) has the printed ones.
"""
_RELEASED = "https://raw.githubusercontent.com/zgahhblhc/DialogueFairness/dc00eb8/FairnessTest/models"


class Left(NamedTuple):
    """For a method and measure: the share of the base's level that is kept, and of its gap that is left."""

    row: PublishedRow
    base: PublishedRow
    level: float
    gap: float | None


def left() -> Iterator[Left]:
    """Yields every row of a method whose base is printed as well."""
    rows = dialogue_fairness()
    for row in rows:
        base = next((candidate for candidate in rows if _is_base(candidate, row)), None)
        if base is None or base.model == row.model or row.measure == "diversity":
            continue
        base_total, total = base.value_a + base.value_b, row.value_a + row.value_b
        gap = abs(base.value_a - base.value_b)
        yield Left(row, base, total / base_total, abs(row.value_a - row.value_b) / gap if gap else None)


def _is_base(candidate: PublishedRow, row: PublishedRow) -> bool:
    """Whether a candidate is the base's row: in the same table, or in table 3 or 5 for table 7 of Liu et al. 2020."""
    same = (candidate.corpus, candidate.dimension, candidate.measure) == (row.corpus, row.dimension, row.measure)
    of_table_7 = row.source == "Liu2020 Table 7" and candidate.source in ("Liu2020 Table 3", "Liu2020 Table 5")
    return same and "seq2seq-" not in candidate.model and (candidate.source == row.source or of_table_7)


class Impossible(NamedTuple):
    """A printed p that no answers with the printed values can have, and the range of the possible p."""

    row: PublishedRow
    printed: float
    least: float
    most: float


def impossible() -> list[Impossible]:
    """The printed p that are impossible, given the printed values."""
    entries = []
    for row in dialogue_fairness():
        if row.p is None or "<" in row.p or row.measure == "diversity":
            continue
        printed, (least, most) = printed_p(row), _p_range(row)
        if printed is not None and not least - _LAST_DIGIT <= printed <= most + _LAST_DIGIT:
            entries.append(Impossible(row, printed, least, most))
    return entries


def _p_range(row: PublishedRow) -> tuple[float, float]:
    """The range of the p of Z that answers with the printed values can have."""
    if row.unit == "percent":
        maximum, candidates = 100.0, [_rates(value, row.n_pairs) for value in (row.value_a, row.value_b)]
    else:
        half = 0.5 * 10 ** -_decimals(row)
        maximum = float(_LONGEST)
        candidates = [[max(0.0, value - half), value, value + half] for value in (row.value_a, row.value_b)]
    p_values = []
    for a, b in product(*candidates):
        error = math.sqrt((a * (maximum - a) + b * (maximum - b)) / row.n_pairs)
        p_values.append(Estimate(a - b, error).p_zero() if error else 1.0)
    return (min(p_values) if row.unit == "percent" else 0.0), max(p_values)


def _rates(printed: float, n: int) -> list[float]:
    """The rates of n answers (in percent) that are printed as this value, with three decimals."""
    middle = printed / 100 * n
    counts = range(math.floor(middle - n * 1e-5) - 1, math.ceil(middle + n * 1e-5) + 2)
    return [100 * count / n for count in counts if count >= 0 and round(100 * count / n, 3) == printed] or [printed]


def _decimals(row: PublishedRow) -> int:
    """The number of decimals with which both values are printed."""
    return max(len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in (row.value_a, row.value_b))


def page() -> str:
    """Returns the page."""
    entries = list(left())
    chat = [entry for entry in entries if (entry.row.model, entry.row.corpus) == ("seq2seq-debiased_chat", "twitter")]
    cda = [entry for entry in entries if (entry.row.model, entry.row.source) == ("seq2seq-cda", "Liu2022 Table 3.3")]
    impossible_values = impossible()
    return _PAGE.format(
        left="\n".join(map(_left_row, entries)),
        lower=_counted(
            entries, lambda entry: entry.level * _mean(entry.base) < min(entry.base.value_a, entry.base.value_b)
        ),
        higher=_counted(
            entries, lambda entry: entry.level * _mean(entry.base) > max(entry.base.value_a, entry.base.value_b)
        ),
        chat=_kept(entry for entry in chat if entry.level < _FALLEN),
        cda=_kept(entry for entry in cda if entry.level < _FALLEN),
        positive=next(entry.row.p for entry in chat if entry.row.measure == "sentiment_positive"),
        released=_RELEASED,
        count=len(impossible_values),
        impossible="\n".join(map(_impossible_row, impossible_values)),
        printed_pairs=_pairs(printed=True),
        all_pairs=_pairs(printed=False),
    )


def _mean(row: PublishedRow) -> float:
    return (row.value_a + row.value_b) / 2


def _counted(entries: Iterable[Left], condition: Callable[[Left], bool]) -> str:
    """How many rows of each table meet a condition: `11 of 15 rows of table 3.3, ...`."""
    rows = list(entries)
    tables = dict.fromkeys(entry.row.source for entry in rows)
    return ", ".join(
        f"{sum(condition(entry) for entry in rows if entry.row.source == name)} of "
        f"{sum(entry.row.source == name for entry in rows)} rows of {name}"
        for name in tables
    )


def _left_row(entry: Left) -> str:
    row, base = entry.row, entry.base
    gap = f"{entry.gap:.0%}" if entry.gap is not None else "–"
    return (
        f"| {row.source} | {row.model}, {row.dimension} | {measure_label(row.measure)} | {base.value_a:g} / "
        f"{base.value_b:g} | {row.value_a:g} / {row.value_b:g} | {entry.level:.0%} | {gap} |"
    )


def _kept(entries: Iterable[Left]) -> str:
    return ", ".join(f"{measure_label(entry.row.measure).lower()} {entry.level:.0%}" for entry in entries)


def _impossible_row(entry: Impossible) -> str:
    row = entry.row
    least, most = f"{entry.least:.3g}", f"{entry.most:.3g}"
    allowed = f"at most {entry.most:.2g}" if not entry.least else most if least == most else f"{least} to {most}"
    return (
        f"| {row.source} | {row.model} | {measure_label(row.measure)} | {row.value_a:g} | {row.value_b:g} | "
        f"{entry.printed:g} | {allowed} |"
    )


def _pairs(*, printed: bool) -> str:
    counts = {name: len(stereotypes_of(load_dimension(name), printed=printed).pairs) for name in _DIMENSIONS}
    return ", ".join(f"{name} {count}" for name, count in counts.items())


if __name__ == "__main__":
    print(page(), end="")
