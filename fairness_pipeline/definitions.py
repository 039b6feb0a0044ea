"""What Dagster loads, under the name that `workspace.yaml` and users know: `fairness_pipeline.defs.definitions`."""

from fairness_pipeline.defs.definitions import definitions, defs

__all__ = ["definitions", "defs"]
