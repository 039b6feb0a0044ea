"""`make lock`: writes the versions of constraints.txt with the hashes of their files.

`make` installs requirements.txt; images and build servers install requirements-run.txt, without development tools.

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
"""The purpose of each file, and the extras that it includes."""
_HEAD = "# The versions of constraints.txt with the hashes of their files: {}. Written by `make lock`.\n"


def locked(compiled: str, purpose: str) -> str:
    """What `uv pip compile --universal --generate-hashes` printed, without CUDA.

    Args:
        compiled: Requirements, each with indented lines of hashes and comments.
        purpose: What they are for.
    """
    entries = re.split(r"\n(?=\S)", compiled.strip())
    remaining = [_entry(entry) for entry in entries if not _CUDA.match(entry) and not entry.startswith("#")]
    return _HEAD.format(purpose) + "\n".join(remaining) + "\n"


def _entry(entry: str) -> str:
    lines = [line.rstrip(" \\") for line in entry.splitlines() if not line.lstrip().startswith("#")]
    return " \\\n".join(lines)


def main() -> None:
    """Calls uv, whose path is the first argument."""
    words = [sys.argv[1], "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--universal"]
    words += ["--python-version", "3.11", "--generate-hashes", "-c", str(ROOT / "constraints.txt")]
    for name, (purpose, extras) in _FILES.items():
        options = [word for extra in extras for word in ("--extra", extra)]
        command = [*words, *options, str(ROOT / "pyproject.toml")]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        (ROOT / name).write_text(locked(done.stdout, purpose), encoding="utf-8")


if __name__ == "__main__":
    main()
