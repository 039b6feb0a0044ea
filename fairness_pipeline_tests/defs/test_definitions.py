"""The definitions that Dagster loads."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import dagster as dg
import pytest
import yaml

from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.defs.partitions import Shown, from_dagster, to_dagster
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Selection, selected
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import STUDIES

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "datasets", "sklearn", "nltk")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("module", ["fairness_pipeline.definitions", "fairness_pipeline.cli"])
def test_nothing_heavy_is_imported(module: str) -> None:
    done = python(f"import sys, {module}; print([m for m in {HEAVY} if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_no_profile_is_read_at_import() -> None:
    """Only when Dagster asks for the definitions."""
    code = "from fairness_pipeline.definitions import defs; print('imported'); defs()"
    done = python(code, FAIRNESS_PROFILE="nonsense")
    assert done.stdout.strip() == "imported"
    assert "unknown profile 'nonsense'" in done.stderr


ROOMS = (
    "foundation", "workspace", "engines", "lexicons", "statistics", "corpora", "models", "annotation", "measures", "debiasing",
    "explanation", "project", "lineage", "reporting", "defs", "cli", "studies",
)  # fmt: skip
"""From the bottom to the top: a room imports itself and those before it."""


def imported(path: Path) -> set[str]:
    """The full names of the modules that a file imports, in functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def modules() -> dict[str, Path]:
    files = [path for path in (ROOT / "fairness_pipeline").rglob("*.py") if path.name != "__init__.py"]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files}


def test_rooms_import_only_downwards_and_dagster_stays_in_its_own() -> None:
    for name, path in modules().items():
        room = name.split(".")[1]
        assert room in ROOMS or name in ("fairness_pipeline.api", "fairness_pipeline.definitions"), name
        if room not in ROOMS:
            continue
        for imported_name in imported(path):
            top, *inner = imported_name.split(".")
            assert top != "dagster" or room == "defs", f"{name} imports dagster"
            if top == "fairness_pipeline" and inner and inner[0] in ROOMS:
                assert ROOMS.index(inner[0]) <= ROOMS.index(room), f"{name} imports {imported_name}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    files = modules()
    sorter = TopologicalSorter({name: imported(path) & files.keys() for name, path in files.items()})
    sorter.prepare()  # raises CycleError, which names the circle


def test_both_ways_of_loading_name_the_same() -> None:
    """`workspace.yaml`, and the block in `pyproject.toml`."""
    (workspace,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    assert workspace["python_module"] == {
        "module_name": project["code_location_target_module"], "location_name": project["code_location_name"]
    }  # fmt: skip


@pytest.mark.verify
def test_both_ways_of_loading(tmp_path: Path) -> None:
    """Dagster's two commands load what they name."""
    environment = {**os.environ, "FAIRNESS_HOME": str(tmp_path), "DAGSTER_HOME": str(tmp_path)}
    environment.pop("FAIRNESS_PROFILE", None)
    (ROOT / "data" / "lake" / "sample" / "dagster").mkdir(
        parents=True, exist_ok=True
    )  # `.env` names it: a run makes it
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    commands = (
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        [str(Path(sys.executable).parent / "dg"), "check", "defs"],
    )
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_asset_says_what_it_is() -> None:
    from fairness_pipeline.defs.definitions import definitions

    defs = definitions(Project("sample"))
    dg.Definitions.validate_loadable(defs)
    for node in defs.get_repository_def().asset_graph.asset_nodes:
        assert node.description
        if node.is_external:  # a YAML file, or the settings of an asset
            continue
        assert node.kinds
        assert node.code_version
        assert re.fullmatch(rf"({'|'.join(STUDIES)})_\d_[a-z]+", node.group_name)
        if "parquet" in node.kinds:
            assert all(column.description for column in node.metadata["dagster/column_schema"].columns), node.key


def test_the_ui_has_no_partition_that_run_leaves_out() -> None:
    """After `run` nothing looks missing: the UI's partitions are exactly those that it makes."""
    project = Project("sample")
    lineage, graph = Lineage(project), definitions(project).get_repository_def().asset_graph
    made = Shown(lineage, selected(lineage, Selection()))
    shown = {node.key.to_user_string(): node for node in graph.asset_nodes if not node.is_external}
    assert "reddit_dialogues" not in shown  # no corpus of the sample is of that platform
    for name, node in shown.items():
        if node.partitions_def is not None:
            assert set(node.partitions_def.get_partition_keys()) == set(made.keys(name)), name
    assert len(shown["dialogue_models"].partitions_def.get_partition_keys()) == 2
    parents = {key.to_user_string() for key in shown["dialogue_significance"].parent_keys}
    settings = "settings/dialogue_significance"
    assert parents - {settings} == {
        *(measure.table for measure in measures()), "distinguishable_answers", "named_groups", "answer_changes", "no_effect_differences", "verdict_variations",
        "instrument_check", "parrot_check",
    }  # fmt: skip
    assert len(shown["dialogue_fairness_report"].parent_keys) == 4


def test_each_definition_has_partitions_of_one_kind() -> None:
    """Dagster's telemetry, on by default, reads the partitions of every definition before a run, as here."""
    repository = definitions(Project("sample")).get_repository_def()
    partitions = [definition.partitions_def for definition in repository.assets_defs_by_key.values()]
    assert None in partitions and len(set(partitions)) > 10


@pytest.mark.parametrize(
    ("name", "everything"),
    [
        ("sample", True),
        *(
            pytest.param(*case, marks=pytest.mark.verify)
            for case in (("sample", False), ("cures", True), ("real", True))
        ),
    ],
)
def test_dagsters_lineage_is_the_plans(name: str, everything: bool) -> None:
    """The partition mappings that the UI follows name what a partition truly reads: nothing more, and nothing less."""
    if name == "real" and "FAIRNESS_CORPORA" not in os.environ:
        pytest.skip("FAIRNESS_CORPORA is not set: the profile `real` has no corpora")
    project = Project(name)
    lineage = Lineage(project)
    shown = Shown(lineage, None if everything else selected(lineage, Selection()))
    graph = definitions(project, everything=everything).get_repository_def().asset_graph
    compared = 0
    for asset in shown.assets:
        node = graph.get(dg.AssetKey(asset.name))
        for source in [
            name_above
            for name_above in shown.above(asset)
            if lineage.assets[name_above].axes and shown.keys(name_above)
        ]:
            parent = graph.get(dg.AssetKey(source))
            for partition, key in shown.keys(asset.name).items():
                mapped = graph.get_parent_partition_keys_for_child(partition, parent.key, node.key).partitions_subset
                expected = {to_dagster(k) for s, k in lineage.sources(asset.name, key) if s == source}
                expected &= shown.keys(source).keys()
                assert set(mapped.get_partition_keys()) == expected, (asset.name, source, key)
                compared += 1
    assert compared > 1000


def test_partition_keys_travel_both_ways(tiny: Project) -> None:
    lineage = Lineage(tiny)
    for name, asset in lineage.assets.items():
        for key in lineage.keys(name):
            assert from_dagster(asset.axes, to_dagster(key)) == key
