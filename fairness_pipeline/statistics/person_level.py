"""Tests of scores of sentences that share their persons, their templates and their emotion words.

If a system merely likes one name more than another, whatever the group, it shifts all pairs with that name at once. If
it happens to score one group higher in one template, it shifts all sentences made from that template. A test over pairs
treats these pairs as independent and calls such systems biased far too often. The tests here do not.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy  # Student's t without the cost of a distribution object

_ROUNDING = 1e-9
"""Smaller differences are rounding errors of equal scores in 0..1."""
_EXACT = 14
"""Up to this many pairs, every pattern of signs is tried."""


class Tests(NamedTuple):
    """A test of each column: its two-sided p, and the difference (a - b) with its standard error and degrees of
    freedom.

    `freedom` may be one number per column. `reach` is how far the 95% interval extends below and above the difference,
    if the interval is not Student's.
    """

    p: np.ndarray
    difference: np.ndarray
    error: np.ndarray
    freedom: np.ndarray | float
    reach: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def t(self) -> np.ndarray:
        """Student's statistic of each column. NaN if nothing varies."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.error > 0, self.difference / self.error, np.nan)

    @property
    def p_student(self) -> np.ndarray:
        """Student's p of each column. It is 1 if nothing differs. The error is at least the rounding error."""
        t = np.abs(self.difference) / np.maximum(self.error, _ROUNDING)
        return np.where(self.difference != 0, 2 * scipy.special.stdtr(self.freedom, -t), 1.0)

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of each difference's central interval at `level`, by Student's t."""
        reach = scipy.special.stdtrit(self.freedom, 0.5 + level / 2) * self.error
        return self.difference - reach, self.difference + reach

    @property
    def half_widths(self) -> tuple[np.ndarray, np.ndarray]:
        """`reach`, or Student's if the test has none of its own."""
        return self.reach or (self.difference - self.interval(0.95)[0],) * 2

    def interval_95(self) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the 95% interval, by the test's own `reach` if it has one."""
        if self.reach is None:
            return self.interval(0.95)
        return self.difference - self.reach[0], self.difference + self.reach[1]

    def part(self, columns: slice) -> "Tests":
        """The tests of some columns."""
        freedom = self.freedom if isinstance(self.freedom, float) else self.freedom[columns]
        reach = None if self.reach is None else (self.reach[0][columns], self.reach[1][columns])
        return Tests(self.p[columns], self.difference[columns], self.error[columns], freedom, reach)

    def minimum_detectable(self, alpha: float = 0.05, power: float = 0.8) -> np.ndarray:
        """The true differences that a two-sided Student's t test at `alpha` would find with `power`."""
        return (
            scipy.special.stdtrit(self.freedom, 1 - alpha / 2) + scipy.special.stdtrit(self.freedom, power)
        ) * self.error

    def p_equivalence(self, margin: np.ndarray) -> np.ndarray:
        """The larger p of the two one-sided tests that each difference lies outside +-`margin` (Schuirmann 1987)."""
        excess = np.abs(self.difference) - margin
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.error > 0, scipy.special.stdtr(self.freedom, excess / self.error), excess >= 0)


def stacked(tests: Sequence[Tests]) -> Tests:
    """Stacks tests of the same columns as rows of one test: every field is (tests, columns)."""
    shape = len(tests), len(tests[0].p)
    freedom = np.array([np.broadcast_to(test.freedom, shape[1:]) for test in tests])
    p, difference, error = (np.array(field) for field in zip(*(test[:3] for test in tests), strict=True))
    below, above = (np.array(field) for field in zip(*(test.half_widths for test in tests), strict=True))
    return Tests(p, difference, error, freedom, (below, above))


def paired_t_columns(a: np.ndarray, b: np.ndarray) -> Tests:
    """Student's paired t test of each column of scores (pairs, columns).

    p is 1 if no pair differs. If all pairs differ by the same amount, p is that of the exact sign-flip test, 2 / 2^n.
    """
    return _mean_test(_rounded(a - b))


def sign_flip(difference: np.ndarray, draws: int = 9999) -> Tests:
    """The sign-flip test of the mean of paired differences (pairs, columns): either side could have been the other.

    The test is exact for few pairs. If no pattern of signs is farther from 0 than the observed one, the test's p is
    only an upper bound. Student's p then replaces it if it is smaller. The interval is Student's.

    Examples:
        >>> tests = sign_flip(np.array([[1.0], [1.0], [2.0], [-1.0]]))
        >>> tests.p.tolist(), tests.difference.tolist()
        ([0.5], [0.75])
    """
    difference = _rounded(difference)
    n = len(difference)
    tests = _mean_test(difference)
    if n <= _EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=n)))
    else:
        signs = np.random.default_rng(0).choice((1.0, -1.0), (draws + 1, n))
        signs[0] = 1.0
    reached = (np.abs(signs @ difference / n) >= np.abs(tests.difference) - _ROUNDING).sum(axis=0)
    p, least = reached / len(signs), (2 if n <= _EXACT else 1) / len(signs)
    return tests._replace(p=np.where(p <= least, np.minimum(p, tests.p_student), p))


def label_permutation(scores: np.ndarray, on_a: np.ndarray, strata: np.ndarray, permutations: int = 9999) -> Tests:
    """A permutation test of the group labels of names within strata, such as race among names of one gender.

    The statistic is the mean over strata of mean(a) - mean(b). p = (c + 1) / (permutations + 1), where c is the number
    of draws at least as far from 0 as the observed value (Phipson and Smyth 2010). If no draw is, and Student's p is
    smaller, Student's p is used. The error is Welch's. The interval contains the shifts of side a that the test does
    not reject.

    Args:
        scores: Mean score of each name (names, columns).
        on_a: Whether each name is on side a (names).
        strata: The stratum of each name (names). Labels are exchanged within strata.
        permutations: The number of draws, which are the same for all columns.
    """
    difference = _rounded(group_weights(on_a, strata) @ scores)
    weights, moved = _drawn_weights(tuple(on_a.tolist()), tuple(strata.tolist()), permutations)
    drawn = weights @ scores
    groups = [scores[(strata == stratum) & (on_a == side)] for stratum in np.unique(strata) for side in (True, False)]
    variance = sum(group.var(axis=0, ddof=1) / len(group) for group in groups) / len(np.unique(strata)) ** 2
    tests = Tests(difference, difference, _rounded(np.sqrt(variance)), float(len(scores) - len(groups)))
    reached = (np.abs(drawn) >= np.abs(difference) - _ROUNDING).sum(axis=0)
    p = np.where(reached == 0, np.minimum(1 / (permutations + 1), tests.p_student), (reached + 1) / (permutations + 1))
    ends = [_inverted(column, moved, observed) for column, observed in zip(drawn.T, tests.difference, strict=True)]
    below, above = np.minimum(np.array(ends).T, 8 * tests.error)
    return tests._replace(p=p, reach=(below, above))


def _inverted(drawn: np.ndarray, moved: np.ndarray, difference: float) -> tuple[float, float]:
    """How far below and above the difference a shift of side a must lie for the test to reject it at 5%.

    A draw reaches the shift d + side m, of which it moves a share v, if |u - side v m| >= m with u = draw - v d. This
    holds up to m = |u| / (1 + side v sign(u)). p exceeds 5% as long as enough draws reach the shift.
    """
    centred = drawn - moved * difference
    size = np.abs(centred)
    signed = np.copysign(moved, centred * moved)
    always = (size <= _ROUNDING) & (np.abs(moved) >= 1 - _ROUNDING)  # the labels are as observed, or all exchanged
    allowed = int(0.05 * (len(drawn) + 1) + _ROUNDING) - 1
    rank = len(drawn) - 1 - max(0, allowed)
    ends = []
    for side in (-1.0, 1.0):
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = size / np.maximum(0.0, 1 + side * signed)
        limits[always] = np.inf
        ends.append(float(np.partition(limits, rank)[rank]))
    return ends[0], ends[1]


def two_parts(first: Tests, second: Tests, weights: tuple[float, float]) -> Tests:
    """The weighted sum of two independent differences, by Student's t with Welch and Satterthwaite's degrees of
    freedom."""
    difference = weights[0] * first.difference + weights[1] * second.difference
    squares = [
        ((weight * test.error) ** 2, test.freedom) for weight, test in zip(weights, (first, second), strict=True)
    ]
    tests = _student(difference, squares)
    exact = np.minimum(1.0, 2 * np.minimum(first.p, second.p))  # if nothing varies, Student's t has no value
    return tests._replace(p=np.where((tests.error == 0) & (tests.difference != 0), exact, tests.p))


class Sources(NamedTuple):
    """The error that templates and words add to a difference, and the standard deviations of both.

    `error` (with `freedom`) is how much a difference would vary from one set of templates and words to another, beyond
    the variation of single sentences.
    """

    error: np.ndarray
    freedom: np.ndarray | float
    templates: np.ndarray
    words: np.ndarray


def stacked_sources(sources: Sequence[Sources]) -> Sources:
    """Stacks sources of the same columns as rows of one: `freedom` is (sources, 1), all else (sources, columns)."""
    error, freedom, templates, words = (np.array(field) for field in zip(*sources, strict=True))
    return Sources(error, freedom[:, None], templates, words)


def template_error(cells: np.ndarray, templates: np.ndarray, words: np.ndarray, residual: np.ndarray) -> Sources:
    """The error of a mean over sentences' differences, with templates and emotion words as samples.

    The difference for a template and word is modelled as the mean plus random effects of the template, the word and
    their combination. The variances solve the equations that set three sums of squares equal to their expectations
    (Henderson 1953, method 1). The degrees of freedom are those of the templates, which are few and of unequal size:
    (sum of n_t)^2 / (sum of n_t^2) - 1.

    Args:
        cells: The difference for each template and word (cells, columns).
        templates: The template of each cell.
        words: The word of each cell. Each cell without an emotion word counts as a word of its own.
        residual: The variance of the mean that comes from single sentences alone (columns).
    """
    equations = _equations(tuple(templates.tolist()), tuple(words.tolist()))
    squares = np.array([np.square(part @ cells).sum(axis=0) for part in equations.sums])
    of_templates, of_words, of_both = np.maximum(0.0, equations.inverse @ squares)
    shares = equations.shares
    variance = shares[0] * of_templates + shares[1] * of_words + np.maximum(0.0, of_both / len(cells) - residual)
    return Sources(
        _rounded(np.sqrt(variance)),
        max(1.0, 1 / shares[0] - 1),
        _rounded(np.sqrt(of_templates)),
        _rounded(np.sqrt(of_words)),
    )


class _Equations(NamedTuple):
    """Sums of deviations by template, word and cell; the matrix that turns their squares into variances; and the
    share of each variance in the variance of a mean."""

    sums: list[np.ndarray]
    inverse: np.ndarray
    shares: list[float]


@lru_cache(maxsize=64)
def _equations(templates: tuple[int, ...], words: tuple[str, ...]) -> _Equations:
    count = len(templates)
    members = [
        (np.unique(labels, return_inverse=True)[1][:, None] == np.arange(len(set(labels)))).astype(float)
        for labels in (templates, words, range(count))
    ]
    centred = np.eye(count) - 1 / count
    sums = [member.T @ centred / count for member in members]
    expected = np.array([[np.square(part @ member).sum() for member in members] for part in sums])
    # If there is one template or word, or one per cell, its effect cannot be told apart: another effect absorbs it.
    inverse = np.linalg.pinv(expected, rcond=1e-9)
    return _Equations(sums, inverse, [float(np.square(member.sum(axis=0)).sum()) / count**2 for member in members])


def with_templates(persons: Tests, sources: Sources) -> Tests:
    """A test of persons that also treats templates and words as a sample. The more cautious p of both prevails."""
    combined = _student(persons.difference, [(persons.error**2, persons.freedom), (sources.error**2, sources.freedom)])
    persons_reach = persons.half_widths
    added = scipy.special.stdtrit(sources.freedom, 0.975) * sources.error
    reach = np.hypot(persons_reach[0], added), np.hypot(persons_reach[1], added)
    return combined._replace(p=np.where(sources.error > 0, np.maximum(persons.p, combined.p), persons.p), reach=reach)


def _student(difference: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray | float]]) -> Tests:
    """A difference whose variance is the sum of independent `parts`, each with its degrees of freedom."""
    total = np.asarray(sum(square for square, _ in parts))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = total**2 / sum(square**2 / freedom for square, freedom in parts)
    freedoms = [np.broadcast_to(freedom, total.shape).min(axis=-1, keepdims=True) for _, freedom in parts]
    least = np.minimum(*freedoms)
    tests = Tests(total, _rounded(difference), np.sqrt(total), np.where(total > 0, freedom, least))
    return tests._replace(p=tests.p_student)


def _mean_test(difference: np.ndarray) -> Tests:
    n = len(difference)
    mean, error = _rounded(difference.mean(axis=0)), _rounded(difference.std(axis=0, ddof=1)) / np.sqrt(n)
    tests = Tests(np.where(mean == 0, 1.0, 2.0 ** (1 - n)), mean, error, float(n - 1))
    return tests._replace(p=np.where(error > 0, tests.p_student, tests.p))


def group_weights(on_a: np.ndarray, strata: np.ndarray) -> np.ndarray:
    """The weight of each person's score in the difference: 1 over the size of its side and the number of strata."""
    weights = np.empty(len(on_a))
    kinds = np.unique(strata)
    for stratum in kinds:
        for side in (True, False):
            members = (strata == stratum) & (on_a == side)
            weights[members] = (1 if side else -1) / (members.sum() * len(kinds))
    return weights


@lru_cache(maxsize=8)
def _drawn_weights(on_a: tuple[bool, ...], strata: tuple[int, ...], permutations: int) -> tuple[np.ndarray, np.ndarray]:
    """(permutations, names) the weight of each name's score in each draw; and how far each draw moves with side a."""
    random = np.random.default_rng(0)
    weights, labels = group_weights(np.array(on_a), np.array(strata)), np.array(strata)
    drawn = np.tile(weights, (permutations, 1))
    for stratum in np.unique(labels):
        members = labels == stratum
        drawn[:, members] = random.permuted(drawn[:, members], axis=1)
    return drawn, drawn @ np.array(on_a, dtype=float)


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) <= _ROUNDING, 0.0, values)
