"""Calls the command line as a user does."""

import io
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import yaml

from fairness_pipeline import cli

MADE = re.compile(rb"(Made|As of) \d{4}-\d\d-\d\d \d\d:\d\d UTC")


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in this process, which has the libraries loaded and is the only worker."""
    words = [*arguments]
    if words[:1] in (["run"], ["audit"]) and "--workers" not in words:
        words += ["--workers", "1"]
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            cli.main(words)
        except SystemExit as end:
            status = int(end.code or 0)
    return subprocess.CompletedProcess(words, status, out.getvalue(), errors.getvalue())


def process(*arguments: str) -> subprocess.Popen[str]:
    """Starts a command in a separate process, for tests of kills, locks and signals."""
    return subprocess.Popen(
        [sys.executable, "-m", "fairness_pipeline.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Calls `run`, which must succeed."""
    done = command("run", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def planned(*arguments: str) -> list[str]:
    """The partitions that a run would make."""
    lines = run("--dry-run", *arguments).stdout.splitlines()
    return [line.split(":")[0] for line in lines[: next(i for i, line in enumerate(lines) if "would run" in line)]]


def change(path: Path, edit: object) -> None:
    """Edits a YAML file."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    edit(document)
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def content(workspace: Path) -> dict[str, bytes]:
    """The bytes of every table, checkpoint and report by path, without the reports' time stamps. The first page is left
    out: it lists what changed since the last run, so it depends on earlier runs."""
    return {
        str(path.relative_to(workspace)): MADE.sub(b"", path.read_bytes())
        for kind in ("tables", "checkpoints", "reports", "cards")
        for path in sorted((workspace / kind).rglob("*"))
        if path.is_file() and not path.match("cards/*_report/*") and path.name != "index.html"
    }
