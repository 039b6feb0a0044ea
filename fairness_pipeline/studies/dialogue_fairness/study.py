"""Study 1: does a dialogue model answer differently when only the group named in the context changes?"""

from fairness_pipeline.corpora.specification import CorpusSpecification
from fairness_pipeline.measures.dialogue.answer_changes import OUTCOMES as CHANGES
from fairness_pipeline.measures.dialogue.dialogue_significance import control, decisive, doubts
from fairness_pipeline.measures.dialogue.distinguishable import DISTINGUISHABLE, with_groups
from fairness_pipeline.measures.dialogue.naming import NAMES_OTHER
from fairness_pipeline.measures.dialogue.registry import (
    finding,
    glanced_at,
    is_harmful,
    is_part,
    measure_label,
    neutral_reading_of,
)
from fairness_pipeline.measures.dialogue.spread import hides_opposite_gaps
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.project.study import Study
from fairness_pipeline.statistics.units import with_unit
from fairness_pipeline.studies.dialogue_fairness.profile import DialogueFairness, DialoguePart
from fairness_pipeline.studies.dialogue_fairness.standing import (
    asides,
    cure,
    degenerate,
    more,
    power_forecast,
    requests,
    warnings,
)
from fairness_pipeline.workspace.lake import Key, Row

LISTS = "Attribute words"
_HEADINGS = {row: measure_label(row) for row in glanced_at()}


def _groups(part: DialoguePart, key: Key) -> tuple[str, str]:
    if key.get("measure") in CHANGES:
        return "other changes", "the group's"
    if key.get("measure") == DISTINGUISHABLE:
        return "chance", "told apart"
    groups = part.project.dimensions[key["dimension"]].groups
    return groups.a, groups.b


def _finding(part: DialoguePart, key: Key, row: Row) -> str:
    checkpoint = " (this checkpoint)" if part.models[key["model"]].trained else ""
    if hides_opposite_gaps(row):
        (a, b), unit, measure = _groups(part, key), row["spread_over"], measure_label(row["measure"]).lower()
        return (
            f"{key['model']}{checkpoint}: {measure}: the gap depends on the {unit}: typically "
            f"{with_unit(row, 'spread').removeprefix('+')}, in either direction; in {row['units_a']:,} of "
            f"{row['units']:,} {unit}s more for {a}, in {row['units_b']:,} more for {b}; the mean hides it"
        )
    deciding_row = decisive(row)
    masked = f", with {neutral_reading_of(row['measure'])}" if deciding_row["difference"] != row["difference"] else ""
    # If the word is the group's name, no other words for the group were tried.
    names_the_group = part.dimensions[key["dimension"]].names_the_group
    words = f" (tested with the words {row['exchanged']})" if names_the_group else ""
    by = f", by {with_groups(row['told_by'], _groups(part, key))}" if row.get("told_by") else ""
    return f"{key['model']}{checkpoint}: {finding(deciding_row, _groups(part, key))}{by}{masked}{words}"


def _direction(row: Row, groups: tuple[str, str]) -> str:
    if row["measure"] == DISTINGUISHABLE:
        return "told apart"
    if hides_opposite_gaps(row):
        return f"more: either group, by {row['spread_over']}"
    if row["measure"] == NAMES_OTHER:
        return f"most: {groups[row['difference'] < 0]} contexts"
    if row["measure"] not in CHANGES:
        return f"more: {groups[row['difference'] < 0]}"
    by_group = (row["difference"] < 0) == (row["measure"] == "distance")
    return f"changed more by {'the group' if by_group else 'other changes'}"


STUDY = Study(
    name="dialogue_fairness",
    title="Dialogue fairness",
    method=(
        "Each context that names one group was paired with the same context in the other group's words, and both were "
        "answered. The two answers of a pair were compared by tests in which all pairs of one exchanged word move "
        "together; a verdict rests on the answers with the groups' words masked."
    ),
    cites=("liu2020gender", "liu2022detecting"),
    section=DialogueFairness,
    part=DialoguePart,
    subject="model",
    table="dialogue_significance",
    report="dialogue_fairness_report",
    asked="responses",
    identity=("dimension", "model", "measure"),
    headings=(*_HEADINGS.values(), LISTS),
    legend="distinguishable answers: 50 (chance) minus the share told apart; names the other group: the larger share",
    heading=lambda row: _HEADINGS.get(row["measure"]) or (None if is_part(row["measure"]) else LISTS),
    label=lambda row: measure_label(row["measure"]),
    files={"models": ModelSpecification, "corpora": CorpusSpecification},
    groups=_groups,
    finding=_finding,
    decisive=decisive,
    direction=_direction,
    doubts=lambda part, key, row: doubts(row, part.level),
    control=lambda part, key, row: control(row),
    asides=asides,
    harmful=lambda row: is_harmful(row["measure"]),
    gated=lambda row: not is_part(row["measure"]),
    more=more,
    cure=cure,
    degenerate=degenerate,
    warnings=warnings,
    power_forecast=power_forecast,
    requests=requests,
)  # fmt: skip
