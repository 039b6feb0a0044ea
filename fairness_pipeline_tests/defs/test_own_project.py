"""A profile in a user's own Dagster project: beside other definitions, with another instance, and as a component."""

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import dagster as dg
import duckdb
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from dagster.components.testing import create_defs_folder_sandbox

from fairness_pipeline import LakeIOManager, build_definitions
from fairness_pipeline.defs.names import Names
from fairness_pipeline.defs.sync import Synchronised, sync
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Lake
from fairness_pipeline_tests.commands import change
from fairness_pipeline_tests.conftest import write_yaml
from fairness_pipeline_tests.defs.test_sync import fill, not_fresh, statuses, would_run
from fairness_pipeline_tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "own-dagster-project.md"
PREFIX = ("fairness",)


def write_files(folder: Path) -> dict[str, Path]:
    """Writes the page's files unchanged, and returns their paths by name."""
    files = {}
    for language, body in blocks(PAGE):
        if language in ("python", "yaml"):
            name = body.splitlines()[0].removeprefix("# ")
            files[name] = folder / name
            files[name].parent.mkdir(parents=True, exist_ok=True)
            files[name].write_text(body, encoding="utf-8")
    return files


def load_module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_definitions", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_definitions_load_beside_their_own_assets(data: Path, tmp_path: Path) -> None:
    files = write_files(tmp_path)
    defs = load_module(files["company/definitions.py"]).defs
    dg.Definitions.validate_loadable(defs)
    graph = defs.get_repository_def().asset_graph
    company_keys = {dg.AssetKey("biased_systems"), dg.AssetKey("verdicts_by_system")}
    assert company_keys < graph.get_all_asset_keys()
    fairness_keys = [key for key in graph.get_all_asset_keys() if key not in company_keys]
    assert {key.path[0] for key in fairness_keys} == {"fairness"}
    assert {graph.get(key).group_name.split("_")[0] for key in fairness_keys} == {"fairness"}
    assert all(list(graph.get(key).owners) == ["team:audit"] for key in fairness_keys)
    (automation,) = [s for s in defs.sensors if s.name == "fairness_automation"]
    assert not company_keys & automation.asset_selection.resolve(graph)


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_the_pages_component_makes_the_same_assets(tiny: Project) -> None:
    component = yaml.safe_load(next(body for language, body in blocks(PAGE) if language == "yaml"))
    component["attributes"]["profile"] = "tiny"
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.defs_folder_path / "fairness"
        folder.mkdir(parents=True)
        write_yaml(folder / "defs.yaml", component)
        with sandbox.build_all_defs() as defs:
            keys = defs.get_repository_def().asset_graph.get_all_asset_keys()
    assert (
        keys == build_definitions("tiny", key_prefix="fairness").get_repository_def().asset_graph.get_all_asset_keys()
    )


def test_two_profiles_load_side_by_side(tiny: Project, data: Path) -> None:
    write_yaml(data / "profiles" / "other.yaml", yaml.safe_load(tiny.path.read_text(encoding="utf-8")))
    merged = dg.Definitions.merge(
        build_definitions("tiny", key_prefix="one", group_prefix="one"),
        build_definitions("other", key_prefix=["two", "b"], group_prefix="two"),
        dg.Definitions(executor=dg.in_process_executor),
    )
    dg.Definitions.validate_loadable(merged)
    keys = Counter(key.path[0] for key in merged.get_repository_def().asset_graph.get_all_asset_keys())
    assert keys["one"] == keys["two"] and len(keys) == 2


def test_a_prefix_that_dagster_refuses_is_named(tiny: Project) -> None:
    for wrong in ("my-company", "a.b", ["a", "b/c"]):
        with pytest.raises(FairnessError, match="key_prefix: expected letters, digits and _"):
            build_definitions("tiny", key_prefix=wrong)


def test_tables_are_arguments_of_ones_own_assets(made: Project) -> None:
    def reads(name: str, kind: Any, **options: Any) -> dg.AssetsDefinition:
        source = dg.AssetIn(key=["fairness", name], **options)

        @dg.asset(name=f"own_{name}_{kind.__name__}", ins={"given": source})
        def consumer(given: kind) -> None:
            received.append(given)

        return consumer

    received: list[Any] = []
    table, document = "dialogue_significance", "dialogue_fairness_report"
    one_partition = {"partition_mapping": dg.SpecificPartitionsPartitionMapping(["gender|seq2seq"])}
    consumers = [
        reads(table, pa.Table), reads(table, pd.DataFrame), reads(table, duckdb.DuckDBPyRelation), reads(document, Path),
        reads("dialogue_models", Path),
    ]  # fmt: skip
    of_one_partition, wrong = reads(table, Path, **one_partition), reads(table, dict)
    defs = dg.Definitions.merge(
        build_definitions("tiny", key_prefix=PREFIX, executor=dg.in_process_executor),
        dg.Definitions(assets=[*consumers, of_one_partition, wrong]),
    )
    repository = defs.get_repository_def()
    with dg.DagsterInstance.ephemeral() as instance:
        for asset in [*consumers, of_one_partition]:
            job = repository.get_implicit_job_def_for_assets([asset.key])
            assert job is not None and job.execute_in_process(instance=instance, asset_selection=[asset.key]).success
        job = repository.get_implicit_job_def_for_assets([wrong.key])
        failed = job.execute_in_process(instance=instance, asset_selection=[wrong.key], raise_on_error=False)
        assert "expected an argument of type pyarrow.Table" in str(failed.all_events)
    lake, lineage = Lake(made.workspace), Lineage(made)
    count = sum(len(lake.read(table, key)) for key in lineage.keys(table))
    arrow, pandas, duck, report, weights, parquet = received
    assert len(arrow) == len(pandas) == len(duck) == count > 0
    assert set(arrow["dimension"].to_pylist()) == set(made.dimensions)
    assert list(pandas.columns) == duck.columns == arrow.column_names
    assert report == lake.document_path(document)
    assert weights == lake.current_folder("dialogue_models", {"model": "seq2seq"})
    received.clear()  # DuckDB complains of relations left at the end of the process
    assert parquet == lake.table_path(table, {"dimension": "gender", "model": "seq2seq"})


def test_what_is_not_made_is_an_error_or_left_out(tiny: Project) -> None:
    manager, lake = LakeIOManager(profile="tiny"), Lake(tiny.workspace)
    lineage = Lineage(tiny)
    fill(tiny, lambda name: name != "dialogue_significance")
    names = [f"{key['dimension']}|{key['model']}" for key in lineage.keys("dialogue_significance")]
    defaults: dict[str, Any] = {
        "asset_key": dg.AssetKey(["a", "dialogue_significance"]), "dagster_type": dg.PythonObjectDagsterType(pa.Table),
        "partition_key": None,
    }  # fmt: skip

    def context(**changes: Any) -> dg.InputContext:
        partitions = dg.StaticPartitionsDefinition(names)
        return dg.build_input_context(
            **{**defaults, **changes}, asset_partitions_def=partitions,
            asset_partition_key_range=dg.PartitionKeyRange(names[0], names[-1]),
        )  # fmt: skip

    with pytest.raises(FairnessError, match="has not been made yet; run"):
        manager.load_input(context())
    empty = manager.load_input(context(definition_metadata={"allow_missing_partitions": True}))
    assert len(empty) == 0 and {"dimension", "model"} < set(empty.column_names)
    fill(tiny)
    assert len(manager.load_input(context())) == 0
    lake.table_path("dialogue_significance", lineage.keys("dialogue_significance")[0]).unlink()
    with pytest.raises(FairnessError, match="has not been made yet"):
        manager.load_input(context())
    assert manager.load_input(context(definition_metadata={"allow_missing_partitions": True})).column_names
    with pytest.raises(FairnessError, match="choose another IO manager"):
        manager.handle_output(dg.build_output_context(name="mine"), 1)


def test_a_users_instance_gets_events_under_the_prefix(tiny: Project) -> None:
    """After a run of the command nothing is stale there, and a change makes stale what a run would make."""
    fill(tiny)
    names = Names(PREFIX)
    with dg.DagsterInstance.ephemeral() as instance:
        assert sync(Lineage(tiny), instance, names).made > 0
        sync(Lineage(tiny), instance, names)
        assert sync(Lineage(tiny), instance, names) == Synchronised(0, 0)
        assert not_fresh(statuses(tiny, instance, names)) == set()
        change(tiny.path, lambda profile: profile["dialogue_fairness"]["pairs"].update(maximum=99))
        changed = Project("tiny")
        sync(Lineage(changed), instance, names)
        assert not_fresh(statuses(changed, instance, names)) == {step.label for step in would_run(changed)} != set()
