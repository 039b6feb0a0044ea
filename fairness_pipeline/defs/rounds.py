"""Rounds of asking: what may have changed is asked anew, and a run that was stopped goes on in its round."""

from datetime import UTC, datetime

from fairness_pipeline.defs.lineage import State
from fairness_pipeline.defs.plan import Plan, Step
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lake import fingerprint
from fairness_pipeline.rounds import write_round


def begin_rounds(plan: Plan, only: str | None, *, keep: bool) -> None:
    """Begins a new round of asking for all of a plan (or the `only` one of it) that may have changed.

    One whose round is not through goes on in it: so does a run that was stopped and is called again.
    """
    project, now = plan.project, datetime.now(UTC).isoformat(timespec="seconds")
    state = State(plan.lineage, plan.lake)
    for study in project.studies:
        asked = [step for step in plan.steps if step.name == study.asked]
        going_on = {
            step.key[study.subject]
            for step in asked
            if _in_a_round(state, step, project.rounds.get((study.name, step.key[study.subject])))
        }
        subjects = project.parts[study.name].subjects
        for key in dict.fromkeys(step.key[study.subject] for step in asked):
            if subjects[key].may_change and key not in going_on and only in (None, key):
                project.rounds[study.name, key] = now
                if keep:
                    write_round(project.workspace, study.name, key, now)


def _in_a_round(state: State, step: Step, began: str | None) -> bool:
    """Whether a partition is yet to be asked for in the present round, or a run that asked for it was stopped."""
    card = state.lake.card(step.name, step.key)
    if card is not None:
        return bool(card.inputs["settings"].get("round") != began)
    try:
        folder = state.lake.folder(step.name, step.key, fingerprint(state.inputs(step.name, step.key)))
    except FairnessError:  # a file cannot be read: making it says so
        return False
    return folder.is_dir()
