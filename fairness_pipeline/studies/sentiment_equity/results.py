"""Summarises the assets of study 3 for its report."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairness_pipeline.corpora.sentiment.equity_sentences import GROUPS, PUBLISHED, REWORDED
from fairness_pipeline.measures.sentiment.equity_pairs import ALL, EVERYBODY, WITHOUT
from fairness_pipeline.models.sentiment.specification import AFFECTS
from fairness_pipeline.reporting.results import Audit
from fairness_pipeline.studies.sentiment_equity.study import STUDY
from fairness_pipeline.workspace.lake import Lake, Row

NO_DIFFERENCE = "no difference"
ALL_AFFECTS = "all"
EITHER = "all systems"


def row_of(audit: Audit, affect: str, templates: str = PUBLISHED, persons: str = EVERYBODY) -> Row | None:
    """The row of one comparison over all sentences, if there is one."""
    values = affect, templates, ALL, persons
    columns = "affect", "templates", "subset", "persons"
    return next((row for row in audit.rows if tuple(row[name] for name in columns) == values), None)


class SummaryCell(NamedTuple):
    """The number of submissions with an outcome, and the mean differences of those that score side b or side a higher.

    A mean is None if there are no such submissions.
    """

    submissions: int
    b_higher: float | None
    a_higher: float | None


class Summary(NamedTuple):
    """One of tables 5 to 7: the paper's test, at a level corrected for all submissions and both dimensions.

    `cells` are by outcome, and by affect and over `ALL_AFFECTS`.
    """

    dimension: str
    subset: str
    level: float
    submissions: int
    cells: dict[str, dict[str, SummaryCell]]


def summaries(alpha: float, audits: list[Audit]) -> list[Summary]:
    """Tables 5, 6 and 7 of the paper: gender, gender without emotion words, and race (also without emotion words).

    A submission is a system and an affect. The level is alpha over submissions x 2 (Bonferroni, section 5).
    """
    submissions = {(audit.key["system"], row["affect"]) for audit in audits for row in audit.rows}
    level = alpha / max(1, 2 * len(submissions))
    tables = []
    for dimension in dict.fromkeys(audit.key["dimension"] for audit in audits if audit.measured):
        group_a, group_b = GROUPS[dimension]
        outcomes = (NO_DIFFERENCE, f"{group_b} higher", f"{group_a} higher")
        for subset in (ALL, WITHOUT):
            rows = [
                row
                for audit in audits
                if audit.key["dimension"] == dimension
                for row in audit.rows
                if (row["templates"], row["subset"], row["persons"]) == (PUBLISHED, subset, EVERYBODY)
            ]
            cells = {
                outcome: _cells([row for row in rows if _outcome(row, level, outcomes) == outcome])
                for outcome in outcomes
            }
            tables.append(Summary(dimension, subset, level, len(rows), {**cells, EITHER: _cells(rows)}))
    return tables


def turned(audits: list[Audit]) -> tuple[int, int]:
    """The number of verdicts that the reworded templates change, and the number that were measured under both."""
    verdicts = [
        (row["verdict"], reworded["verdict"])
        for audit in audits
        for row in audit.rows
        if STUDY.gated(row) and (reworded := row_of(audit, row["affect"], REWORDED, persons=row["persons"])) is not None
    ]
    return sum(first != second for first, second in verdicts), len(verdicts)


def wordings(lake: Lake) -> dict[tuple[int, str | None], str]:
    """The published sentences by template and emotion word, with `…` for the person."""
    return {
        (row["template"], row["emotion_word"]): row["sentence"]
        .replace(row["person"], "…")
        .replace("herself", "himself")
        for row in lake.read("equity_sentences", {}).to_pylist()
        if row["templates"] == PUBLISHED and row["race"] is not None
    }


def sentence_of(lake: Lake, gap: dict[str, Any], side: int, group: str) -> str:
    """The published sentence of one side of a pair, as it was scored; a mean over names has the group in brackets.

    Args:
        lake: The assets made so far.
        gap: A row of `widest_gaps`.
        side: 0 for side a, 1 for side b.
        group: The side's name.
    """
    persons = gap["persons"].split(" / ")
    if len(persons) == 2:
        key = PUBLISHED, gap["template"], gap["emotion_word"], persons[side]
        for row in lake.read("equity_sentences", {}).to_pylist():
            if (row["templates"], row["template"], row["emotion_word"], row["person"]) == key:
                return str(row["sentence"])
    person = f"{group} {gap['persons'].removesuffix('s')}"
    text = wordings(lake)[gap["template"], gap["emotion_word"]].replace("…", f"[{person}]")
    return text.replace("himself", "herself") if "female" in person else text


def widest_gaps(pairs: pa.Table, count: int) -> list[dict[str, Any]]:
    """The published pairs whose scores differ most, with their `gap`; widest first, one pair for the same persons."""
    pairs = pairs.filter(pc.equal(pairs["templates"], PUBLISHED))
    gaps = pc.subtract(pairs["score_a"], pairs["score_b"])
    persons = pairs["persons"].to_pylist()
    widest: dict[str, int] = {}
    for index in np.argsort(-np.abs(gaps.to_numpy()), kind="stable").tolist():
        widest.setdefault(persons[index], index)
    rows = pairs.take(list(widest.values())[:count]).to_pylist()
    return [{**row, "gap": row["score_a"] - row["score_b"]} for row in rows]


def _outcome(row: dict[str, Any], level: float, outcomes: tuple[str, str, str]) -> str:
    if row["p"] >= level:
        return outcomes[0]
    return outcomes[2] if row["difference"] > 0 else outcomes[1]


def _cells(rows: list[dict[str, Any]]) -> dict[str, SummaryCell]:
    cells = {}
    for affect in (*AFFECTS, ALL_AFFECTS):
        differences = [row["difference"] for row in rows if affect in (row["affect"], ALL_AFFECTS)]
        cells[affect] = SummaryCell(
            len(differences), _mean(-d for d in differences if d < 0), _mean(d for d in differences if d > 0)
        )
    return cells


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else None
