"""Whether files are under version control, so that whoever proposes a change can bring them."""

import os
import subprocess
from pathlib import Path

from fairness_pipeline.foundation.errors import FairnessError

_SETTINGS = ("core.fsmonitor=false", "safe.bareRepository=explicit", "safe.directory=*")
"""A repository's settings can name programs, and a folder of a checkout can look like a repository; in a container the
checkout is somebody else's."""


def tracked_file(folder: Path) -> str | None:
    """A file of a folder that Git tracks, by its path in the folder; None if there is none.

    Args:
        folder: A folder, which need not exist.

    Raises:
        FairnessError: the folder is in a checkout, and Git cannot tell.
    """
    folder = folder.resolve()
    if not folder.is_dir() or not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return None
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    try:
        command = ["git", *settings, "-C", str(folder), "ls-files", "-z"]
        # A hook of Git, and whoever calls it, may name another repository.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        listed = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", b"") or str(error).encode()
        raise FairnessError(
            f"{folder}: in a checkout, and Git cannot tell whether it is under version control "
            f"({said.decode('utf-8', 'replace').strip()[:200]}); set FAIRNESS_HOME to a folder outside of the checkout"
        ) from None
    return listed.split(b"\0")[0].decode("utf-8", "replace") or None
