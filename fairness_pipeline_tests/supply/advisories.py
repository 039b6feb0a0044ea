"""`make advisories`: known weaknesses of the versions in requirements.txt, by pip-audit.

pip-audit calls what it could not look up "skipped" and exits with 0. Here that is no pass: whoever is offline is told so.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FINE, WEAK, UNKNOWN = 0, 1, 2


def judged(said: str, errors: str) -> tuple[int, list[str]]:
    """The exit status and what to say of a report by `pip-audit --format json`.

    Args:
        said: The report; empty if there is none.
        errors: What was said beside it.
    """
    try:
        found = json.loads(said)["dependencies"]
    except (ValueError, KeyError):
        last = (errors.strip().splitlines() or ["no answer"])[-1]
        return UNKNOWN, [f"not known: the advisories could not be read; is this machine offline? ({last[:200]})"]
    lines = []
    for own in found:
        for weakness in own.get("vulns", ()):
            mended = ", ".join(weakness.get("fix_versions", ())) or "no version yet"
            lines.append(f"{own['name']} {own['version']}: {weakness['id']}, mended in {mended}")
    unknown = [own["name"] for own in found if "skip_reason" in own]
    status = WEAK if lines else UNKNOWN if unknown or not found else FINE
    lines.append(f"{len(found) - len(unknown)} of {len(found)} packages looked up, {len(lines)} weaknesses known")
    if unknown:
        named = ", ".join(unknown[:5])
        lines.append(f"not known for {len(unknown)}, such as {named}: is this machine offline?")
    return status, lines


def main() -> None:
    """Calls pip-audit, whose path is the first argument; exits with 1 for weaknesses, with 2 if that cannot be known."""
    words = [sys.argv[1], "--requirement", str(ROOT / "requirements.txt"), "--disable-pip", "--require-hashes"]
    words += ["--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(words, capture_output=True, text=True)
    status, lines = judged(done.stdout, done.stderr)
    print("\n".join(lines))
    sys.exit(status)


if __name__ == "__main__":
    main()
