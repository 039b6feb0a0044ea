"""Study 5: which annotators lean which way?"""

from collections.abc import Sequence

from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.measures.annotators.annotator_groups import DIVIDED, OTHER_ITEMS, SAME_RATE
from fairness_pipeline.project.study import Judged, Study
from fairness_pipeline.statistics.welch import NO_PAIR, PAIR, TWO, UNLIKE_ALL
from fairness_pipeline.studies.annotator_bias.profile import NAME, AnnotatorBias, AnnotatorBiasPart
from fairness_pipeline.workspace.lake import Key, Row


def _groups(part: AnnotatorBiasPart, key: Key) -> tuple[str, str]:
    groups = part.corpora[key["corpus"]].compared.get(key.get("measure", ""), ())
    return (groups[0], groups[1]) if len(groups) == 2 else ("first group", "second group")


def label_of(part: AnnotatorBiasPart, key: Key, row: Row) -> str:
    """What is counted: labels of a class, in the words of the corpus."""
    return "positive" if row["label"] == "positive" else f"'{row['label']}'"


def _finding(part: AnnotatorBiasPart, key: Key, row: Row) -> str:
    groups, label = STUDY.compared(part, key, row), label_of(part, key, row)
    if row["note"] in (SAME_RATE, OTHER_ITEMS):
        claim = (
            f"label as many items {label}, but different ones"
            if row["note"] == SAME_RATE
            else f"do not detectably differ in their mean rate, but label different items {label}"
        )
        all_groups = groups if row["contrast"] == TWO else part.corpora[key["corpus"]].compared[row["measure"]]
        return (
            f"{key['corpus']}: {listed(all_groups)} {claim}: their rates of a typical item "
            f"differ by {row['items_typical']:.3g} points ({row['measure']})"
        )
    if row["note"].startswith(DIVIDED):
        return (
            f"{key['corpus']}: {row['note'].removeprefix(DIVIDED).lstrip(': ')}, and the mean hides it "
            f"({row['measure']}; in the least divided group they lie {row['raters_least']:.3g} points from it)"
        )
    more, less = groups[:: 1 if row["difference"] > 0 else -1]
    if row["note"] == NO_PAIR:
        return (
            f"{key['corpus']}: groups do not label the same items {label} equally often, but no single pair is "
            f"shown to differ ({row['measure']}; '{more}' and '{less}' lie {abs(row['difference']):.3g} points apart)"
        )
    outlier = row["note"].removesuffix(UNLIKE_ALL).strip() if row["note"].endswith(UNLIKE_ALL) else ""
    if outlier in groups:
        often = "more often" if outlier == more else "less often"
        return (
            f"{key['corpus']}: annotators '{outlier}' label the same items {label} {often} than each of the other "
            f"groups ({row['measure']}; by {abs(row['difference']):.3g} points than "
            f"'{less if outlier == more else more}')"
        )
    return (
        f"{key['corpus']}: annotators '{more}' label the same items {label} {abs(row['difference']):.3g} points more "
        f"often than '{less}' ({row['measure']})"
    )


def listed(names: Sequence[str]) -> str:
    """The names of groups, joined for a sentence.

    Examples:
        >>> listed(["a", "b", "c"])
        "'a', 'b' and 'c'"
    """
    quoted = [f"'{name}'" for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _direction(row: Row, groups: tuple[str, str]) -> str:
    if row["note"].startswith(DIVIDED):
        return f"divided: {row['divided']}"
    return "of single items" if row["note"] in (SAME_RATE, OTHER_ITEMS) else f"more: {groups[row['difference'] < 0]}"


def _decisive(row: Row) -> Row:
    """The row; if it rests on single items or on a divided group, with their typical difference, without side and
    interval."""
    if row["note"].startswith(DIVIDED):
        return {**row, "difference": row["raters_typical"], "ci_low": None, "ci_high": None, "either_way": True}
    if row["note"] not in (SAME_RATE, OTHER_ITEMS):
        return row
    return {**row, "difference": row["items_typical"], "ci_low": None, "ci_high": None, "either_way": True}


def _more(part: AnnotatorBiasPart, rows: Sequence[Judged]) -> str:
    fewest = min(min(row["annotators_a"], row["annotators_b"]) for _, row in rows)
    return f"labels of the same items by more annotators of the smaller group (now {fewest:.0f})"


def _cure(part: AnnotatorBiasPart, rows: Sequence[Judged]) -> str:
    corpus = rows[0].key["corpus"]
    command = f"fairness-pipeline export labels --profile {part.project.name} --corpus {corpus} --output inferred.csv"
    return f"use the labels that the report advises, or soft labels, and agree on a labelling rule ({command})"


STUDY = Study(
    name=NAME,
    title="Annotator group bias",
    method=(
        "The labels of groups of annotators were compared by tests in which all labels of one annotator, and all "
        "labels of one item, move together."
    ),
    cites=("liu2022detecting",),
    section=AnnotatorBias,
    part=AnnotatorBiasPart,
    subject="corpus",
    table="group_positive_rates",
    report="annotator_bias_report",
    asked="annotations",
    identity=("corpus", "measure"),
    headings=("positive labels",),
    heading=lambda row: None if row["contrast"] == PAIR else "positive labels",
    gated=lambda row: row["contrast"] != PAIR,
    older={"contrast": TWO, "group": None, "against": None, "label": "positive"},
    observed="item",
    unseen="other items, other annotators",
    label=lambda row: str(row["measure"]),
    groups=_groups,
    finding=_finding,
    decisive=_decisive,
    more=_more,
    cure=_cure,
    direction=_direction,
    files={"corpora (items that several people labelled)": AnnotatedCorpus},
)  # fmt: skip
