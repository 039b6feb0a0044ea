"""Begins and ends query epochs: models that may have changed are queried anew; a stopped run continues in its epoch."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from fairness_pipeline.lineage.answer_ages import too_old
from fairness_pipeline.lineage.assets import PartitionId
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Plan, Step
from fairness_pipeline.lineage.state import State
from fairness_pipeline.workspace.lake import Key, Lake
from fairness_pipeline.workspace.query_epochs import open_query_epochs, read_query_epochs, write_query_epoch

CONTINUED = timedelta(hours=1)
"""How long a stopped run can be continued; later its answers are too old, and everything is asked again."""


def begin_query_epochs(
    plan: Plan, only: Collection[str] | None, *, keep: bool, resume: bool = True
) -> dict[str, datetime]:
    """Starts a new query epoch for each subject of a plan (or only for those named) that may have changed.

    With `resume` a subject stays in an epoch that a stopped run has left open, so that the run continues where it was.

    Returns:
        The subjects that stay in such an epoch, and when it began.
    """
    now, continued = datetime.now(UTC), {}
    left_open = open_query_epochs(plan.project.workspace)
    for study, subject in _asked(plan):
        if only is not None and subject not in only:
            continue
        began = datetime.fromisoformat(left_open.get((study, subject), "1970-01-01T00:00+00:00"))
        if resume and now - began <= CONTINUED:
            continued[subject] = began
            continue
        plan.project.query_epochs[study, subject] = _text(now)
        if keep:
            write_query_epoch(plan.project.workspace, study, subject, _text(now), is_open=True)
    return continued


def too_old_answers(plan: Plan) -> dict[str, timedelta]:
    """The subjects of a plan whose answers are older than the profile allows, and how old they are."""
    state = State(plan.lineage, plan.lake)
    asking = [step for step in plan.steps if plan.lineage.assets[step.name].asks]
    ages = {}
    for step in asking:
        card = state.card(step.name, step.key)
        if card and (age := state.too_old(step.name, step.key, card)):
            ages[_subject(plan, step)[1]] = age
    return ages


def end_query_epochs(plan: Plan, lost: Collection[Step]) -> None:
    """Closes the epochs in which everything that the plan asks is answered."""
    left_open = open_query_epochs(plan.project.workspace)
    unanswered = {_subject(plan, step) for step in lost if plan.lineage.assets[step.name].asks}
    for subject in _asked(plan):
        if subject in left_open and subject not in unanswered:
            write_query_epoch(plan.project.workspace, *subject, left_open[subject])


def renew_query_epoch(lineage: Lineage, name: str, key: Key) -> None:
    """Starts a new query epoch for a subject whose answers are older than the profile allows, unless another process
    has done so."""
    project, study = lineage.project, lineage.study(name)
    subject, lake = key[study.subject], Lake(project.workspace)
    with lake.lock("query_epochs", {"study": study.name, "subject": subject}, lambda holder: None):
        began = read_query_epochs(project.workspace).get((study.name, subject))
        if began is None or too_old(lineage, datetime.fromisoformat(began)):
            began = _text(datetime.now(UTC))
            write_query_epoch(project.workspace, study.name, subject, began)
        project.query_epochs[study.name, subject] = began


def _asked(plan: Plan) -> list[PartitionId]:
    """The study and the key of each subject in a plan that may have changed."""
    subjects = (_subject(plan, step) for step in plan.steps if plan.lineage.assets[step.name].asks)
    return [
        (study, subject)
        for study, subject in dict.fromkeys(subjects)
        if plan.project.parts[study].subjects[subject].may_change
    ]


def _subject(plan: Plan, step: Step) -> PartitionId:
    study = plan.lineage.study(step.name)
    return study.name, step.key[study.subject]


def _text(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
