"""What Dagster loads: the lineage of one profile."""

from collections.abc import Sequence
from itertools import chain

import dagster as dg

from fairness_pipeline.defs import assets, automation
from fairness_pipeline.defs.checks import checks
from fairness_pipeline.defs.instance import warn_if_elsewhere
from fairness_pipeline.defs.lake_io_manager import RESOURCE, LakeIOManager
from fairness_pipeline.defs.names import Names, names
from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.defs.sources import Sources
from fairness_pipeline.defs.sync import sync
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.listener import Listener
from fairness_pipeline.lineage.versions import partitions_shown
from fairness_pipeline.project.project import Project, profile_of_environment


def definitions(
    project: Project,
    names: Names | None = None,
    *,
    listener: Listener | None = None,
    everything: bool = False,
    executor: dg.ExecutorDefinition | None = dg.in_process_executor,
) -> dg.Definitions:
    """Assets, checks, jobs, schedule and sensors of a profile.

    Args:
        project: The profile.
        names: Their names.
        listener: Receives progress instead of Dagster's log.
        everything: Whether to include the partitions that are made on request and were not made yet.
        executor: By default, one process makes a whole run: a process for each step would import torch each time.
    """
    lineage, names = Lineage(project), names or Names(owners=project.profile.owners)
    shown = Shown(lineage, None if everything else chain(*partitions_shown(lineage)), names)
    sources = Sources(shown)
    progress_listener, condition = listener or assets.Log(), automation.condition(project.name)
    command = automation.command_op(lineage, names)
    job = automation.bring_up_to_date(lineage, names, command)
    jobs = [job, *automation.audits(lineage, names, command)]
    keys, notify = [names.asset(asset.name) for asset in shown.assets], project.profile.notify
    return dg.Definitions(
        assets=[
            *sources.files(),
            *sources.settings(lambda instance: sync(Lineage(Project(project.name)), instance, names)),
            *(assets.definition(shown, asset, progress_listener, condition) for asset in shown.assets),
            *(assets.on_request(shown, asset) for asset in shown.on_request),
        ],
        asset_checks=[] if everything else checks(shown),  # the command evaluates them once, at its end
        jobs=jobs,
        schedules=[automation.weekly(job, names)],
        sensors=[
            automation.lake(project.name, names),
            automation.automation(names, keys),
            automation.changed_files(job, project.name, names),
            *([automation.failures(project.name, notify, names, {j.name for j in jobs}, keys)] if notify else []),
        ],
        resources={names.other(RESOURCE): LakeIOManager(profile=project.name)},
        executor=executor,
    )


def build_definitions(
    profile: str,
    *,
    key_prefix: str | Sequence[str] | None = None,
    group_prefix: str | None = None,
    owners: str | Sequence[str] | None = None,
    executor: dg.ExecutorDefinition | None = None,
) -> dg.Definitions:
    """The definitions of a profile, to merge with those of your own code location.

    Args:
        profile: The profile's key.
        key_prefix: Comes before every asset's key, and before the names of jobs, schedules and sensors. Two profiles in
            one location need different prefixes.
        group_prefix: Comes before the name of every group.
        owners: Own every asset: e-mail addresses, or `team:` and a name; by default those of the profile.
        executor: Makes the runs; by default that of the location. Choose `dagster.in_process_executor` unless you
            need another: a process for each step would load the libraries each time.

    Raises:
        FairnessError: there is no such profile, or a file that it names is wrong.

    Examples:
        >>> import dagster as dg
        >>> from fairness_pipeline import build_definitions
        >>> audits = build_definitions("sample", key_prefix="fairness", owners=["team:audit"])
        >>> both = dg.Definitions.merge(audits, dg.Definitions(assets=[dg.AssetSpec("releases")]))
    """
    project = Project(profile)
    prefixed = names(key_prefix, group_prefix, project.profile.owners if owners is None else owners)
    return definitions(project, prefixed, executor=executor)


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads: the profile that `FAIRNESS_PROFILE` names."""
    project = Project(profile_of_environment())
    warn_if_elsewhere(project)
    return definitions(project)
