"""Tables of known truth: items in clusters, groups, draws, and an effect planted in one group."""

import csv
from io import StringIO

import numpy as np

from fairness_pipeline.statistics.groups import Cells

TOPICS = (
    "rent", "loan", "visa", "repair", "refund", "training", "transfer", "grant", "permit", "parking", "insurance",
    "warranty", "childcare", "library", "gym", "garden", "hotel", "bursary", "moving", "storage", "internship",
    "mentoring", "scholarship", "transport",
)  # fmt: skip
GROUPS, AGES = ("Northtown", "Southtown", "Easttown"), ("younger", "older")
PLANTED = {"plain": 0.3, "instructed": 0.12}
"""How much less often Easttown's requests are approved, by prompt."""


def sample_table() -> str:
    """The table that ships: 24 topics of two requests, three invented towns and two ages, two draws, two prompts.

    `approved` is less likely for Easttown (`PLANTED`); `words`, the length of the answer, depends on no group.
    """
    random = np.random.default_rng(62)
    stream = StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(["topic", "request", "town", "age", "prompt", "draw", "approved", "words"])
    for topic in TOPICS:
        leaning, length = random.normal(0.55, 0.12), random.normal(60, 12)
        for number in (1, 2):
            request, of_request = f"{topic}-{number}", random.normal(0, 0.05)
            for town in GROUPS:
                for age in AGES:
                    for prompt, planted in PLANTED.items():
                        for draw in (1, 2):
                            rate = leaning + of_request - planted * (town == "Easttown")
                            approved = int(random.random() < np.clip(rate, 0.02, 0.98))
                            words = max(1, round(random.normal(length, 6)))
                            rows.writerow([topic, request, town, age, prompt, draw, approved, words])
    return stream.getvalue()


def simulated(
    random: np.random.Generator,
    *,
    clusters: int = 16,
    items: int = 3,
    groups: int = 8,
    rate: float | None = 0.4,
    draws: int = 5,
    missing: float = 0.0,
    unequal: bool = False,
    spread_of_first: float = 1.0,
    skewed: bool = False,
    by_cluster: float = 1.0,
    planted: float = 0.0,
    names: int = 0,
    by_name: float = 0.0,
) -> Cells:
    """Cells of one outcome with random cluster effects of each group; a group's only true effect is the planted one.

    Args:
        random: The generator of all draws.
        clusters: The number of clusters.
        items: The items of a cluster, on average if `unequal`.
        groups: The number of groups.
        rate: The rate of a yes/no outcome; None for a number.
        draws: The draws of a cell.
        missing: The share of cells that are missing.
        unequal: Whether clusters differ in their number of items.
        spread_of_first: How much more the first group varies between clusters than the others.
        skewed: Whether that variation is skewed.
        by_cluster: How much group effects vary between clusters; 0 for items that are not a sample.
        planted: The mean effect added to the first group; it is 0 to twice as much in a cluster.
        names: The names of each group; 0 for none.
        by_name: The standard deviation of the effects of names.
    """
    sizes = random.geometric(1 / items, clusters) if unequal else np.full(clusters, items)
    cluster = np.repeat(np.arange(clusters), sizes)
    count = len(cluster)
    scale = np.full(groups, by_cluster)
    scale[0] *= spread_of_first
    noise = random.exponential(1.0, (clusters, groups)) - 1.0 if skewed else random.normal(size=(clusters, groups))
    names_of_group = max(1, names)
    effects = np.repeat((scale * noise)[cluster][:, :, None], names_of_group, axis=2)
    name_effect = random.normal(0.0, by_name, (groups, names_of_group))
    added = np.zeros((clusters, groups))
    added[:, 0] = random.uniform(*sorted((0.0, 2 * planted)), clusters) if planted else 0.0
    if rate is None:
        level = random.normal(size=count)[:, None, None]
        value = (
            level
            + 0.5 * effects
            + name_effect
            + added[cluster][:, :, None]
            + random.normal(0, 1, effects.shape) / draws**0.5
        )
    else:
        chance = rate + 0.3 * rate * effects + random.normal(0, 0.2 * rate, count)[:, None, None] + name_effect
        chance = np.clip(chance + added[cluster][:, :, None], 0.0, 1.0)
        value = random.binomial(draws, chance) / draws
    item, group, name = np.meshgrid(np.arange(count), np.arange(groups), np.arange(names_of_group), indexing="ij")
    kept = random.random(value.shape) >= missing
    texts = tuple(f"g{number}" for number in range(groups))
    return Cells(
        value[kept], item[kept], group[kept], cluster, texts, (group * names_of_group + name)[kept] if names else None
    )


def exchanged(cells: Cells, random: np.random.Generator) -> Cells:
    """The same cells with the groups' labels permuted within each cluster, so that no group differs any more."""
    orders = np.stack([random.permutation(len(cells.groups)) for _ in range(int(cells.cluster.max()) + 1)])
    return cells._replace(group=orders[cells.cluster[cells.item], cells.group])
