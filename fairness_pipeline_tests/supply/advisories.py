"""`make advisories`: lists known weaknesses of the versions in requirements.txt, by pip-audit.

pip-audit calls what it could not look up "skipped" and exits with 0. Here that is no pass, and the output says why.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FINE, WEAK, UNKNOWN = 0, 1, 2


def judged(report: str, errors: str) -> tuple[int, list[str]]:
    """The exit status and the lines to print for a report by `pip-audit --format json`.

    Args:
        report: The report; empty if there is none.
        errors: What pip-audit wrote to standard error.
    """
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        last = (errors.strip().splitlines() or ["no answer"])[-1]
        return UNKNOWN, [f"not known: the advisories could not be read; is this machine offline? ({last[:200]})"]
    lines = []
    for package in packages:
        for weakness in package.get("vulns", ()):
            fixed = ", ".join(weakness.get("fix_versions", ())) or "no version yet"
            lines.append(f"{package['name']} {package['version']}: {weakness['id']}, mended in {fixed}")
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    status = WEAK if lines else UNKNOWN if unknown or not packages else FINE
    lines.append(f"{len(packages) - len(unknown)} of {len(packages)} packages looked up, {len(lines)} weaknesses known")
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
