"""What Dagster loads: the lineage of one profile."""

import dagster as dg

from fairness_pipeline.defs import assets, automation
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.project.project import Project, profile_of_environment


def definitions(project: Project, listener: Listener | None = None) -> dg.Definitions:
    """Assets, checks, job, schedule and sensor of a profile; `listener` hears of progress instead of Dagster's log."""
    lineage = Lineage(project)
    hears = listener or assets.Log()
    job = automation.bring_up_to_date(project.name)
    return dg.Definitions(
        assets=[
            assets.definition(lineage, recipe, hears)
            for recipe in lineage.recipes.values()
            if lineage.keys(recipe.name)
        ],
        jobs=[job],
        schedules=[automation.weekly(job)],
        sensors=[automation.changed_files(job, project.name)],
        executor=dg.in_process_executor,  # a process a step would import torch once a step
    )


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads: the profile that `FAIRNESS_PROFILE` names."""
    return definitions(Project(profile_of_environment()))
