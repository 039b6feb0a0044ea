"""The command line, as a user calls it."""

import subprocess
import sys
from pathlib import Path

import yaml


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fairness_pipeline.cli", *arguments], capture_output=True, text=True)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = command("run", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def planned(*arguments: str) -> list[str]:
    """What a run would make."""
    return [line.split(":")[0] for line in run("--dry-run", *arguments).stdout.splitlines()[:-1]]


def change(path: Path, edit: object) -> None:
    """Edits a YAML file."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    edit(document)
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def content(workspace: Path) -> dict[str, bytes]:
    """Every table, checkpoint and report by its path."""
    return {
        str(path.relative_to(workspace)): path.read_bytes()
        for kind in ("tables", "checkpoints", "reports", "cards")
        for path in sorted((workspace / kind).rglob("*"))
        if path.is_file()
    }
