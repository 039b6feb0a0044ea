"""The type checker checks what an asset's inputs read from the profile, and what its function receives."""

import subprocess
import sys
from pathlib import Path

from fairness_pipeline.project.study import STUDIES, studies

ROOT = Path(__file__).parents[2]
TYPOS = ("part.settings.max_identical_sharee", "part.nonsense", "part.project.worksapce")


def mypy(*files: Path) -> str:
    """The output of mypy for files; in one process, as other tests run at the same time."""
    arguments = [sys.executable, "-m", "mypy", "--num-workers", "0", *map(str, files)]
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=300).stdout


def test_a_misspelt_setting_and_inputs_of_another_type_are_errors_of_mypy(tmp_path: Path) -> None:
    lines = [
        "from fairness_pipeline.lineage.assets import Assets, Result",
        "from fairness_pipeline.lineage.run import Run",
    ]
    for study in studies():
        part = study.part.__name__
        lines += [
            f"from fairness_pipeline.studies.{study.name}.profile import {part}",
            f"@Assets({part})(code_version='1', inputs=lambda part, key: part.level)",
            f"def sound_{study.name}(level: float, run: Run) -> Result:",
            "    return Result('', {'alpha': level, 'seed': run.seed})",
        ]
        for number, typo in enumerate(TYPOS):
            lines += [
                f"@Assets({part})(code_version='1', inputs=lambda part, key: str({typo}))",
                f"def broken_{study.name}_{number}(told: str) -> Result:",
                "    return Result(told)",
            ]
    file = tmp_path / "typos.py"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    mixed = tmp_path / "mixed.py"
    mixed.write_text(
        "from fairness_pipeline.lineage.assets import Result\n"
        "from fairness_pipeline.studies.sentiment_equity.lineage import asset\n"
        "@asset(code_version='1', inputs=lambda part, key: part.settings.alpha)\n"
        "def mixed(words: tuple[str, ...]) -> Result:\n    return Result(words[0])\n",
        encoding="utf-8",
    )
    output = mypy(file, mixed)
    errors = [line for line in output.splitlines() if "[attr-defined]" in line]
    assert len(errors) == len(STUDIES) * len(TYPOS), output
    assert output.count("[arg-type]") == 1 and f"Found {len(errors) + 1} errors" in output  # sound assets have none
