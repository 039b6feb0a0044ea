"""Whether files are under version control, and where others can read them."""

import os
import re
import subprocess
from functools import cache
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


def page_of(path: Path) -> str | None:
    """The web page of a file in the repository that its checkout was cloned from, at the commit that is checked out.

    None if the file is in no checkout or not part of it (an environment inside of one), or the repository has no page.

    Args:
        path: A file.
    """
    path = path.resolve()
    root = _checkout(path.parent)
    if root is None:
        return None
    name = path.relative_to(root).as_posix()
    try:
        page = _page(root)
        return f"{page}/{name}" if page and name in _tracked(root, path.parent) else None
    except (OSError, subprocess.SubprocessError):  # without Git, or without a remote repository
        return None


def _checkout(folder: Path) -> Path | None:
    """The root of the checkout that a folder is in."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


@cache
def _page(root: Path) -> str | None:
    """The page of a checkout's commit, without any password of the remote repository's address."""
    match = _REMOTE.fullmatch(_git(root, "remote", "get-url", "origin").decode("utf-8", "replace").strip())
    commit = _git(root, "rev-parse", "HEAD").decode().strip()
    if not match:
        return None
    host = match["host_a"] or match["host_b"]
    return f"https://{host}/{match['path']}/{'src' if 'bitbucket' in host else 'blob'}/{commit}"


@cache
def _tracked(root: Path, folder: Path) -> frozenset[str]:
    """The files of a folder that Git tracks, by their paths in the checkout."""
    output = _git(root, "ls-files", "-z", "--", str(folder))
    return frozenset(output.decode("utf-8", "replace").split("\0"))


_REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^/@]*@)?(?P<host_a>[\w.-]+)(?::\d+)?/|(?:[\w.-]+@)(?P<host_b>[\w.-]+):)"
    r"(?P<path>[\w./~-]+?)(?:\.git)?/?"
)
"""`https://host/owner/name.git`, `ssh://git@host/owner/name`, `git@host:owner/name.git`."""


def _git(folder: Path, *arguments: str) -> bytes:
    """The output of Git; raises OSError or SubprocessError if it fails."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    # These variables may name another repository, for example in a Git hook.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *settings, "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True).stdout
