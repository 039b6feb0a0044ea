"""What Dagster loads, under the name that `workspace.yaml` and users know: `fairness_pipeline.defs.definitions`."""

from fairness_pipeline.defs.component import FairnessProfileComponent
from fairness_pipeline.defs.definitions import build_definitions, definitions, defs
from fairness_pipeline.defs.lake_io_manager import LakeIOManager

__all__ = ["FairnessProfileComponent", "LakeIOManager", "build_definitions", "definitions", "defs"]
