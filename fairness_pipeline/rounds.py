"""Rounds of asking: what may answer otherwise tomorrow (an endpoint, an unpinned id) is asked again in a new round."""

from datetime import datetime
from pathlib import Path

from fairness_pipeline.files import replacing


def current_round(workspace: Path, model: str) -> str | None:
    """When the model's present round began; None in its first. It is part of what its answers are made from."""
    path = _path(workspace, model)
    return path.read_text(encoding="utf-8") if path.exists() else None


def begin_round(workspace: Path, model: str, now: datetime) -> None:
    """From now on the model's answers are stale; a run that is killed goes on in the same round."""
    with replacing(_path(workspace, model)) as temporary:
        temporary.write_text(now.isoformat(timespec="seconds"), encoding="utf-8")


def _path(workspace: Path, model: str) -> Path:
    return workspace / "rounds" / f"{model}.txt"
