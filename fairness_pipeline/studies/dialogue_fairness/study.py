"""Study 1: does a dialogue model answer differently when only the group named in the context changes?"""

from fairness_pipeline.measures.registry import glanced_at, measure_label
from fairness_pipeline.studies.dialogue_fairness.profile import DialogueFairness, DialoguePart
from fairness_pipeline.study import Study

LISTS = "Attribute words"
_HEADINGS = {row: measure_label(row) for row in glanced_at()}

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
    groups=lambda project, key: (
        project.dimensions[key["dimension"]].groups.a, project.dimensions[key["dimension"]].groups.b,
    ),
)  # fmt: skip
