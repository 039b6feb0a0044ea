"""Query epochs: the times since which endpoints and unpinned models, which may change, are queried again.

An epoch is open until the run that began it has all its answers. A stopped run leaves it open, and the next run
continues in it.
"""

from pathlib import Path

from fairness_pipeline.foundation.files import write_text

_FOLDER = "rounds"  # the older name; kept so that existing workspaces need not query their endpoints again
_OPEN = "open"


def read_query_epochs(workspace: Path) -> dict[tuple[str, str], str]:
    """The start of the current query epoch, by study and subject. Subjects still in their first epoch are missing."""
    return {key: lines[0] for key, lines in _read(workspace).items()}


def open_query_epochs(workspace: Path) -> dict[tuple[str, str], str]:
    """The same for the epochs that a stopped run has left open."""
    return {key: lines[0] for key, lines in _read(workspace).items() if _OPEN in lines}


def write_query_epoch(workspace: Path, study: str, subject: str, began: str, *, is_open: bool = False) -> None:
    """Saves the start of a subject's current query epoch; the subject's responses depend on it."""
    write_text(workspace / _FOLDER / study / f"{subject}.txt", "\n".join([began, *([_OPEN] if is_open else [])]))


def _read(workspace: Path) -> dict[tuple[str, str], list[str]]:
    files = sorted((workspace / _FOLDER).glob("*/*.txt"))
    return {(path.parent.name, path.stem): path.read_text(encoding="utf-8").split("\n") for path in files}
