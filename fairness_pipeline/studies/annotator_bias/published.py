"""Reads the results that the thesis prints (Liu 2022, tables 5.1 to 5.6), to compare them with ours."""

from collections.abc import Iterable

from fairness_pipeline.annotation.truth_inference.registry import METHODS
from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.workspace.published import PrintedTable, PublishedRate, printed, rows

TABLES = ("annotator_bias", "annotator_datasets")
"""Files of `data/published`."""
_SIDES = {
    "gender": ("male", "female"),
    "age": ("under_30", "over_30"),
    "education": ("below_bachelor", "above_bachelor"),
    "language": ("native", "non_native"),
}
"""The thesis' groups of each category; a corpus with published results names its groups in this order."""


def size(corpus: AnnotatedCorpus) -> tuple[int, int] | None:
    """Table 5.1: items and annotators of a data set, where both are printed."""
    record = next((row for row in rows("annotator_datasets") if row["dataset"] == corpus.published_as), None)
    return (int(record["instances"]), int(record["annotators"])) if record and record["instances"] else None


def positive_rates(corpus: AnnotatedCorpus) -> dict[str, PublishedRate]:
    """Table 5.2, by category."""
    records = _records(corpus, metric="positive_rate")
    values = {(row["category"], row["group"]): float(row["value"]) for row in records}
    return {
        category: PublishedRate(values[category, a], values[category, b])
        for category, (a, b) in _SIDES.items()
        if {(category, a), (category, b)} <= values.keys()
    }


def anova(corpus: AnnotatedCorpus) -> dict[tuple[str, str], tuple[float, str]]:
    """Table 5.3: sum of squares and stars, by category and response."""
    return {
        (row["category"], row["metric"].partition("_")[0]): (float(row["value"]), row["significance_stars"])
        for row in _records(corpus, method="anova")
    }


def contrasts(corpus: AnnotatedCorpus) -> dict[tuple[str, str], float]:
    """Table 5.4: what GroupAnno gave for group 0 minus group 1, by category and response."""
    values = {
        row["metric"]: float(row["value"]) for row in _records(corpus, method="GroupAnno") if "," in row["metric"]
    }
    letters = {"alpha": "sensitivity", "beta": "specificity"}
    return {
        (f"category {number}", response): values[f"{letter}_{number},0"] - values[f"{letter}_{number},1"]
        for letter, response in letters.items()
        for number in (0, 1)
        if f"{letter}_{number},0" in values
    }


def scores(corpus: AnnotatedCorpus, method: str) -> dict[str, float]:
    """Tables 5.5 and 5.6: accuracy and F1 of a method, by metric. The thesis does not say which F1 it prints, so
    it is compared with both: table 5.5 is near the macro F1; Information Detection in table 5.6 cannot be."""
    records = _records(corpus, method=METHODS[method].title)
    values = {row["metric"]: float(row["value"]) for row in records if "," not in row["metric"]}
    return values | {name.replace("_f1", "_macro_f1"): value for name, value in values.items() if name.endswith("_f1")}


def elsewhere(corpora: Iterable[AnnotatedCorpus]) -> list[PrintedTable]:
    """Tables 5.2 to 5.6 for all data sets other than these corpora, if one of these is a printed one; Information
    Detection was never published."""
    excluded = {corpus.published_as for corpus in corpora if corpus.published_as}
    names = ("dataset", "category", "group", "method")
    if not excluded:
        return []
    return printed("annotator_bias", names, lambda row: row["dataset"] not in {*excluded, "synthetic"})


def _records(corpus: AnnotatedCorpus, **values: str) -> list[dict[str, str]]:
    values = {"dataset": corpus.published_as or "", **values}
    records = rows("annotator_bias") if corpus.published_as else ()
    return [row for row in records if all(row[name] == value for name, value in values.items())]
