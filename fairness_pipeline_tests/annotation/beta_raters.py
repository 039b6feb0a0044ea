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
    """Labels, the annotators' groups (a, b, ... of one category `g`), and the items' truth.

    Args:
        seed: Of the draw.
        items: How many.
        raters: How many.
        per: Labels an item.
        sensitivity: The mean of each group.
        specificity: The mean of each group.
        prevalence: Share of positive items.
        spread: f of Beta(m f, (1 - m) f), of all groups or of each.
        shares: Of annotators in each group; alike if left out.
        work: How much an annotator of each group labels, in any unit; alike if left out.
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
    who = (random.gumbel(size=(items, raters)) + np.log(weight[group])).argsort(axis=1)[:, -per:]
    positive = np.where(truth[:, None] == 1, rates[0][who], 1 - rates[1][who])
    label = (random.random(who.shape) < positive).astype(int)
    data = pd.DataFrame({"task": np.repeat(np.arange(items), per), "worker": who.ravel(), "label": label.ravel()})
    people = pd.DataFrame({"g": pd.Categorical([NAMES[g] for g in group], categories=list(NAMES[:count]))})
    return data, people, pd.Series(truth)
