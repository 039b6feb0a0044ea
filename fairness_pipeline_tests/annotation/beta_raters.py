"""Simulated annotators in groups, whose rates are beta distributed around those of their group."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

NAMES = "abcdefgh"


def drawn(
    seed: int,
    *,
    items: int,
    raters: int,
    per: int,
    sensitivity: Sequence[float] = (0.75, 0.75),
    specificity: Sequence[float] = (0.9, 0.9),
    prevalence: float = 0.3,
    spread: float | Sequence[float] = 30.0,
    shares: Sequence[float] | None = None,
    work: Sequence[float] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """Draws labels, the annotators' groups (a, b, ... of one category `g`), and the items' truth.

    Args:
        seed: The draw's seed.
        items: The number of items.
        raters: The number of annotators.
        per: Labels per item.
        sensitivity: Each group's mean.
        specificity: Each group's mean.
        prevalence: Share of positive items.
        spread: f of Beta(m f, (1 - m) f), one for all groups or one per group.
        shares: Each group's share of the annotators; equal if left out.
        work: How much an annotator of each group labels, in any unit; equal if left out.
    """
    random = np.random.default_rng([seed, 11])
    count = max(len(sensitivity), len(specificity))
    parts = np.full(count, 1 / count) if shares is None else np.asarray(shares)
    group = np.searchsorted(parts.cumsum(), (np.arange(raters) + 0.5) / raters)
    f = np.broadcast_to(np.asarray(spread, float), count)[group]
    rates = []
    for means in (sensitivity, specificity):
        m = np.asarray(means, float)[group]
        rates.append(random.beta(m * f, (1 - m) * f))
    truth = (random.random(items) < prevalence).astype(int)
    weight = np.ones(count) if work is None else np.asarray(work, float)
    chosen = (random.gumbel(size=(items, raters)) + np.log(weight[group])).argsort(axis=1)[:, -per:]
    positive = np.where(truth[:, None] == 1, rates[0][chosen], 1 - rates[1][chosen])
    label = (random.random(chosen.shape) < positive).astype(int)
    data = pd.DataFrame({"task": np.repeat(np.arange(items), per), "worker": chosen.ravel(), "label": label.ravel()})
    groups = pd.DataFrame({"g": pd.Categorical([NAMES[g] for g in group], categories=list(NAMES[:count]))})
    return data, groups, pd.Series(truth)
