"""Reads the papers' tables, for comparison with ours."""

import re
from typing import NamedTuple

from fairness_pipeline.workspace.published import rows


class PublishedRow(NamedTuple):
    """One printed row: its source and subject, the two values in `unit`, Z and p as printed (or None), and n."""

    source: str
    corpus: str
    model: str
    dimension: str
    measure: str
    unit: str
    value_a: float
    value_b: float
    z: float | None
    p: str | None
    n_pairs: int
    check: str


TABLES = ("dialogue_fairness", "disentanglement", "response_quality")
"""Files of `data/published`."""

CHAPTER_3 = {"seq2seq": "seq2seq (thesis ch.3 original)"}
"""Models that chapter 3 of Liu 2022 retrained: tables 3.3 to 3.5 are about another model than tables 3 and 7."""


def dialogue_fairness() -> tuple[PublishedRow, ...]:
    """All rows of the dialogue-fairness tables (Liu et al. 2020, tables 3 to 7; Liu 2022, tables 3.3 and 3.4)."""
    return tuple(
        PublishedRow(
            source=row["source"],
            corpus=row["corpus"],
            model=row["model"],
            dimension=row["dimension"],
            measure=row["measure"],
            unit=row["unit"],
            value_a=float(row["value_a"]),
            value_b=float(row["value_b"]),
            z=float(row["z"]) if row["z"] else None,
            p=row["p"] or None,
            n_pairs=int(row["n_pairs"]),
            check=row["check"],
        )
        for row in rows("dialogue_fairness")
    )


def printed_p(row: PublishedRow) -> float | None:
    """A row's p as a number (`<1e-5` counts as 1e-5); None if none is printed."""
    printed = _PRINTED.search(row.p or "")
    if printed is None:
        return None
    return 10.0 ** int(printed[2]) if printed[2] else float(printed[1])


_PRINTED = re.compile(r"([\d.]+(?:e-?\d+)?)(?:\^(-?\d+))?$")


def response_quality(*, platform: str, model: str) -> dict[str, float]:
    """The values of table 3.5 in Liu 2022 for a platform and model, by the names of our metrics."""
    return {
        f"{row['metric'][:-1]}_{row['metric'][-1]}": float(row["value"])
        for row in rows("response_quality")
        if (row["corpus"], row["model"]) == (platform, model)
    }


def disentanglement(*, platform: str) -> dict[str, float]:
    """The values of table 3.2 in Liu 2022 for a platform: the accuracies of the `unbiased` and `semantic` features."""
    names = {"unbiased_gender": "unbiased", "semantics": "semantic"}
    return {names[row["features"]]: float(row["value"]) for row in rows("disentanglement") if row["corpus"] == platform}


def published_rows(*, platform: str, dimension: str | None, model: str) -> dict[str, PublishedRow]:
    """The first printed row of each measure for a platform, dimension (as the papers call it) and model."""
    by_measure: dict[str, PublishedRow] = {}
    for row in dialogue_fairness():
        if (row.corpus, row.dimension, row.model) == (platform, dimension, model):
            by_measure.setdefault(row.measure, row)
    return by_measure
