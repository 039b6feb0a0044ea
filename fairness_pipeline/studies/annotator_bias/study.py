"""Study 5: which annotators lean which way?"""

from collections.abc import Sequence

from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus, of_class
from fairness_pipeline.measures.annotators.annotator_groups import OTHER_ITEMS, SAME_RATE
from fairness_pipeline.project.study import Judged, Study
from fairness_pipeline.studies.annotator_bias.profile import NAME, AnnotatorBias, AnnotatorBiasPart
from fairness_pipeline.workspace.lake import Key, Row


def _groups(part: AnnotatorBiasPart, key: Key) -> tuple[str, str]:
    groups = part.corpora[key["corpus"]].compared
    return groups.get(key.get("measure", ""), ("first group", "second group"))


def label_of(part: AnnotatorBiasPart, key: Key, row: Row) -> str:
    """What is counted: positive labels, or those of one of several classes."""
    corpus = part.corpora[key["corpus"]]
    named = (name for name in corpus.labels.classes for own in corpus.groups if of_class(own, name) == row["measure"])
    return next((f"'{name}'" for name in named), "positive")


def _finding(part: AnnotatorBiasPart, key: Key, row: Row) -> str:
    groups, label = _groups(part, {**key, "measure": row["measure"]}), label_of(part, key, row)
    if row["note"] in (SAME_RATE, OTHER_ITEMS):
        many = (
            f"label as many items {label}" if row["note"] == SAME_RATE else "are not shown to differ in their mean rate"
        )
        return (
            f"{key['corpus']}: '{groups[0]}' and '{groups[1]}' {many}, but do not label the same ones: their rates of "
            f"a typical item differ by {row['items_typical']:.3g} points ({row['measure']})"
        )
    more, less = groups[:: 1 if row["difference"] > 0 else -1]
    return (
        f"{key['corpus']}: annotators '{more}' label the same items {label} {abs(row['difference']):.3g} points more "
        f"often than '{less}' ({row['measure']})"
    )


def _direction(row: Row, groups: tuple[str, str]) -> str:
    return "of single items" if row["note"] in (SAME_RATE, OTHER_ITEMS) else f"more: {groups[row['difference'] < 0]}"


def _decisive(row: Row) -> Row:
    """A row that rests on single items, with their typical difference, which has no side and no interval."""
    if row["note"] not in (SAME_RATE, OTHER_ITEMS):
        return row
    return {**row, "difference": row["items_typical"], "ci_low": None, "ci_high": None}


def _more(part: AnnotatorBiasPart, rows: Sequence[Judged]) -> str:
    fewest = min(min(row["annotators_a"], row["annotators_b"]) for _, row in rows)
    return f"labels of the same items by more annotators of the smaller group (now {fewest:.0f})"


def _cure(part: AnnotatorBiasPart, rows: Sequence[Judged]) -> str:
    corpus = rows[0].key["corpus"]
    command = f"fairness-pipeline export-labels --profile {part.project.name} --corpus {corpus} --output labels.csv"
    return f"use labels that a model of the groups infers, or soft labels, and not the majority's ({command})"


STUDY = Study(
    name=NAME,
    title="Annotator group bias",
    section=AnnotatorBias,
    part=AnnotatorBiasPart,
    subject="corpus",
    table="group_positive_rates",
    report="annotator_bias_report",
    asked="annotations",
    identity=("corpus", "measure"),
    shown=(
        "corpus", "measure", "n", "value_a", "value_b", "difference", "ci_low", "ci_high", "p_holm", "verdict",
        "items_typical", "items_upper", "p_items_holm", "annotators_a", "annotators_b",
    ),
    headings=("positive labels",),
    heading=lambda row: "positive labels",
    label=lambda row: str(row["measure"]),
    groups=_groups,
    finding=_finding,
    decisive=_decisive,
    more=_more,
    cure=_cure,
    direction=_direction,
    files={"corpora (items that several people labelled)": AnnotatedCorpus},
)  # fmt: skip
