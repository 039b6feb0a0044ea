"""Workspaces of each format that a version has written are read as they are, and never called damaged."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.imports import imported_file, seal_earlier, wrong_imports
from fairness_pipeline.workspace.lake import FORMAT, UNSEALED, UNSEALED_IMPORTS, Lake
from fairness_pipeline_tests.commands import command

WRITTEN = Path(__file__).parents[1] / "data"
"""`format-1` was written by the commit before seals (ee72d1d), the others by those before and with seals of imported
files. Each has two tables and a checkpoint of `audit --dimension gender`, whose endpoint says the length of a message,
and an import."""
KEY = {"dimension": "gender", "model": "our-bot"}
PARTITIONS = [("diversity", KEY), ("refusal", KEY), ("dialogue_models", {"model": "our-bot"})]


def of_format(number: int, folder: Path) -> Lake:
    """A copy of the workspace that was written in a format."""
    shutil.copytree(WRITTEN / f"format-{number}", folder)
    return Lake(folder)


@pytest.mark.parametrize("number", range(UNSEALED, FORMAT + 1))
def test_each_format_is_read_as_it_was_written(tmp_path: Path, number: int) -> None:
    lake = of_format(number, tmp_path / "lake")
    assert lake.format == (max(number, UNSEALED_IMPORTS), number)
    assert [lake.verify(*partition) for partition in PARTITIONS] == [None] * 3
    assert [lake.unsealed(*partition) for partition in PARTITIONS] == [number == UNSEALED] * 3
    assert lake.read("refusal", KEY).num_rows == 800
    assert lake.current_folder("dialogue_models", {"model": "our-bot"}).is_dir()
    imported = lake.root / "predictions" / "reviews" / "ours.csv"
    assert imported_file(imported, lake.root)
    assert seal_earlier(lake.root) == (number < FORMAT)
    imported.write_text("others")
    assert len(list(wrong_imports(lake.root))) == 1
    assert seal_earlier(lake.root) == 0  # what is exchanged later is not sealed
    assert Lake(lake.root).format == (FORMAT, number)
    (lake.root / "format.json").unlink()
    assert Lake(lake.root).format == (FORMAT, min(number, UNSEALED_IMPORTS))


def test_an_import_without_a_seal_is_none_where_all_have_one(tmp_path: Path) -> None:
    lake = of_format(UNSEALED_IMPORTS, tmp_path / "lake")
    (lake.root / "format.json").write_text(json.dumps({"format": FORMAT}))
    with pytest.raises(FairnessError, match="its seal .ours.csv.import.json is missing"):
        imported_file(lake.root / "predictions" / "reviews" / "ours.csv", lake.root)


def _flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        lambda lake: _flip(lake.table_path("refusal", KEY), 200),
        lambda lake: _flip(lake.table_path("refusal", KEY), 5),
        lambda lake: next(lake.root.rglob("source.json")).write_text('{"name": "another"}'),
    ],
)
def test_what_changed_without_a_seal_is_damaged(tmp_path: Path, damage: Callable[[Lake], object]) -> None:
    damage(of_format(UNSEALED, tmp_path / "lake"))
    lake = Lake(tmp_path / "lake")
    assert sum(lake.verify(*partition) is not None for partition in PARTITIONS) == 1


def test_a_card_without_a_seal_vouches_for_nothing_in_a_workspace_with_seals(tmp_path: Path) -> None:
    lake = of_format(UNSEALED, tmp_path / "lake")
    (lake.root / "format.json").write_text(json.dumps({"format": FORMAT}))
    assert all(Lake(lake.root).verify(*partition) for partition in PARTITIONS)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"format": Infinity}', "damaged"),
        ('{"format": true}', "damaged"),
        ('{"format": 4}', "has format 4, and this version"),
        ("[", "damaged"),
    ],
)
def test_a_format_of_the_future_is_left_alone(tmp_path: Path, text: str, problem: str) -> None:
    lake = of_format(FORMAT, tmp_path / "lake")
    (lake.root / "format.json").write_text(text)
    with pytest.raises(FairnessError, match=f"format.json: .*{problem}"):
        Lake(lake.root)


def without_seals(workspace: Path) -> None:
    """Rewrites a workspace as versions before seals did."""
    for path in workspace.rglob("part-0.parquet"):
        card = pq.read_metadata(path).metadata[b"fairness_pipeline"]
        seal = json.dumps(json.loads(card)["seal"]).encode()
        path.write_bytes(path.read_bytes().replace(seal, b'""'.ljust(len(seal))))  # blanks say nothing in JSON
    for path in (workspace / "cards").rglob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "seal": ""}))
    (workspace / "format.json").unlink()


def test_what_an_earlier_version_made_is_not_made_again(made: Project) -> None:
    without_seals(made.workspace)
    checked = command("check")
    assert (checked.returncode, ", 0 not as written" in checked.stdout) == (0, True), checked.stdout
    assert re.search(
        r"(?m)^[0-9]+ partitions made by an earlier version, without a seal: read as written$", checked.stdout
    )
    planned = command("run", "--dry-run").stdout
    assert re.search(
        rf"(?m)^{made.workspace}: made by an earlier version, without seals: \d+ partitions read as they are$", planned
    )
    assert "0 of " in planned
    assert "no request to an endpoint" in planned
    _flip(next(made.workspace.rglob("dialogue_significance/**/part-0.parquet")), 200)
    again = command("run", "--dry-run").stdout
    assert re.search(r"(?m)^dialogue_significance .*: not made yet$", again)
