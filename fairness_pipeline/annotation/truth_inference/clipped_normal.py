"""Probabilities that are normal over annotators and clipped to (0, 1): their posterior, given binomial counts.

t_r ~ N(m_r, sd^2), and the probability is min(max(t_r, EDGE), 1 - EDGE). An annotator has `right` correct labels and
`wrong` incorrect ones. Inside the interval the posterior is integrated with Gauss-Legendre quadrature. Outside of it
the likelihood is constant, and the tails of the normal distribution are known.
"""

from typing import NamedTuple

import numpy as np
import scipy

EDGE = 0.02
"""How close a probability can come to 0 and 1. Nobody counts as always right."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_REACH = 7.0
"""The nodes span this many standard deviations of the posterior on either side."""
_HALVINGS = 14
"""Enough halvings to know the mode to 0.0001. The nodes reach far around it, so it need not be exact."""
_LOG_ROOT = 0.5 * np.log(2 * np.pi)


class Posterior(NamedTuple):
    """For each annotator: log of the marginal likelihood; mean and variance of t; mean of the probability, of its
    logarithm, and of the logarithm of its complement."""

    evidence: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    probability: np.ndarray
    log_right: np.ndarray
    log_wrong: np.ndarray


def posterior(mean: np.ndarray, sd: float, right: np.ndarray, wrong: np.ndarray) -> Posterior:
    """The posterior of each annotator's t and probability.

    Args:
        mean: (annotators,) m_r.
        sd: The standard deviation of t around m_r.
        right: (annotators,) the number of correct labels. It need not be whole.
        wrong: (annotators,) the number of incorrect labels.
    """
    t, log_weights = _nodes(mean, sd, right, wrong)
    log_t, log_not = np.log(t), np.log1p(-t)
    inside = log_weights + right[:, None] * log_t + wrong[:, None] * log_not
    inside -= 0.5 * np.square((t - mean[:, None]) / sd) + np.log(sd) + _LOG_ROOT
    low, high = np.log(EDGE), np.log1p(-EDGE)
    z = np.stack([EDGE - mean, mean - (1 - EDGE)], axis=1) / sd
    tails = scipy.special.log_ndtr(z) + np.stack([right * low + wrong * high, right * high + wrong * low], axis=1)
    evidence = np.logaddexp.reduce(np.concatenate([inside, tails], axis=1), axis=1)
    share = np.exp(inside - evidence[:, None])
    outside = np.exp(tails - evidence[:, None])
    ratio = np.exp(-0.5 * np.square(z) - _LOG_ROOT - scipy.special.log_ndtr(z))  # density of the normal over its tail
    deviation = t - mean[:, None]
    first = (share * deviation).sum(axis=1) + sd * (outside * ratio * [-1.0, 1.0]).sum(axis=1)
    second = (share * np.square(deviation)).sum(axis=1) + sd**2 * (outside * (1 - z * ratio)).sum(axis=1)
    return Posterior(
        evidence,
        mean + first,
        np.maximum(second - np.square(first), 0.0),
        (share * t).sum(axis=1) + outside @ [EDGE, 1 - EDGE],
        (share * log_t).sum(axis=1) + outside @ [low, high],
        (share * log_not).sum(axis=1) + outside @ [high, low],
    )


def _nodes(mean: np.ndarray, sd: float, right: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(annotators, nodes): the nodes at which the posterior is evaluated inside the interval, and the log of their
    weights."""
    low, high = np.full(len(mean), EDGE), np.full(len(mean), 1 - EDGE)
    for _ in range(_HALVINGS):  # the log posterior is concave: its slope is 0 at most once
        mode = (low + high) / 2
        rising = right / mode - wrong / (1 - mode) - (mode - mean) / sd**2 > 0
        low, high = np.where(rising, mode, low), np.where(rising, high, mode)
    reach = _REACH / np.sqrt(right / mode**2 + wrong / (1 - mode) ** 2 + 1 / sd**2)
    low, high = np.maximum(mode - reach, EDGE), np.minimum(mode + reach, 1 - EDGE)
    half = (high - low) / 2
    return low[:, None] + half[:, None] * (_NODES + 1), np.log(half)[:, None] + np.log(_WEIGHTS)
