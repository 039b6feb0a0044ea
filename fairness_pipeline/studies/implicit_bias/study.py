"""Study 4: does a text classifier decide by its author's style?"""

from fairness_pipeline.corpora.classifiers.authored_corpus import AuthoredCorpus
from fairness_pipeline.measures.classifiers.group_rates import DP, FN, FP
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.project.study import Study
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.studies.implicit_bias.profile import NAME, ImplicitBias, ImplicitBiasPart
from fairness_pipeline.workspace.lake import Key, Row

HEADINGS = {FP: "FPR", FN: "FNR", DP: "DPR"}


def _groups(part: ImplicitBiasPart, key: Key) -> tuple[str, str]:
    groups = part.corpora[key["corpus"]].groups
    return groups.a.name, groups.b.name


def _finding(part: ImplicitBiasPart, key: Key, row: Row) -> str:
    positive, negative = part.corpora[key["corpus"]].labels.names
    of, said = {FP: (f"{negative} texts", positive), FN: (f"{positive} texts", negative), DP: ("texts", positive)}[
        row["measure"]
    ]
    sides = sorted(zip((row["value_a"], row["value_b"]), _groups(part, key), strict=True), key=lambda side: -side[0])
    (high, more), (low, less) = sides
    return f"{key['classifier']} labels {high:.1f}% of {more}'s {of} as {said}, but {low:.1f}% of {less}'s"


def _control(part: ImplicitBiasPart, key: Key, row: Row) -> str:
    return (
        f"where groups are inferred without the words that tell the label the difference is "
        f"{with_unit(row, 'masked_difference')} instead of {with_unit(row)} ({row['masked_n']:,} texts)"
    )


STUDY = Study(
    name=NAME,
    title="Implicit bias in text classification",
    section=ImplicitBias,
    part=ImplicitBiasPart,
    subject="classifier",
    table="classifier_fairness",
    report="implicit_bias_report",
    asked="classifier_predictions",
    identity=("corpus", "classifier", "measure"),
    shown=(
        "corpus", "classifier", "measure", "n", "value_a", "value_b", "difference", "ci_low", "ci_high", "p_holm",
        "verdict", "masked_difference", "masked_p", "seeds", "sd_seeds",
    ),
    headings=tuple(HEADINGS.values()),
    heading=lambda row: HEADINGS[row["measure"]],
    label=lambda row: HEADINGS[row["measure"]],
    groups=_groups,
    finding=_finding,
    control=_control,
    files={"classifiers": ClassifierSpecification, "corpora (texts by authors of two groups)": AuthoredCorpus},
    columns={
        "n": "texts of both groups that the rate is about",
        "ci_low": "lower end of the 95% interval of the difference",
        "ci_high": "upper end of the 95% interval of the difference",
        "test": "none: the thesis prints rates without a test",
        "paired_test": "what is compared over: nothing is paired",
        "paired_statistic": "its t",
        "p_paired": "its p value",
        "text_id": "of the text: its corpus's and its own hash",
        "text": "what was written",
        "label": "1 (positive) or 0",
        "author_group": "a or b",
        "author_id": "who wrote it; the text itself where that is not known",
        "split": "train, valid or test",
        "balance_rate": "positive to negative texts of group a; of group b the other way round",
        "probability": "of the positive class",
        "prediction": "1 from a probability of 0.5 on",
        "seed": "which training, from 1; 0 where it was not trained here",
        "seeds": "trainings; of metrics the value of each",
        "authors_a": "authors of one size that weigh as much as those of group a: one who wrote most leaves few",
        "authors_b": "the same of group b",
        "masked_n": "texts whose group could be inferred without the words that tell the label",
        "masked_difference": "the difference between these groups; null where groups are known",
        "masked_p": "its p, adjusted over the rates",
        "sd_seeds": "standard deviation of the difference between seeds",
        "metric": "accuracy, f1 (of the positive class), or the absolute difference of a rate: fped, fned, dpd",
        "value": "mean over the seeds",
        "published_value": "what the thesis prints",
        "words": "of the text, as the classifier reads them",
        "label_l2x": "S_Y: of each word the share that tells the label, by an explainer",
        "group_l2x": "S_Z: of each word the share that tells the author's group, by an explainer",
        "label_gradients": "the same as label_l2x, by integrated gradients",
        "group_gradients": "the same as group_l2x, by integrated gradients",
        "js_l2x": "Jensen-Shannon divergence of S_Y and S_Z by explainers, in nats",
        "js_gradients": "the same by integrated gradients",
        "accuracy": "share of right predictions, balanced test texts",
        "dp_difference": "rate of positive predictions, group a minus b, in points",
        "difference_before": "the base's difference",
        "difference_after": "the debiased classifier's",
        "change": "of the absolute difference; below 0 the gap is smaller",
        "effect": "smaller gap, larger gap or no change shown",
        "verdict_before": "on the base",
        "verdict_after": "on the debiased classifier",
    },
)  # fmt: skip
