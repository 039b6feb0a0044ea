"""Reads the results that the thesis prints (Liu 2022, tables 4.2 to 4.7), to compare them with ours."""

from collections.abc import Iterable

from fairness_pipeline.corpora.classifiers.authored_corpus import PublishedAs
from fairness_pipeline.measures.classifiers.group_rates import RATES
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.workspace.published import PrintedTable, PublishedRate, printed, rows

TABLES = ("implicit_bias", "implicit_bias_datasets")
"""Files of `data/published`."""
METHODS = {
    None: "base",
    "data_aug": "data_augmentation",
    "ins_weigh": "instance_weighting",
    "debiased_tc": "debiased_tc",
}
"""The methods' names in these files, by the `debiasing` of a classifier."""


def rates(corpus: PublishedAs | None, classifier: ClassifierSpecification) -> dict[str, PublishedRate]:
    """Table 4.3: both groups' rates of a base classifier, by measure."""
    records = _records(corpus, classifier)
    by_group = {(row["metric"], row["group"]): float(row["value"]) for row in records if row["metric"] in RATES}
    return {
        rate: PublishedRate(by_group[rate, "I"], by_group[rate, "II"])
        for rate in RATES
        if {(rate, "I"), (rate, "II")} <= by_group.keys()
    }


def metrics(corpus: PublishedAs | None, classifier: ClassifierSpecification) -> dict[str, float]:
    """Tables 4.4 to 4.7: FPED, FNED, DPD, accuracy and F1 of a classifier, by metric."""
    return {row["metric"]: float(row["value"]) for row in _records(corpus, classifier) if row["metric"] not in RATES}


def size(corpus: PublishedAs | None) -> dict[str, str] | None:
    """The row of a data set in table 4.2; None if it has none."""
    data_set = corpus and (corpus.dataset, corpus.task, corpus.attribute)
    return next(
        (row for row in rows("implicit_bias_datasets") if (row["dataset"], row["task"], row["attribute"]) == data_set),
        None,
    )


def elsewhere(corpora: Iterable[PublishedAs | None]) -> list[PrintedTable]:
    """Tables 4.3 to 4.7 for all data sets other than these; none if these are no printed ones."""
    excluded = {(corpus.dataset, corpus.task, corpus.attribute) for corpus in corpora if corpus}
    names = ("dataset", "task", "attribute", "group_name", "architecture", "method")
    if not excluded:
        return []
    return printed("implicit_bias", names, lambda row: (row["dataset"], row["task"], row["attribute"]) not in excluded)


def _records(corpus: PublishedAs | None, classifier: ClassifierSpecification) -> list[dict[str, str]]:
    if corpus is None or classifier.published_as is None:
        return []
    values = (corpus.dataset, corpus.task, corpus.attribute, classifier.published_as, METHODS[classifier.debiasing])
    names = ("dataset", "task", "attribute", "architecture", "method")
    return [row for row in rows("implicit_bias") if tuple(row[name] for name in names) == values]
