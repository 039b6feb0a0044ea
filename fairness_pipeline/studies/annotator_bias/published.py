"""What the thesis prints (Liu 2022, tables 5.1 to 5.6), to stand beside ours."""

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
    own = next((row for row in rows("annotator_datasets") if row["dataset"] == corpus.published_as), None)
    return (int(own["instances"]), int(own["annotators"])) if own and own["instances"] else None


def positive_rates(corpus: AnnotatedCorpus) -> dict[str, PublishedRate]:
    """Table 5.2, by category."""
    own = _of(corpus, metric="positive_rate")
    found = {(row["category"], row["group"]): float(row["value"]) for row in own}
    return {
        category: PublishedRate(found[category, a], found[category, b])
        for category, (a, b) in _SIDES.items()
        if {(category, a), (category, b)} <= found.keys()
    }


def anova(corpus: AnnotatedCorpus) -> dict[tuple[str, str], tuple[float, str]]:
    """Table 5.3: sum of squares and stars, by category and response."""
    return {
        (row["category"], row["metric"].partition("_")[0]): (float(row["value"]), row["significance_stars"])
        for row in _of(corpus, method="anova")
    }


def contrasts(corpus: AnnotatedCorpus) -> dict[tuple[str, str], float]:
    """Table 5.4: what GroupAnno gave for group 0 minus group 1, by category and response."""
    found = {row["metric"]: float(row["value"]) for row in _of(corpus, method="GroupAnno") if "," in row["metric"]}
    letters = {"alpha": "sensitivity", "beta": "specificity"}
    return {
        (f"category {place}", response): found[f"{letter}_{place},0"] - found[f"{letter}_{place},1"]
        for letter, response in letters.items()
        for place in (0, 1)
        if f"{letter}_{place},0" in found
    }


def scores(corpus: AnnotatedCorpus, method: str) -> dict[str, float]:
    """Tables 5.5 and 5.6: accuracy and F1 of a method, by metric. Which F1 the thesis prints it does not say, so it
    stands beside both: table 5.5 is near the macro F1, and Information Detection in table 5.6 cannot be."""
    own = _of(corpus, method=METHODS[method].title)
    found = {row["metric"]: float(row["value"]) for row in own if "," not in row["metric"]}
    return found | {name.replace("_f1", "_macro_f1"): value for name, value in found.items() if name.endswith("_f1")}


def elsewhere(corpora: Iterable[AnnotatedCorpus]) -> list[PrintedTable]:
    """Tables 5.2 to 5.6 for the data sets that are none of these corpora; Information Detection was never published."""
    here = {own.published_as for own in corpora}
    names = ("dataset", "category", "group", "method")
    return printed("annotator_bias", names, lambda row: row["dataset"] not in here and row["dataset"] != "synthetic")


def _of(corpus: AnnotatedCorpus, **asked: str) -> list[dict[str, str]]:
    asked = {"dataset": corpus.published_as or "", **asked}
    own = rows("annotator_bias") if corpus.published_as else ()
    return [row for row in own if all(row[name] == value for name, value in asked.items())]
