"""`make lock`: writes the versions of constraints.txt with the hashes of their files.

requirements.txt is what `make` installs, requirements-run.txt what images and build servers do: nothing to develop with.

CUDA's libraries are left out, so that a machine without a GPU is not made to fetch gigabytes: where torch needs them, pip
takes the versions that torch itself names, without hashes from here.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CUDA = re.compile(r"(nvidia-|cuda-|triton==)")
_FILES = {
    "requirements.txt": ("what `make` installs", ("dev",)),
    "requirements-run.txt": (
        "what images and build servers install",
        ("build", "kubernetes", "postgres", "ray", "sign"),
    ),
}
"""By file: what it is for, and the extras that it has."""
_HEAD = "# The versions of constraints.txt with the hashes of their files: {}. Written by `make lock`.\n"


def locked(compiled: str, what: str) -> str:
    """What `uv pip compile --universal --generate-hashes` printed, without CUDA.

    Args:
        compiled: Requirements, each with indented lines of hashes and comments.
        what: What they are.
    """
    entries = re.split(r"\n(?=\S)", compiled.strip())
    kept = [_entry(own) for own in entries if not _CUDA.match(own) and not own.startswith("#")]
    return _HEAD.format(what) + "\n".join(kept) + "\n"


def _entry(entry: str) -> str:
    lines = [line.rstrip(" \\") for line in entry.splitlines() if not line.lstrip().startswith("#")]
    return " \\\n".join(lines)


def main() -> None:
    """Calls uv, whose path is the first argument."""
    words = [sys.argv[1], "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--universal"]
    words += ["--python-version", "3.11", "--generate-hashes", "-c", str(ROOT / "constraints.txt")]
    for name, (what, extras) in _FILES.items():
        asked = [word for extra in extras for word in ("--extra", extra)]
        command = [*words, *asked, str(ROOT / "pyproject.toml")]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        (ROOT / name).write_text(locked(done.stdout, what), encoding="utf-8")


if __name__ == "__main__":
    main()
