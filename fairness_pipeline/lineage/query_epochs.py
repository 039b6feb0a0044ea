"""Starts query epochs: models that may have changed are queried anew; a stopped run continues in its epoch."""

from datetime import UTC, datetime

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.plan import Plan, Step
from fairness_pipeline.lineage.state import State
from fairness_pipeline.workspace.lake import fingerprint
from fairness_pipeline.workspace.query_epochs import write_query_epoch


def begin_query_epochs(plan: Plan, only: str | None, *, keep: bool) -> None:
    """Starts a new query epoch for each subject of a plan (or only for `only`) that may have changed.

    A subject with an unfinished epoch stays in it, so that a stopped run continues where it was.
    """
    project, now = plan.project, datetime.now(UTC).isoformat(timespec="seconds")
    state = State(plan.lineage, plan.lake)
    for study in project.studies:
        asked = [step for step in plan.steps if step.name == study.asked]
        unfinished = {
            step.key[study.subject]
            for step in asked
            if _still_to_query(state, step, project.query_epochs.get((study.name, step.key[study.subject])))
        }
        subjects = project.parts[study.name].subjects
        for key in dict.fromkeys(step.key[study.subject] for step in asked):
            if subjects[key].may_change and key not in unfinished and only in (None, key):
                project.query_epochs[study.name, key] = now
                if keep:
                    write_query_epoch(project.workspace, study.name, key, now)


def _still_to_query(state: State, step: Step, began: str | None) -> bool:
    """Whether the partition still has to be queried in this epoch, or a run that queried it was stopped."""
    card = state.lake.card(step.name, step.key)
    if card is not None:
        return bool(card.inputs["settings"].get("round") != began)
    try:
        described = state.described(step.name, step.key, state.given(step.name, step.key))
        folder = state.lake.folder(step.name, step.key, fingerprint(described))
    except FairnessError:  # an unreadable file is reported when the partition is made
        return False
    return folder.is_dir()
