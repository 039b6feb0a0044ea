"""What a lineage reads of its profile is checked by the type checker."""

import subprocess
import sys
from pathlib import Path

from fairness_pipeline.project.study import STUDIES, studies

ROOT = Path(__file__).parents[2]
TYPOS = (
    "part.settings.max_identical_sharee",
    "part.nonsense",
    "part.project.worksapce",
    "partition.part.settings.sedds",
)


def mypy(file: Path) -> str:
    """What it says of a file; in one process, as other tests work beside it."""
    words = [sys.executable, "-m", "mypy", "--num-workers", "0", str(file)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300).stdout


def test_a_misspelt_setting_is_an_error_of_mypy(tmp_path: Path) -> None:
    lines = [
        "from fairness_pipeline.lineage.assets import Assets",
        "from fairness_pipeline.lineage.partition import Partition",
        "from fairness_pipeline.lineage.recipe import Result",
    ]
    for study in studies():
        part = study.part.__name__
        lines += [
            f"from fairness_pipeline.studies.{study.name}.profile import {part}",
            f"@Assets({part})(code_version='1', settings=lambda part, key: {{'level': part.level}})",
            f"def sound_{study.name}(partition: Partition[{part}]) -> Result:",
            "    return Result(None, {'alpha': partition.part.level, 'where': partition.part.project.workspace})",
        ]
        for number, typo in enumerate(TYPOS):
            of_function = typo.startswith("partition")
            lines += [
                f"@Assets({part})(code_version='1', settings=lambda part, key: {{'x': {1 if of_function else typo}}})",
                f"def broken_{study.name}_{number}(partition: Partition[{part}]) -> Result:",
                f"    return Result(None, {{'x': {typo if of_function else 1}}})",
            ]
    file = tmp_path / "typos.py"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = mypy(file)
    refused = [line for line in said.splitlines() if "[attr-defined]" in line]
    assert len(refused) == len(STUDIES) * len(TYPOS), said
    assert f"Found {len(refused)} errors" in said  # what is sound is not refused


def test_another_studys_part_is_an_error_of_mypy(tmp_path: Path) -> None:
    file = tmp_path / "mixed.py"
    file.write_text(
        "from fairness_pipeline.lineage.partition import Partition\n"
        "from fairness_pipeline.lineage.recipe import Result\n"
        "from fairness_pipeline.studies.dialogue_fairness.lineage import asset\n"
        "from fairness_pipeline.studies.sentiment_equity.profile import EquityPart\n"
        "@asset(code_version='1', settings=lambda part, key: {})\n"
        "def mixed(partition: Partition[EquityPart]) -> Result: ...\n",
        encoding="utf-8",
    )
    said = mypy(file)
    assert "[arg-type]" in said, said
