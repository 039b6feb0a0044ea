"""Whether files are under version control."""

import os
import subprocess
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError

_SETTINGS = ("core.fsmonitor=false", "safe.bareRepository=explicit", "safe.directory=*")
"""A repository's settings can name programs, and a folder of a checkout can look like a repository; in a container the
checkout belongs to another user."""


def tracked_file(folder: Path) -> str | None:
    """A file of a folder that Git tracks, by its path in the folder; None if there is none.

    Raises:
        FairnessError: the folder is in a checkout, and Git cannot tell.
    """
    folder = folder.resolve()
    if not folder.is_dir() or _checkout(folder) is None:
        return None
    try:
        output = _git(folder, "ls-files", "-z")
    except (OSError, subprocess.SubprocessError) as error:
        fault = getattr(error, "stderr", b"") or str(error).encode()
        raise FairnessError(
            f"{folder}: in a checkout, and Git cannot tell whether it is under version control "
            f"({fault.decode('utf-8', 'replace').strip()[:200]}); set FAIRNESS_HOME to a folder outside of the checkout"
        ) from None
    return output.split(b"\0")[0].decode("utf-8", "replace") or None


def _checkout(folder: Path) -> Path | None:
    """The root of the checkout that a folder is in."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def _git(folder: Path, *arguments: str) -> bytes:
    """The output of Git; raises OSError or SubprocessError if it fails."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    # These variables may name another repository, for example in a Git hook.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *settings, "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True).stdout
