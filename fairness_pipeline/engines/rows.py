"""Chooses the engine that scores rows."""

from pathlib import Path

from fairness_pipeline.engines.settings import EngineSettings, ray_of
from fairness_pipeline.workspace.distinct import HERE, Engine


def engine_of(settings: EngineSettings, lake: Path) -> Engine:
    """The engine of a profile; Ray is only imported where it is used.

    Args:
        settings: The profile's engine.
        lake: The workspace's folder.
    """
    if ray := ray_of(settings):
        from fairness_pipeline.engines.ray_rows import RayRows

        return RayRows(ray, lake)
    return HERE
