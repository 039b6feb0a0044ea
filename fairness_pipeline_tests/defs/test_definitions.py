"""What Dagster loads."""

import ast
import csv
import os
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import dagster as dg
import pytest

from fairness_pipeline.defs import partitions
from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.measures.dialogue.registry import measures
from fairness_pipeline.project.project import Project
from fairness_pipeline.project.study import STUDIES
from fairness_pipeline_tests.commands import change, command, run

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
    "foundation", "workspace", "lexicons", "statistics", "corpora", "models", "annotation", "measures", "debiasing",
    "explanation", "project", "lineage", "reporting", "defs", "cli", "studies",
)  # fmt: skip
"""From the bottom to the top: a room imports itself and those before it."""


def imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever it does, by their whole names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> dict[str, Path]:
    files = [path for path in (ROOT / "fairness_pipeline").rglob("*.py") if path.name != "__init__.py"]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files}


def test_rooms_import_only_downwards_and_dagster_stays_in_its_own() -> None:
    for name, path in modules().items():
        room = name.split(".")[1]
        assert room in ROOMS or name in ("fairness_pipeline.api", "fairness_pipeline.definitions"), name
        if room not in ROOMS:
            continue
        for other in imported(path):
            top, *inner = other.split(".")
            assert top != "dagster" or room == "defs", f"{name} imports dagster"
            if top == "fairness_pipeline" and inner and inner[0] in ROOMS:
                assert ROOMS.index(inner[0]) <= ROOMS.index(room), f"{name} imports {other}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    sorter = TopologicalSorter({name: imported(path) & modules().keys() for name, path in modules().items()})
    sorter.prepare()  # raises CycleError, which names the circle


def test_both_ways_of_loading(tmp_path: Path) -> None:
    """`workspace.yaml` and the block in `pyproject.toml` load the same."""
    environment = {**os.environ, "FAIRNESS_HOME": str(tmp_path), "DAGSTER_HOME": str(tmp_path)}
    environment.pop("FAIRNESS_PROFILE", None)
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    commands = (
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        [str(Path(sys.executable).parent / "dg"), "check", "defs"],
    )
    for words in commands:
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_asset_says_what_it_is() -> None:
    from fairness_pipeline.defs.definitions import definitions

    defs = definitions(Project("sample"))
    dg.Definitions.validate_loadable(defs)
    for node in defs.get_repository_def().asset_graph.asset_nodes:
        assert node.description
        assert node.kinds
        assert node.code_version
        assert re.fullmatch(rf"({'|'.join(STUDIES)})_\d_[a-z]+", node.group_name)
        if "parquet" in node.kinds:
            assert all(column.description for column in node.metadata["dagster/column_schema"].columns), node.key


def test_the_ui_has_no_partition_that_cannot_be_filled() -> None:
    """After `run --all` nothing looks missing: partitions are those that a profile can fill, and no others."""
    project = Project("sample")
    lineage, graph = Lineage(project), definitions(project).get_repository_def().asset_graph
    shown = {node.key.to_user_string(): node for node in graph.asset_nodes}
    assert "reddit_dialogues" not in shown  # no corpus of the sample is of that platform
    for name, node in shown.items():
        if node.partitions_def is not None:
            keys = set(map(str, node.partitions_def.get_partition_keys()))
            assert keys == {str(partitions.to_dagster(key)) for key in lineage.keys(name)}, name
    assert len(shown["dialogue_models"].partitions_def.get_partition_keys()) == 2
    parents = {key.to_user_string() for key in shown["dialogue_significance"].parent_keys}
    assert parents == {*(own.table for own in measures()), "verdict_variations", "instrument_check", "parrot_check"}
    assert len(shown["dialogue_fairness_report"].parent_keys) == 3


def test_dagsters_lineage_is_the_plans(tiny: Project, data: Path) -> None:
    """The partition mappings that the UI follows name the partitions that an asset truly reads.

    Where Dagster has no mapping that says so (a model's base, or its corpus, from two axes) they name all of them.
    """

    def edit(profile: dict) -> None:
        profile["models"].update({"seq2seq-cda": {}})
        profile["dimensions"].append("race")
        profile["sentiment_equity"] = {"systems": {"vader": {}, "gru": {}}}

    change(data / "profiles" / "tiny.yaml", edit)
    project = Project("tiny")
    lineage, graph = Lineage(project), definitions(project).get_repository_def().asset_graph
    exact = 0
    with dg.DagsterInstance.ephemeral() as instance:
        for name, recipe in lineage.recipes.items():
            if not lineage.keys(name):
                continue
            node = graph.get(dg.AssetKey(name))
            read = recipe.arrows or {*recipe.upstream, *recipe.upstream_of_base}
            for source in [source for source in read if lineage.keys(source)]:
                above = graph.get(dg.AssetKey(source))
                if node.partitions_def is None or above.partitions_def is None:
                    continue
                mapping = graph.get_partition_mapping(key=node.key, parent_asset_key=above.key)
                covered = {str(partitions.to_dagster(k)) for k in lineage.keys(source)}
                for key in lineage.keys(name):
                    subset = node.partitions_def.subset_with_partition_keys([partitions.to_dagster(key)])
                    result = mapping.get_upstream_mapped_partitions_result_for_partitions(
                        subset, node.partitions_def, above.partitions_def, None, instance
                    )
                    found = set(map(str, result.partitions_subset.get_partition_keys())) & covered
                    wanted = {str(partitions.to_dagster(k)) for s, k in lineage.sources(name, key) if s == source}
                    if isinstance(mapping, dg.AllPartitionMapping):
                        assert found >= wanted, (name, source, key, found, wanted)
                    else:
                        assert found == wanted, (name, source, key, found, wanted)
                        exact += 1
    assert exact > 50


def test_partition_keys_travel_both_ways(tiny: Project) -> None:
    lineage = Lineage(tiny)
    for name, recipe in lineage.recipes.items():
        for key in lineage.keys(name):
            assert partitions.from_dagster(recipe.axes, partitions.to_dagster(key)) == key


def test_a_hole_in_the_grid_is_skipped_with_its_reason(tiny: Project, tmp_path: Path) -> None:
    """Responses that were imported for one dimension: the other's partition is no failure when it is asked for."""
    run("--select", "context_pairs")
    pairs, answers = tmp_path / "pairs.csv", tmp_path / "answers.csv"
    assert command("export-pairs", "--dimension", "gender", "--output", str(pairs)).returncode == 0
    with pairs.open(newline="") as stream, answers.open("w", newline="") as filled:
        rows = [{**row, "response": "ok"} for row in csv.DictReader(stream)]
        writer = csv.DictWriter(filled, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert command("import-responses", str(answers), "--model", "bot", "--dimension", "gender").returncode == 0

    keys = [dg.AssetKey(name) for name in ("responses", "politeness")]
    job = definitions(Project("tiny")).get_repository_def().get_implicit_job_def_for_assets(keys)
    with dg.DagsterInstance.ephemeral() as instance:
        hole = dg.MultiPartitionKey({"dimension": "dialect", "model": "bot"})
        result = job.execute_in_process(instance=instance, partition_key=hole, asset_selection=keys)
        messages = [log.user_message for log in instance.all_logs(result.run_id)]
    assert result.success
    assert not result.asset_materializations_for_node("responses")
    assert (
        "responses has no partition dimension=dialect/model=bot: nothing that the profile names would be in it"
        in messages
    )
    assert [event.step_key for event in result.all_events if event.is_step_skipped] == ["politeness"]
