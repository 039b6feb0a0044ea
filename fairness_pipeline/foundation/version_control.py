"""Whether files are under version control, so that whoever proposes a change can bring them."""

import subprocess
from pathlib import Path

_NOT_ITS_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
"""A repository's settings can name programs, and a folder of a checkout can look like a repository."""


def tracked_file(folder: Path) -> str | None:
    """A file of a folder that Git tracks, by its path in the folder; None if there is none, or no Git.

    Args:
        folder: A folder, which need not exist.
    """
    if not folder.is_dir():
        return None
    try:
        listed = subprocess.run(
            ["git", *_NOT_ITS_PROGRAMS, "-C", str(folder), "ls-files", "-z"],
            capture_output=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return listed.stdout.split(b"\0")[0].decode("utf-8", "replace") or None
