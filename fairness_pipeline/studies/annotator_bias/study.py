"""Study 5: which annotators lean which way?"""

from fairness_pipeline.corpora.annotators.annotated_corpus import AnnotatedCorpus
from fairness_pipeline.measures.annotators.annotator_groups import OTHER_ITEMS, SAME_RATE
from fairness_pipeline.project.study import Study
from fairness_pipeline.studies.annotator_bias.profile import NAME, AnnotatorBias, AnnotatorBiasPart
from fairness_pipeline.workspace.lake import Key, Row


def _groups(part: AnnotatorBiasPart, key: Key) -> tuple[str, str]:
    groups = part.corpora[key["corpus"]].groups
    return groups.get(key.get("measure", ""), ("first group", "second group"))


def _finding(part: AnnotatorBiasPart, key: Key, row: Row) -> str:
    groups = _groups(part, {**key, "measure": row["measure"]})
    if row["note"] in (SAME_RATE, OTHER_ITEMS):
        many = (
            "label as many items positive" if row["note"] == SAME_RATE else "are not shown to differ in their mean rate"
        )
        return (
            f"{key['corpus']}: '{groups[0]}' and '{groups[1]}' {many}, but do not label the same ones: their rates of "
            f"a typical item differ by {row['items_typical']:.3g} points ({row['measure']})"
        )
    more, less = groups[:: 1 if row["difference"] > 0 else -1]
    return (
        f"{key['corpus']}: annotators '{more}' label the same items positive {abs(row['difference']):.3g} points more "
        f"often than '{less}' ({row['measure']})"
    )


def _direction(row: Row, groups: tuple[str, str]) -> str:
    return "of single items" if row["note"] in (SAME_RATE, OTHER_ITEMS) else f"more: {groups[row['difference'] < 0]}"


def _decisive(row: Row) -> Row:
    """A row that rests on single items, with their typical difference, which has no side and no interval."""
    if row["note"] not in (SAME_RATE, OTHER_ITEMS):
        return row
    return {**row, "difference": row["items_typical"], "ci_low": None, "ci_high": None}


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
    direction=_direction,
    files={"corpora (items that several people labelled)": AnnotatedCorpus},
    columns={
        "measure": "the category whose two groups are compared",
        "n": "items that both groups labelled",
        "value_a": "mean over these items of the share of the first group's labels that are positive",
        "value_b": "the same of the second group",
        "ci_low": "lower end of the 95% interval: of a difference, of a contrast, of a score",
        "ci_high": "upper end of that interval",
        "p_holm": "p adjusted by Holm: over a corpus's categories, or over a draw's contrasts",
        "test": "paired t over items alone, which takes labels of one annotator for independent",
        "paired_test": "over annotators and items: the verdict's",
        "paper_verdict": "fair or biased by items alone",
        "labels_a": "labels of these items by the first group",
        "labels_b": "labels of these items by the second group",
        "annotators_a": "how many people of the first group gave them",
        "annotators_b": "how many people of the second group gave them",
        "pooled_a": "share of positive ones among all of labels_a, in percent",
        "pooled_b": "share of positive ones among all of labels_b, in percent",
        "p_items": "p of no interaction of item and group (raters' groups exchanged among raters of like labour)",
        "p_items_holm": "the same, adjusted with the means of all categories",
        "items_excess": "how many times chance the items' differences vary between the groups",
        "items_typical": "the typical (root mean square) difference of a single item's rates, in points",
        "items_upper": "its upper 95% bound; null where nothing is known",
        "items_compared": "items with two labels of each group, on which these rest",
        "draw": "of a simulated corpus, from 1; 1 is the only one of others",
        "item_id": "the item, as the corpus names it",
        "annotator_id": "who labelled, as the corpus names them",
        "label": "1 (positive) or 0",
        "text": "what was labelled; empty where it is not known",
        "features": "numbers that a classifier reads instead; empty where there are none",
        "split": "train, or test (for a classifier that learns from inferred labels)",
        "gold": "what the item is, where that is known",
        "category": "what tells two groups of annotators apart; empty for one annotator, or where there is none",
        "side": "a, b, or null where it is not known",
        "sensitivity": "the annotator's simulated share of positive items called positive",
        "specificity": "the annotator's simulated share of negative items called negative",
        "response": "sensitivity (share of positive items called positive) or specificity (of negative ones negative)",
        "annotators": "annotators whose groups are known and who labelled items of the class",
        "mean_a": "mean response of the first group's annotators, against the majority vote",
        "mean_b": "mean response of the second group's annotators",
        "sum_of_squares": "between the groups, after all other categories (type II)",
        "f": "its F",
        "stars": "* below 0.05, ** below 0.005",
        "published_sum_of_squares": "what the thesis prints",
        "published_stars": "what the thesis prints",
        "probability": "that the item is positive",
        "kind": "annotator, group, or contrast (first group minus second)",
        "name": "the annotator, or the group",
        "value": "the estimate; of scores the mean over draws or seeds",
        "labels": "labels that it rests on",
        "truth": "the simulated value",
        "published": "what the thesis' GroupAnno gave",
        "metric": "truth_inference_ or prediction_, accuracy or f1 (of the positive class)",
        "items": "items with a known truth",
        "values": "of each draw or seed",
        "over": "what the interval is over: draws, seeds, or items",
        "published_value": "what the thesis prints",
        "seed": "which training; of a simulated corpus the draw",
    },
)  # fmt: skip
