"""Is one template or one emotion word scored differently for the groups? A mean over 144 sentences hides it."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fairness_pipeline.measures.sentiment.equity_pairs import NOUN_PHRASES, Design
from fairness_pipeline.statistics.person_level import group_weights

DRAWS, SEED = 999, 0
_FAMILY = 6
"""The level is divided by this number of rows of an audit, because units are one more question: five affects and
their mean."""
_FAR = {"template": 8.0, "word": 6.0}
"""A unit is an outlier if it is this many scaled median deviations off the others."""


class Unit(NamedTuple):
    """The name of a unit, and the gap between the groups in its sentences."""

    name: str
    gap: float


class Units(NamedTuple):
    """For one affect: the p of the hypothesis that the groups' gap is the same in all units, and the outlying units.

    `widest` is the unit that differs most, whether or not it is an outlier.
    """

    p_adjusted: float
    outliers: list[Unit]
    widest: str


def units(design: Design, scores: np.ndarray, weights: dict[str, float], margins: np.ndarray) -> list[Units]:
    """Whether the groups' gap in one template or word differs from the gap in the others, for each affect.

    For each person, take the mean in a unit minus the mean in the others. D_k is the difference of these values between
    the groups. Names change groups within their strata, and pairs of noun phrases change sides. p is the p of the
    largest |D_k| / sd of the draws over all units. A unit is an outlier if its gap lies beyond the margin, and is off
    the median gap of its kind by the margin and by eight (templates) or six (words) scaled median deviations.

    Args:
        design: The design, with its persons and cells.
        scores: (sentences, affects).
        weights: The weight of each kind of persons in the difference.
        margins: The largest difference that does not matter, one per affect.
    """
    names, kinds, members = _members(design)
    persons = [design.people[kind] for kind in weights]
    person_scores = np.concatenate([scores[people.sentences] for people in persons])  # (persons, cells, affects)
    sizes = members.sum(axis=1)
    inside = np.einsum("kc,pca->pka", members / sizes[:, None], person_scores)
    rest = person_scores.shape[1] - sizes
    outside = np.einsum("kc,pca->pka", (1 - members) / np.maximum(rest, 1)[:, None], person_scores)
    excess = (inside - outside).reshape(len(person_scores), -1)
    groups = tuple(
        (kind == NOUN_PHRASES, weight, tuple(people.on_a.tolist()), tuple(people.strata.tolist()))
        for (kind, weight), people in zip(weights.items(), persons, strict=True)
    )
    contrast, drawn = _contrasts(groups, 0)[0], _contrasts(groups, DRAWS)
    shape = (len(names), person_scores.shape[2])
    observed = np.abs(contrast @ excess).reshape(shape)
    of_draws = (drawn @ excess).reshape(len(drawn), *shape)
    spread = of_draws.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(spread > 1e-9, observed / spread, 0.0)
        drawn_ratio = np.where(spread > 1e-9, np.abs(of_draws) / spread, 0.0).max(axis=1)
    gaps = (contrast @ inside.reshape(len(person_scores), -1)).reshape(shape)
    results = []
    for affect in range(person_scores.shape[2]):
        largest = float(ratio[:, affect].max())
        p = (int((drawn_ratio[:, affect] >= largest - 1e-9).sum()) + 1) / (len(drawn) + 1) if largest else 1.0
        outlying = _outlying(gaps[:, affect], np.array(kinds), sizes, float(margins[affect]))
        outliers = [Unit(names[k], float(gaps[k, affect])) for k in np.flatnonzero(outlying)]
        widest = names[int(ratio[:, affect].argmax())]
        results.append(Units(min(1.0, _FAMILY * p), sorted(outliers, key=lambda unit: -abs(unit.gap)), widest))
    return results


def _outlying(gaps: np.ndarray, kinds: np.ndarray, sizes: np.ndarray, margin: float) -> np.ndarray:
    outlying = np.zeros(len(gaps), dtype=bool)
    for kind, far in _FAR.items():
        of_kind = kinds == kind
        if of_kind.sum() < 3:
            continue
        deviation, root = gaps[of_kind] - np.median(gaps[of_kind]), np.sqrt(sizes[of_kind])
        plain = 1.4826 * float(np.median(np.abs(deviation)))
        by_size = 1.4826 * float(np.median(np.abs(deviation * root))) / root
        scale = np.maximum(plain, by_size)
        outlying[of_kind] = (np.abs(deviation) > np.maximum(far * scale, margin)) & (np.abs(gaps[of_kind]) > margin)
    return outlying


def _members(design: Design) -> tuple[list[str], list[str], np.ndarray]:
    """The names and kinds of the units, and which cells each unit holds (units, cells)."""
    names, kinds, rows = [], [], []
    for template in np.unique(design.template):
        names.append(f"template {template}")
        kinds.append("template")
        rows.append(design.template == template)
    for word in dict.fromkeys(design.word[[emotion is not None for emotion in design.emotion]].tolist()):
        names.append(f"the word '{word}'")
        kinds.append("word")
        rows.append(design.word == word)
    return names, kinds, np.array(rows, dtype=float)


@lru_cache(maxsize=8)
def _contrasts(groups: tuple[tuple[bool, float, tuple[bool, ...], tuple[int, ...]], ...], draws: int) -> np.ndarray:
    """(draws, persons) the weight of each person's mean in the groups' difference. Without draws it is the true
    assignment.

    Args:
        groups: For each kind of persons: whether it is pairs of noun phrases, its weight, and sides and strata.
        draws: The number of draws.
    """
    random = np.random.default_rng(SEED)
    parts = []
    for in_pairs, weight, sides, of_person in groups:
        on_a, strata = np.array(sides), np.array(of_person)
        part = np.tile(weight * group_weights(on_a, strata), (max(draws, 1), 1))
        for stratum in np.unique(strata) if draws else ():
            in_stratum = strata == stratum
            if in_pairs:
                part[:, in_stratum] *= random.choice((1.0, -1.0), (draws, 1))
            else:
                part[:, in_stratum] = random.permuted(part[:, in_stratum], axis=1)
        parts.append(part)
    return np.concatenate(parts, axis=1)
