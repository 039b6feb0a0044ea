"""What Dagster loads: the lineage of one profile."""

from itertools import chain

import dagster as dg

from fairness_pipeline.defs import assets, automation
from fairness_pipeline.defs.checks import checks
from fairness_pipeline.defs.instance import warn_if_elsewhere
from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.defs.sources import Sources
from fairness_pipeline.defs.sync import sync
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.versions import partitions_shown
from fairness_pipeline.project.project import Project, profile_of_environment


def definitions(project: Project, listener: Listener | None = None, *, everything: bool = False) -> dg.Definitions:
    """Assets, checks, job, schedule and sensor of a profile.

    Args:
        project: The profile.
        listener: Hears of progress instead of Dagster's log.
        everything: Whether to include the partitions that are made on request and were not made yet.
    """
    lineage = Lineage(project)
    shown = Shown(lineage, None if everything else chain(*partitions_shown(lineage)))
    sources = Sources(shown)
    hears, condition = listener or assets.Log(), automation.condition(project.name)
    command = automation.command_op(lineage)
    job = automation.bring_up_to_date(lineage, command)
    return dg.Definitions(
        assets=[
            *sources.files(),
            *sources.settings(lambda instance: sync(Lineage(Project(project.name)), instance)),
            *(assets.definition(shown, asset, hears, condition) for asset in shown.assets),
            *(assets.on_request(shown, asset) for asset in shown.on_request),
        ],
        asset_checks=[] if everything else checks(shown),  # the command looks at them once, when it has ended
        jobs=[job, *automation.audits(lineage, command)],
        schedules=[automation.weekly(job)],
        sensors=[automation.lake(project.name), automation.automation(), automation.changed_files(job, project.name)],
        executor=dg.in_process_executor,  # a process a step would import torch once a step
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads: the profile that `FAIRNESS_PROFILE` names."""
    project = Project(profile_of_environment())
    warn_if_elsewhere(project)
    return definitions(project)
