"""Do the scores of one group scatter more? Noise in one group only does not move the mean gap.

A person's scatter is the typical (root mean square) distance of their sentences' scores from the median of their group
in the same template and emotion word. The test is that of the means: names change groups, noun phrases change sides.
"""

from typing import NamedTuple

import numpy as np

from fairness_pipeline.measures.sentiment.equity_pairs import NOUN_PHRASES, Design, People
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.statistics.person_level import label_permutation, sign_flip


class Scatter(NamedTuple):
    """The kind of persons whose scatter differs most, in one affect.

    Attributes:
        kind: The kind of persons.
        difference: The median person's scatter on side a minus that on side b: one extreme name does not move it.
        p_holm: The smallest p over kinds of persons, times their number; adjusted by Holm over affects.
    """

    kind: str
    difference: float
    p_holm: float


def scatter(design: Design, scores: np.ndarray, margins: np.ndarray) -> list[Scatter]:
    """The comparison of scatter, one per affect.

    Args:
        design: A dimension's sentences.
        scores: (sentences, affects), in 0..1.
        margins: (affects,) A kind with a smaller difference of medians is reported only if no kind reaches its margin.
    """
    kinds = [kind for kind in design.people if kind not in design.parts]
    tests, differences = [], []
    for kind in kinds:
        people = design.people[kind]
        distance = _distance(people, scores[people.sentences], paired=kind == NOUN_PHRASES)
        if kind == NOUN_PHRASES:
            a, b = people.pairs
            tests.append(sign_flip(distance[a] - distance[b]))
        else:
            tests.append(label_permutation(distance, people.on_a, people.strata))
        median_a, median_b = (np.median(distance[side], axis=0) for side in (people.on_a, ~people.on_a))
        differences.append(median_a - median_b)
    p = np.array([test.p for test in tests])
    difference = np.array(differences)
    large = np.abs(difference) >= margins
    first = np.where(large | ~large.any(axis=0), p, np.inf).argmin(axis=0)
    affects = range(scores.shape[1])
    adjusted = holm([min(1.0, len(kinds) * float(p[first[affect], affect])) for affect in affects])
    return [
        Scatter(kinds[first[affect]], float(difference[first[affect], affect]), float(adjusted[affect]))
        for affect in affects
    ]


def _distance(people: People, scores: np.ndarray, *, paired: bool) -> np.ndarray:
    """(people, affects) each person's scatter, from (people, cells, affects) scores."""
    group = 2 * (np.zeros_like(people.strata) if paired else people.strata) + people.on_a
    distance = np.empty((len(group), scores.shape[2]))
    for members in (group == number for number in np.unique(group)):
        # The median, as a single name must not move the others' distance.
        deviation = scores[members] - np.median(scores[members], axis=0)
        distance[members] = np.sqrt(np.square(deviation).mean(axis=1))
    return distance
