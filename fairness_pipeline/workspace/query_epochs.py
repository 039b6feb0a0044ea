"""Query epochs: the times since when endpoints and unpinned models, which may change, are queried anew."""

from pathlib import Path

from fairness_pipeline.foundation.files import replacing

_FOLDER = "rounds"  # the older name; kept so that existing workspaces need not query their endpoints again


def read_query_epochs(workspace: Path) -> dict[tuple[str, str], str]:
    """The start of the current query epoch, by study and subject. Subjects still in their first epoch are missing."""
    files = sorted((workspace / _FOLDER).glob("*/*.txt"))
    return {(path.parent.name, path.stem): path.read_text(encoding="utf-8") for path in files}


def write_query_epoch(workspace: Path, study: str, subject: str, began: str) -> None:
    """Saves the start of a subject's current query epoch; the subject's responses depend on it."""
    with replacing(workspace / _FOLDER / study / f"{subject}.txt") as temporary:
        temporary.write_text(began, encoding="utf-8")
