"""`make lock`: writes requirements.txt, the versions of constraints.txt with the hashes of their files.

CUDA's libraries are left out, so that a machine without a GPU is not made to fetch gigabytes: where torch needs them, pip
takes the versions that torch itself names, without hashes from here.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CUDA = re.compile(r"(nvidia-|cuda-|triton==)")
_HEAD = """\
# The versions of constraints.txt with the hashes of their files: what `make` installs. Written by `make lock`.
"""


def locked(compiled: str) -> str:
    """What `uv pip compile --universal --generate-hashes` printed, without CUDA.

    Args:
        compiled: Requirements, each with indented lines of hashes and comments.
    """
    entries = re.split(r"\n(?=\S)", compiled.strip())
    kept = [_entry(own) for own in entries if not _CUDA.match(own) and not own.startswith("#")]
    return _HEAD + "\n".join(kept) + "\n"


def _entry(entry: str) -> str:
    lines = [line.rstrip(" \\") for line in entry.splitlines() if not line.lstrip().startswith("#")]
    return " \\\n".join(lines)


def main() -> None:
    """Calls uv, whose path is the first argument."""
    words = [sys.argv[1], "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--universal"]
    words += ["--python-version", "3.11", "--generate-hashes", "--extra", "dev", "-c", str(ROOT / "constraints.txt")]
    done = subprocess.run([*words, str(ROOT / "pyproject.toml")], stdout=subprocess.PIPE, text=True, check=True)
    (ROOT / "requirements.txt").write_text(locked(done.stdout), encoding="utf-8")


if __name__ == "__main__":
    main()
