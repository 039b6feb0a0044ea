"""Study 4: does a text classifier decide by its author's style?"""

from collections.abc import Sequence

from fairness_pipeline.corpora.classifiers.authored_corpus import AuthoredCorpus
from fairness_pipeline.measures.classifiers.group_rates import DP, FN, FP
from fairness_pipeline.measures.classifiers.training_spread import ONE_TRAINING
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.project.study import Judged, Pending, Study, compare_debiased
from fairness_pipeline.statistics.controls import control_doubts
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.statistics.welch import LARGEST, TWO
from fairness_pipeline.studies.implicit_bias.profile import NAME, ImplicitBias, ImplicitBiasPart
from fairness_pipeline.workspace.lake import Key, Lake, Row

HEADINGS = {FP: "FPR", FN: "FNR", DP: "DPR"}
GATED = (TWO, LARGEST)
"""The contrasts that carry verdicts."""


def rate_of(row: Row) -> str:
    """The rate that a row is about, also of single groups."""
    return str(row["measure"]).partition(":")[0]


def _groups(part: ImplicitBiasPart, key: Key) -> tuple[str, str]:
    names = part.corpora[key["corpus"]].groups.names
    return (names[0], names[1]) if len(names) == 2 else ("first group", "second group")


def _finding(part: ImplicitBiasPart, key: Key, row: Row) -> str:
    if row["note"].startswith(ONE_TRAINING):
        rate, gaps = HEADINGS[rate_of(row)], row["note"].partition(";")[0]
        return f"{key['classifier']}: {rate}: {gaps}, which the mean over trainings hides"
    positive, negative = part.corpora[key["corpus"]].labels.names
    subset, predicted = {
        FP: (f"'{negative}' texts", positive),
        FN: (f"'{positive}' texts", negative),
        DP: ("texts", positive),
    }[rate_of(row)]
    sides = zip((row["value_a"], row["value_b"]), STUDY.compared(part, key, row), strict=True)
    (high, high_group), (low, low_group) = sorted(sides, key=lambda side: -side[0])
    clause = f"{key['classifier']} labels {high:.1f}% of the {subset} by '{high_group}' as '{predicted}'"
    return f"{clause}, but {low:.1f}% of those by '{low_group}'"


def _decisive(row: Row) -> Row:
    """The row; if it rests on the spread of trainings, with that spread as difference, without side and interval."""
    if row["verdict"] != "biased" or not row["note"].startswith(ONE_TRAINING):
        return row
    return {**row, "difference": row["trainings"], "ci_low": None, "ci_high": None, "either_way": True}


def _direction(row: Row, groups: tuple[str, str]) -> str:
    by_training = row["note"].startswith(ONE_TRAINING)
    return "more: either group, by training" if by_training else f"more: {groups[row['difference'] < 0]}"


def _control(part: ImplicitBiasPart, key: Key, row: Row) -> str:
    return (
        f"where groups are inferred without the words that tell the label the difference is "
        f"{with_unit(row, 'masked_difference')} instead of {with_unit(row)} ({row['masked_n']:,} texts)"
    )


def _degenerate(part: ImplicitBiasPart, key: Key, lake: Lake) -> str | None:
    """Why a classifier is degenerate: it predicts one label for everything, or is no better than guessing."""
    figures = lake.figures("classifier_predictions", key)
    if figures.get("constant"):
        return "one prediction for everything"
    low, high = figures.get("accuracy_interval", (1.0, 1.0))
    if not low <= 0.5 <= high or any(row["verdict"] == "biased" for row in lake.rows("classifier_fairness", key)):
        return None
    return f"its accuracy ({figures['accuracy']:.3g}) is that of guessing"


def _quality(part: ImplicitBiasPart, key: Key, lake: Lake) -> str:
    """Accuracy and F1 on the test texts."""
    values = {row["metric"]: row["value"] for row in lake.rows("classifier_metrics", key)}
    return f"accuracy {values['accuracy']:.1f}%, F1 {values['f1']:.1f}%" if values else ""


def _more(part: ImplicitBiasPart, rows: Sequence[Judged]) -> str:
    current = max(row["n"] for _, row in rows)
    return (
        f"more test texts, by more authors of each group (now {current:,} texts), or more trainings: `seeds` in the "
        "classifier's file"
    )


def _cure(part: ImplicitBiasPart, rows: Sequence[Judged]) -> str:
    name = rows[0].key["classifier"]
    run = f"fairness-pipeline run --profile {part.project.name} --study {NAME} --model"
    page = "docs/text-classifiers.md"
    otherwise = f"add a classifier with `base: {name}` and `debiasing: debiased_tc` ({page})"
    return compare_debiased(name, part.classifiers, run, page, otherwise)


def _requests(part: ImplicitBiasPart, asset: str, key: Key, lake: Lake, pending: Pending) -> int | None:
    """One request for each text of the split `test`."""
    if asset != "classifier_predictions" or not part.classifiers[key["classifier"]].endpoint:
        return 0
    corpus_key = {"corpus": key["corpus"]}
    if pending("authored_texts", corpus_key):
        return None
    return lake.read("authored_texts", corpus_key)["split"].to_pylist().count("test")


STUDY = Study(
    name=NAME,
    title="Implicit bias in text classification",
    method=(
        "The false-positive rate, the false-negative rate and the rate of positive predictions (its mean over both "
        "labels) were compared between the groups of authors of the test texts, by tests in which all texts of one "
        "author move together."
    ),
    cites=("liu2022detecting",),
    section=ImplicitBias,
    part=ImplicitBiasPart,
    subject="classifier",
    table="classifier_fairness",
    report="implicit_bias_report",
    asked="classifier_predictions",
    identity=("corpus", "classifier", "measure"),
    headings=tuple(HEADINGS.values()),
    unseen="other texts, labels, groups",
    heading=lambda row: HEADINGS[rate_of(row)] if row["contrast"] in GATED else None,
    label=lambda row: HEADINGS[rate_of(row)] + str(row["measure"]).removeprefix(rate_of(row)),
    gated=lambda row: row["contrast"] in GATED,
    older={"contrast": TWO, "group": None, "against": None},
    groups=_groups,
    finding=_finding,
    decisive=_decisive,
    direction=_direction,
    doubts=lambda part, key, row: control_doubts(row),
    control=_control,
    files={"classifiers": ClassifierSpecification, "corpora (texts by authors of groups)": AuthoredCorpus},
    legend="FPR: false positives, FNR: false negatives, DPR: texts labelled positive",
    terms={
        "FPR": "false positives: of a group's texts whose label is negative, the share that is called positive",
        "FNR": "false negatives: of a group's texts whose label is positive, the share that is called negative",
        "DPR": (
            "positive predictions: the share of a group's texts that is called positive, as the mean over both labels, "
            "so that a group does not differ only because more of its texts are positive"
        ),
    },
    quality=_quality,
    more=_more,
    cure=_cure,
    degenerate=_degenerate,
    requests=_requests,
)  # fmt: skip
