"""Probabilities that are beta distributed over annotators, given binomial counts.

p_r ~ Beta(m f, (1 - m) f) with logit m = x_r' theta and log f = x_r' gamma: mean and spread are linear in the same
design (with one spread for all groups a difference of means is biased). An annotator has `right` correct labels and
`wrong` ones; with p_r integrated out, evidence = ln B(a + right, b + wrong) - ln B(a, b), a = m f, b = (1 - m) f.
"""

from typing import NamedTuple

import numpy as np
import scipy

from fairness_pipeline.annotation.truth_inference.group_design import GroupDesign

_START = (1.0, np.log(10.0))
"""The start of logit m and of log f."""
_PRIOR_LEVEL, _PRIOR_EFFECT = 5.0, 2.0
_PRIOR_SPREAD, _SD_SPREAD, _PRIOR_SPREADS = np.log(30.0), 2.0, 1.0
"""Priors: u ~ N(0, 5^2), its effects ~ N(0, 2^2); log f ~ N(log 30, 2^2), its effects ~ N(0, 1)."""
_FARTHEST = 12.0
"""The largest logit and log f that are evaluated."""


class Curve(NamedTuple):
    """The log evidence of each annotator, with its slopes and curvatures in logit m and in log f.

    Attributes:
        evidence: (annotators,).
        slope: (annotators, 2).
        curvature: (annotators, 2, 2).
    """

    evidence: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


class BetaRates:
    """The rates of annotators in groups: sensitivities, or specificities.

    Args:
        design: The annotators' groups.
        parameters: (2, columns) theta and gamma; the start of a fit if left out.
    """

    def __init__(self, design: GroupDesign, parameters: np.ndarray | None = None) -> None:
        self.design = design
        size = design.matrix.shape[1]
        self._centre = np.zeros((2, size))
        self._centre[1, 0] = _PRIOR_SPREAD
        self._precision = np.zeros((2 * size, 2 * size))
        for part, (level, effects) in enumerate(((_PRIOR_LEVEL, _PRIOR_EFFECT), (_SD_SPREAD, _PRIOR_SPREADS))):
            block = slice(part * size, (part + 1) * size)
            self._precision[block, block] = design.precision(effects)
            self._precision[part * size, part * size] = 1 / level**2
        self._least = float(np.linalg.eigvalsh(self._precision)[0])
        if parameters is None:
            parameters = np.zeros((2, size))
            parameters[:, 0] = _START
        self.parameters = parameters

    def means(self, design: np.ndarray | None = None) -> np.ndarray:
        """(annotators,) m, by their own groups or by another design."""
        matrix = self.design.matrix if design is None else design
        return np.asarray(scipy.special.expit(np.clip(matrix @ self.parameters[0], -_FARTHEST, _FARTHEST)))

    def shapes(self) -> tuple[np.ndarray, np.ndarray]:
        """(annotators,) a and b of each annotator's distribution."""
        m = self.means()
        f = np.exp(np.clip(self.design.matrix @ self.parameters[1], -_FARTHEST, _FARTHEST))
        return m * f, (1 - m) * f

    def log_evidence(self, right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        """(annotators,) the log evidence of the counts."""
        a, b = self.shapes()
        betaln = scipy.special.betaln
        return np.asarray(betaln(a + right, b + wrong) - betaln(a, b))

    def log_prior(self) -> float:
        """The log prior of the parameters, up to a constant."""
        deviation = (self.parameters - self._centre).ravel()
        return -0.5 * float(deviation @ self._precision @ deviation)

    def logs(self, right: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(annotators,) the means of ln p and of ln(1 - p), given the counts."""
        a, b = self.shapes()
        digamma = scipy.special.digamma
        total = digamma(a + b + right + wrong)
        return digamma(a + right) - total, digamma(b + wrong) - total

    def drawn(self, right: np.ndarray, wrong: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """(annotators,) p, drawn given the counts."""
        a, b = self.shapes()
        return random.beta(a + right, b + wrong)

    def curve(self, right: np.ndarray, wrong: np.ndarray) -> Curve:
        """The log evidence with its first and second derivatives."""
        m, (a, b) = self.means(), self.shapes()
        digamma, f = scipy.special.digamma, a + b
        shared = digamma(f) - digamma(f + right + wrong)
        of_a = digamma(a + right) - digamma(a) + shared
        of_b = digamma(b + wrong) - digamma(b) + shared
        mixed = _trigamma(f) - _trigamma(f + right + wrong)
        aa = _trigamma(a + right) - _trigamma(a) + mixed
        bb = _trigamma(b + wrong) - _trigamma(b) + mixed
        v = m * b  # f m (1 - m): how a grows and b falls with logit m
        slope = np.stack([v * (of_a - of_b), a * of_a + b * of_b], axis=1)
        mean = np.square(v) * (aa - 2 * mixed + bb) + v * (1 - 2 * m) * (of_a - of_b)
        both = v * (of_a - of_b) + v * (a * (aa - mixed) + b * (mixed - bb))
        spread = slope[:, 1] + a * a * aa + 2 * a * b * mixed + b * b * bb
        curvature = np.stack([np.stack([mean, both], axis=1), np.stack([both, spread], axis=1)], axis=1)
        return Curve(self.log_evidence(right, wrong), slope, curvature)

    def scores(self, curve: Curve) -> np.ndarray:
        """(annotators, parameters) each annotator's part of the slope."""
        return (curve.slope[:, :, None] * self.design.matrix[:, None, :]).reshape(len(curve.slope), -1)

    def information(self, curve: Curve) -> np.ndarray:
        """(parameters, parameters) the negative curvature of the penalised log evidence."""
        x = self.design.matrix
        size = x.shape[1]
        total = np.einsum("rij,rp,rq->ipjq", -curve.curvature, x, x, optimize=True)
        return np.asarray(total.reshape(2 * size, 2 * size)) + self._precision

    def step(self, right: np.ndarray, wrong: np.ndarray) -> "BetaRates":
        """The rates after a Newton step, halved until the penalised log evidence rises; unchanged if it never does."""
        curve = self.curve(right, wrong)
        before = float(curve.evidence.sum()) + self.log_prior()
        deviation = (self.parameters - self._centre).ravel()
        slope = self.scores(curve).sum(axis=0) - self._precision @ deviation
        values, vectors = np.linalg.eigh(self.information(curve))
        # Far from the maximum the surface is not concave: there each direction is taken uphill.
        move = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-6))
        move *= min(1.0, 3.0 / max(1e-12, float(np.abs(move).max())))
        length = 1.0
        while length > 1e-4:
            candidate = BetaRates(self.design, self.parameters + length * move.reshape(2, -1))
            if float(candidate.log_evidence(right, wrong).sum()) + candidate.log_prior() >= before:
                return candidate
            length /= 2
        return self

    def covariance(self, right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        """(parameters, parameters) the covariance of the estimates, given the counts: the inverse information, and the
        further variance that the annotators' own slopes show (the sandwich)."""
        curve = self.curve(right, wrong)
        values, vectors = np.linalg.eigh(self.information(curve))
        # Away from the maximum a direction may be flat or convex: there the prior alone counts.
        root = vectors / np.sqrt(np.maximum(values, self._least))  # root @ root.T is the inverse information
        scores = self.scores(curve) @ root
        count = max(2, len(scores))
        variances, directions = np.linalg.eigh(scores.T @ scores * count / max(1, count - self.design.matrix.shape[1]))
        excess = directions * np.sqrt(np.maximum(variances - 1, 0))
        widening = root @ excess
        return np.asarray(root @ root.T + widening @ widening.T)


def _trigamma(x: np.ndarray) -> np.ndarray:
    return np.asarray(scipy.special.zeta(2.0, x))
