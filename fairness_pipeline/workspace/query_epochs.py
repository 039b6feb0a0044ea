"""Query epochs: since when an endpoint or an unpinned model, which may change, is queried anew."""

from pathlib import Path

from fairness_pipeline.foundation.files import replacing

_FOLDER = "rounds"  # the older name; kept so that existing workspaces need not query their endpoints again


def read_query_epochs(workspace: Path) -> dict[tuple[str, str], str]:
    """When the present query epoch of each subject began, by study and subject; subjects in their first are missing."""
    files = sorted((workspace / _FOLDER).glob("*/*.txt"))
    return {(path.parent.name, path.stem): path.read_text(encoding="utf-8") for path in files}


def write_query_epoch(workspace: Path, study: str, subject: str, began: str) -> None:
    """Keeps when a subject's present query epoch began; its responses depend on it."""
    with replacing(workspace / _FOLDER / study / f"{subject}.txt") as temporary:
        temporary.write_text(began, encoding="utf-8")
