"""`circle` and `moon`: points of two classes and annotators with known biases (Liu 2022, section 5.4.2, table 5.4)."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from fairness_pipeline.corpora.annotators.annotated_corpus import Simulated

_INNER = 0.5
"""The radius of the inner circle; the outer circle has radius 1."""


class Simulation(NamedTuple):
    """One draw of a simulated corpus.

    Attributes:
        points: (items, 2); the labelled items come first.
        truth: (items,) 0 or 1.
        groups: (annotators, categories) 0 or 1.
        sensitivity: (annotators,) P(z = 1 | y = 1).
        specificity: (annotators,) P(z = 0 | y = 0).
        annotator: (labelled items, labels), the annotator of each label.
        label: (labelled items, labels), the label that the annotator gave.
    """

    points: np.ndarray
    truth: np.ndarray
    groups: np.ndarray
    sensitivity: np.ndarray
    specificity: np.ndarray
    annotator: np.ndarray
    label: np.ndarray


def simulate(settings: Simulated, draw: int) -> Simulation:
    """Draws points, annotators and labels: alpha_r = u + sum of alpha_{p, g} + N(0, sd^2), clipped; beta_r equally."""
    random = np.random.default_rng([settings.seed, draw])
    categories = list(settings.categories.values())
    groups = random.integers(0, 2, (settings.annotators, len(categories)))
    sensitivity, specificity = (
        np.clip(
            settings.level_of(name)
            + sum(np.array(getattr(category, name))[groups[:, index]] for index, category in enumerate(categories))
            + random.normal(0, settings.individual_sd, settings.annotators),
            settings.edge,
            1 - settings.edge,
        )
        for name in ("sensitivity", "specificity")
    )
    points, truth = _points(settings, settings.instances, random)
    test_points, test_truth = _points(settings, max(1, settings.instances // 2), random)
    order = random.random((len(truth), settings.annotators)).argsort(axis=1)
    annotator = order[:, : settings.labels]
    positive = np.where(truth[:, None] == 1, sensitivity[annotator], 1 - specificity[annotator])
    label = (random.random(annotator.shape) < positive).astype(np.int64)
    items = np.concatenate([points, test_points]), np.concatenate([truth, test_truth])
    return Simulation(*items, groups, sensitivity, specificity, annotator, label)


def true_contrast(settings: Simulated, groups: np.ndarray, category: str, response: str) -> float:
    """How far the mean probability of a category's first group is above that of its second, over these annotators.

    Args:
        settings: The parameters of the simulation.
        groups: (annotators, categories) 0 or 1.
        category: The category.
        response: `sensitivity` or `specificity`.
    """
    means = []
    for group in (0, 1):
        total = np.full(len(groups), settings.level_of(response))
        for index, (name, parameters) in enumerate(settings.categories.items()):
            effects = np.array(getattr(parameters, response))
            total += effects[group] if name == category else effects[groups[:, index]]
        means.append(float(_clipped_mean(total, settings.individual_sd, settings.edge).mean()))
    return means[0] - means[1]


def _clipped_mean(mean: np.ndarray, sd: float, edge: float) -> np.ndarray:
    """The mean of normal draws that are kept in `edge` to 1 - `edge`."""
    if sd == 0:
        return np.clip(mean, edge, 1 - edge)
    low, high = (edge - mean) / sd, (1 - edge - mean) / sd
    below, above = ndtr(low), ndtr(-high)
    density = (np.exp(-0.5 * low**2) - np.exp(-0.5 * high**2)) / np.sqrt(2 * np.pi)
    return np.asarray(edge * below + (1 - edge) * above + mean * (1 - below - above) + sd * density)


def _points(settings: Simulated, instances: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points (2 instances, 2) and their classes."""
    from sklearn.datasets import make_circles, make_moons

    seed = int(random.integers(2**31))
    if settings.shape == "circle":
        points, truth = make_circles(2 * instances, noise=settings.noise, factor=_INNER, random_state=seed)
    else:
        points, truth = make_moons(2 * instances, noise=settings.noise, random_state=seed)
    return points, truth
