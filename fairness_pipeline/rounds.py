"""Rounds of asking: what may answer otherwise tomorrow (an endpoint, an unpinned id) is asked again in a new round."""

from pathlib import Path

from fairness_pipeline.files import replacing


def read_rounds(workspace: Path) -> dict[str, str]:
    """When the present round of each model or system began; one in its first is missing."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((workspace / "rounds").glob("*.txt"))}


def write_round(workspace: Path, model: str, began: str) -> None:
    """Keeps when a model's or system's present round began: it is part of what its answers are made from."""
    with replacing(workspace / "rounds" / f"{model}.txt") as temporary:
        temporary.write_text(began, encoding="utf-8")
