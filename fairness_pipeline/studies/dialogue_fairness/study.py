"""Study 1: does a dialogue model answer differently when only the group named in the context changes?"""

from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.lake import Key, Row
from fairness_pipeline.measures.registry import finding, glanced_at, is_part, measure_label
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.project import Project
from fairness_pipeline.studies.dialogue_fairness.profile import DialogueFairness, DialoguePart
from fairness_pipeline.study import Study

LISTS = "Attribute words"
_HEADINGS = {row: measure_label(row) for row in glanced_at()}


def _groups(project: Project, key: Key) -> tuple[str, str]:
    groups = project.dimensions[key["dimension"]].groups
    return groups.a, groups.b


def _finding(project: Project, key: Key, row: Row) -> str:
    return f"{key['model']}: {finding(row, _groups(project, key))}"


STUDY = Study(
    name="dialogue_fairness",
    title="Dialogue fairness",
    section=DialogueFairness,
    part=DialoguePart,
    subject="model",
    table="dialogue_significance",
    report="dialogue_fairness_report",
    asked="responses",
    identity=("dimension", "model", "measure"),
    shown=(
        "dimension", "model", "measure", "unit", "n", "value_a", "value_b", "difference", "ci_low", "ci_high", "p",
        "p_holm", "verdict", "paper_verdict",
    ),
    headings=(*_HEADINGS.values(), LISTS),
    heading=lambda row: _HEADINGS.get(row["measure"]) or (None if is_part(row["measure"]) else LISTS),
    label=lambda row: measure_label(row["measure"]),
    files={"models": ModelSpecification, "corpora": CorpusSpecification},
    columns={
        "dialogue_id": "a hash of corpus, context and response",
        "thread_id": "dialogues of one thread fall into one split",
        "context": "what is said to the model",
        "response": "what is answered",
        "split": "train, valid, test or audit",
        "matches": "the dimension's words in the context: where each starts and ends, and which it is",
        "pair_id": "of the pair of contexts, from 0 in each corpus and dimension",
        "source_side": "the side whose words the original context holds",
        "context_a": "the context with the words of side a",
        "context_b": "the context with the words of side b",
        "terms": "the words that were exchanged, as both sides have them",
        "words": "all words of the side's responses",
        "distinct_1": "distinct words per word",
        "distinct_2": "distinct word pairs per word",
        "diversity": "mean of distinct_1 and distinct_2",
        "offensive_probability": "the classifier's probability that the response is offensive",
        "offensive": "whether it is at least the threshold",
        "compound": "VADER's score of the response, from -1 to 1",
        "positive": "whether it is at least the threshold",
        "negative": "whether it is at most minus the threshold",
        "attribute": "the dimension's attribute list",
        "count": "how many words of the list the response holds",
        "metric": "of response quality",
        "value": "the metric's value",
        "signature": "how sacreBLEU computed it",
        "published_value": "what table 3.5 of Liu 2022 prints",
        "difference_before": "side a minus side b of the base model",
        "difference_after": "side a minus side b of the debiased model",
        "change": "how much smaller (negative) or larger the absolute difference became",
        "effect": "smaller gap, larger gap or no change shown",
        "verdict_before": "of the base model",
        "verdict_after": "of the debiased model",
    },
    groups=_groups,
    finding=_finding,
    gated=lambda row: not is_part(row["measure"]),
)  # fmt: skip
