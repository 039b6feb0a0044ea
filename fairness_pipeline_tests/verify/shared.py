"""What the parts of a verification share: the folder of outcomes, and commands with a separate home."""

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import STUDIES

ROOT = Path(__file__).parents[2]
STATE = ROOT / "data" / "lake" / "verification"
SEEDS = (1, 2, 3, 4, 5)
DIALOGUES, LANGUAGE, SENTIMENT, STYLE, ANNOTATORS, OUTCOMES = STUDIES
Part = Callable[[], dict[str, Any]]
Claim = tuple[str, bool | None, str]
"""The claim, whether it holds (None: could not be tried here), and the figures behind it."""


def version(*more: Path) -> str:
    """A hash of the package, its data files, and further folders."""
    digest = sha256()
    data = [folder for folder in sorted((ROOT / "data").iterdir()) if folder.is_dir() and folder.name != "lake"]
    folders = [ROOT / "fairness_pipeline", Path(__file__).parent, *data, *more]
    for path in [path for folder in folders for path in sorted(folder.rglob("*"))]:
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.hexdigest()


def command(home: Path, *arguments: str, data: Path | None = None) -> subprocess.Popen[str]:
    """Starts the command line with a separate home."""
    environment = {**os.environ, "FAIRNESS_HOME": str(home)}
    if data:
        environment["FAIRNESS_DATA"] = str(data)
    return subprocess.Popen(
        [sys.executable, "-m", "fairness_pipeline.cli", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
    )  # fmt: skip


def finished(process: subprocess.Popen[str]) -> str:
    """Waits for a command, which must succeed; returns its output."""
    output = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"the command failed:\n{output}")
    return output


def interval(values: list[float]) -> tuple[float, float, float]:
    """The mean with the bounds of its 95% interval (Student's t)."""
    mean = float(np.mean(values))
    reach = float(student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return mean, mean - reach, mean + reach


def stages(workspace: Path) -> list[str]:
    """The assets of which a workspace holds partitions, upstream before downstream."""
    made = {path.name for kind in ("tables", "cards") for path in (workspace / kind).iterdir()}
    return [name for name in Lineage(Project("sample")).assets if name in made]
