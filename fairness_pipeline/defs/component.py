"""A profile as a component of a `dg` project: its YAML names the profile."""

import dagster as dg

from fairness_pipeline.defs.definitions import build_definitions


class FairnessProfileComponent(dg.Component, dg.Model, dg.Resolvable):
    """The assets, checks, jobs, schedule and sensors of a profile.

    Args:
        profile: The profile's key.
        key_prefix: Comes before every asset's key, and before the names of jobs, schedules and sensors.
        group_prefix: Comes before the name of every group.
        owners: Own every asset: e-mail addresses, or `team:` and a name; by default those of the profile.

    Examples:
        A file `defs/fairness/defs.yaml` of the project::

            type: fairness_pipeline.FairnessProfileComponent
            attributes:
              profile: sample
              key_prefix: fairness
              owners: ["team:audit"]
    """

    profile: str
    key_prefix: str | list[str] | None = None
    group_prefix: str | None = None
    owners: list[str] | None = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions that Dagster merges with the project's own."""
        return build_definitions(
            self.profile, key_prefix=self.key_prefix, group_prefix=self.group_prefix, owners=self.owners
        )
