"""Study 1: does a dialogue model answer differently when only the group named in the context changes?"""

from fairness_pipeline.lake import Key, Row
from fairness_pipeline.measures.registry import finding, glanced_at, measure_label
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
    heading=lambda row: _HEADINGS.get(row["measure"]) or (LISTS if row["measure"].endswith("_words") else None),
    label=lambda row: measure_label(row["measure"]),
    groups=_groups,
    finding=_finding,
)  # fmt: skip
