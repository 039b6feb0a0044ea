"""Rounds of asking: what may answer otherwise tomorrow (an endpoint, an unpinned id) is asked again in a new round."""

from pathlib import Path

from fairness_pipeline.foundation.files import replacing


def read_rounds(workspace: Path) -> dict[tuple[str, str], str]:
    """When the present round of each subject began, by study and subject; one in its first is missing."""
    files = sorted((workspace / "rounds").glob("*/*.txt"))
    return {(path.parent.name, path.stem): path.read_text(encoding="utf-8") for path in files}


def write_round(workspace: Path, study: str, subject: str, began: str) -> None:
    """Keeps when a subject's present round began: it is part of what its answers are made from."""
    with replacing(workspace / "rounds" / study / f"{subject}.txt") as temporary:
        temporary.write_text(began, encoding="utf-8")
