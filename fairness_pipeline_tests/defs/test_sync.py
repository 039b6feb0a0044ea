"""Dagster's own resolver of staleness agrees with `run --dry-run`, whatever changes, partition for partition."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import DATA_VERSION_TAG, CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from dagster._core.test_utils import create_run_for_test

from fairness_pipeline.defs import assets
from fairness_pipeline.defs.assets import LEFT_ALONE, ONLY_IF_STALE
from fairness_pipeline.defs.at_rest import is_synchronised
from fairness_pipeline.defs.checks import evaluations
from fairness_pipeline.defs.definitions import definitions
from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.lake_io_manager import RESOURCE, LakeIOManager
from fairness_pipeline.defs.names import Names
from fairness_pipeline.defs.partitions import Shown
from fairness_pipeline.defs.sync import Synchronised, sync
from fairness_pipeline.foundation import paths
from fairness_pipeline.foundation.guard import only
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.lineage.plan import Plan, Selection, Step
from fairness_pipeline.lineage.state import State
from fairness_pipeline.lineage.versions import Versions
from fairness_pipeline.project.project import Project
from fairness_pipeline.workspace.lake import Card, Lake, fingerprint, partition_name
from fairness_pipeline_tests.commands import change, planned, run

UP_TO_DATE = dg.AssetCheckKey(dg.AssetKey("dialogue_significance"), "up_to_date")
FRESH, STALE, MISSING = "FRESH", "STALE", "MISSING"


def statuses(project: Project, instance: dg.DagsterInstance, names: Names | None = None) -> dict[str, str]:
    """Dagster's status of every partition that the UI shows, by its name in `run --dry-run`."""
    shown = Shown(Lineage(project), Versions(Lineage(project)).shown, names)
    graph = definitions(project, names).get_repository_def().asset_graph
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    return {
        " ".join([asset.name, *key.values()]): resolver.get_status(shown.names.asset(asset.name), partition).value
        for asset in shown.assets
        for partition, key in shown.keys(asset.name).items()
    }


def agreed(name: str) -> Counter[str]:
    """Syncs Dagster, compares it with the dry run, and counts its statuses."""
    project = Project(name)
    with open_instance(project) as instance:
        up_to_date = is_synchronised(Lineage(project))
        assert not up_to_date or sync(Lineage(project), instance) == Synchronised(0, 0)
        sync(Lineage(project), instance)
        assert sync(Lineage(project), instance) == Synchronised(0, 0)
        assert is_synchronised(Lineage(project))
        by_label = statuses(project, instance)
    assert not_fresh(by_label) == {step.label for step in would_run(project)}
    return Counter(by_label.values())


def not_fresh(by_label: dict[str, str]) -> set[str]:
    return {label for label, status in by_label.items() if status != FRESH}


def would_run(project: Project) -> list[Step]:
    return Plan(Lineage(project), Selection()).stale


def fill(project: Project, only: Callable[[str], bool] = lambda name: True) -> None:
    """Writes what `run` would write, but empty: only the cards decide what is stale."""
    lineage, lake = Lineage(project), Lake(project.workspace)
    for step in would_run(project):
        name, key, asset = step.name, step.key, lineage.assets[step.name]
        if not only(name):
            continue
        state = State(lineage, lake)
        inputs = state.described(name, key, state.given(name, key))
        card = Card(fingerprint(inputs), inputs)
        if asset.kind == "table":
            assert asset.schema is not None
            with lake.writing(name, key, asset.schema.empty_table(), asset.schema, card):
                continue
        if asset.kind == "checkpoint":
            folder = lake.folder(name, key, card.fingerprint)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "weights").write_text(name + partition_name(key))
        else:
            lake.document_path(name).parent.mkdir(parents=True, exist_ok=True)
            lake.document_path(name).write_text(card.fingerprint)
        lake.write_card(name, key, card)


def overlay(data: Path, kind: str, name: str) -> Path:
    """Copies a shipped YAML file to `data`, where the copy takes precedence."""
    path = data / kind / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(paths.yaml_files(kind)[name], path)
    return path


def walk(data: Path, profile: str, dimension: str, upstream: str) -> None:
    """Compares both after each step: made, seed changed, changed back, one file changed, made, a change that stops early."""
    fill(Project(profile))
    everything = agreed(profile)[FRESH]

    path = Project(profile).path
    before = path.read_text(encoding="utf-8")
    seeded = path if data in path.parents else overlay(data, "profiles", profile)
    change(seeded, lambda document: document.update(seed=document.get("seed", 0) + 1))
    assert agreed(profile) == {STALE: everything}
    seeded.write_text(before, encoding="utf-8")
    assert agreed(profile) == {FRESH: everything}

    dimension_file = overlay(data, "dimensions", dimension)
    change(dimension_file, lambda document: document["pairs"].remove(["headmaster", "headmistress"]))
    assert 0 < agreed(profile)[STALE] < everything
    fill(Project(profile))
    assert agreed(profile) == {FRESH: everything}

    dimension_file.unlink()
    stale = agreed(profile)[STALE]
    fill(Project(profile), lambda name: name == upstream)  # empty as before: nothing downstream has to be made
    assert 0 < agreed(profile)[STALE] < stale


def test_dagster_agrees_with_the_dry_run(tiny: Project, data: Path) -> None:
    walk(data, "tiny", "gender", "contexts")


@pytest.mark.verify
@pytest.mark.parametrize("profile", ["sample", "cures", "real"])
def test_dagster_agrees_with_the_dry_run_in_shipped_profiles(data: Path, profile: str) -> None:
    if profile == "real" and "FAIRNESS_CORPORA" not in os.environ:
        pytest.skip("FAIRNESS_CORPORA is not set: the profile `real` has no corpora")
    walk(data, profile, "gender", "contexts")


def test_a_lake_that_was_copied_is_shown_and_what_is_gone_from_it_is_not_fresh(tiny: Project) -> None:
    fill(tiny)
    count = agreed("tiny")[FRESH]
    shutil.rmtree(tiny.workspace / "dagster")
    with open_instance(tiny) as instance:
        assert sync(Lineage(tiny), instance) == Synchronised(count, 0)
    shutil.rmtree(tiny.workspace / "tables" / "diversity")
    assert agreed("tiny")[STALE] > 0


def test_a_run_reports_to_dagster(tiny: Project) -> None:
    """What the command makes or finds unchanged is fresh without another look at the lake."""
    run("--select", "responses")
    count = agreed("tiny")
    assert count[MISSING] > 0
    change(tiny.path, lambda profile: profile["dialogue_fairness"]["pairs"].update(maximum=99))
    assert planned()
    run("--select", "context_pairs")
    project = Project("tiny")
    with open_instance(project) as instance:
        by_label = statuses(project, instance)
        execution = instance.event_log_storage.get_latest_asset_check_execution_by_key([UP_TO_DATE])[UP_TO_DATE]
        evaluation = execution.evaluation
    assert not_fresh(by_label) == {step.label for step in would_run(project)}
    assert evaluation is not None
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_no_check_is_green_without_a_verdict(tiny: Project) -> None:
    lineage = Lineage(tiny)
    checks = {
        f"{evaluation.asset_key.to_user_string()} {evaluation.check_name}": evaluation
        for evaluation in evaluations(lineage, Versions(lineage), Names())
    }
    assert len(checks) >= 2 and not any(evaluation.passed for evaluation in checks.values())
    assert "no verdict yet" in str(checks["dialogue_significance no_verdict_is_biased"].metadata)


def test_what_is_made_only_on_request_leaves_nothing_stale(tiny: Project) -> None:
    """The command records with all assets; the UI leaves out partitions that nobody has asked for."""
    chat = "seq2seq-debiased_chat"
    change(tiny.path, lambda profile: profile["models"].update({"seq2seq-cda": {}, chat: {}}))
    change(tiny.path, lambda profile: profile["dialogue_fairness"].update(on_request=[chat]))
    run("--select", "debiased_dialogue_models", "--model", "seq2seq-cda")
    project = Project("tiny")
    with open_instance(project) as instance:
        by_label = statuses(project, instance)
    assert by_label["debiased_dialogue_models gender seq2seq-cda"] == FRESH
    assert not_fresh(by_label) == {step.label for step in would_run(project)}


def test_a_run_with_nothing_to_do_leaves_dagster_alone(tiny: Project) -> None:
    run("--select", "context_pairs")
    code = "import sys; from fairness_pipeline import cli\ntry: cli.main(['run', '--select', 'context_pairs'])\n"
    code += "except SystemExit as end: print(end.code, 'dagster' in sys.modules)"

    def last_line() -> str:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1]

    assert last_line() == "0 False"
    job = definitions(tiny).get_repository_def().get_implicit_job_def_for_assets([dg.AssetKey("context_pairs")])
    with open_instance(tiny) as instance:
        instance.create_run_for_job(job)
    assert not is_synchronised(Lineage(tiny))  # its process may be gone
    assert last_line() == "0 True"
    shutil.rmtree(tiny.workspace / "dagster")
    assert not is_synchronised(Lineage(tiny))
    run("--select", "context_pairs")
    assert is_synchronised(Lineage(tiny))
    change(tiny.path, lambda profile: profile.update(records={"runs": 1, "days": 1, "history": 1}))
    with open_instance(tiny) as instance:  # all but one of these are to be deleted
        for _ in range(2):
            instance.report_run_failed(instance.create_run_for_job(job))
    assert not is_synchronised(Lineage(Project("tiny")))
    change(tiny.path, lambda profile: profile.pop("records"))
    run("--select", "context_pairs")
    assert is_synchronised(Lineage(Project("tiny")))


def test_an_unchanged_partition_keeps_the_metadata_of_its_run(tiny: Project) -> None:
    run("--select", "context_pairs")
    with open_instance(tiny) as instance:
        key = dg.AssetKey("context_pairs")
        job = definitions(tiny).get_repository_def().get_implicit_job_def_for_assets([key])
        job.execute_in_process(
            instance=instance, asset_selection=[key], partition_key="tiny|gender", tags={ONLY_IF_STALE: "true"}
        )
        query = dg.AssetRecordsFilter(asset_key=key, asset_partitions=["tiny|gender"])
        again, first = (
            dict(record.asset_materialization.metadata)
            for record in instance.fetch_materializations(query, limit=2).records
        )
    assert again.pop(LEFT_ALONE).value == "it is up to date"
    assert again == first and {"dagster/row_count", "seconds", "contexts_by_word"} <= set(first)


@pytest.mark.verify
@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("RunsInOneFile", "Others"),
        lambda text: text.replace("base_dir", "elsewhere"),
        lambda text: "".join(f"# {line}\n" for line in text.splitlines()),
        lambda text: text + "storage: {sqlite: {base_dir: /tmp/elsewhere}}\n",
        lambda text: text + ": [",
        lambda text: text + "\udce9",
    ],
)
def test_records_elsewhere_are_asked(tiny: Project, edit: Callable[[str], str]) -> None:
    run("--select", "context_pairs")
    assert is_synchronised(Lineage(tiny))
    configuration = tiny.workspace / "dagster" / "dagster.yaml"
    text = edit(configuration.read_text(encoding="utf-8"))
    configuration.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert not is_synchronised(Lineage(tiny))


def test_what_failed_to_be_made_anew_stays_failed(tiny: Project) -> None:
    """Otherwise Dagster would forget the failure, and automation would retry it for ever."""
    fill(tiny)
    agreed("tiny")
    change(tiny.path, lambda profile: profile["dialogue_fairness"]["pairs"].update(maximum=99))
    project = Project("tiny")
    asset, key = dg.AssetKey("context_pairs"), "tiny|gender"
    repository = definitions(project).get_repository_def()
    job = repository.get_implicit_job_def_for_assets([asset])
    with open_instance(project) as instance:  # the contexts are empty, so that no pair can be made
        result = job.execute_in_process(
            instance=instance, partition_key=key, asset_selection=[asset], raise_on_error=False
        )
        assert not result.success
        sync(Lineage(project), instance)
        storage = instance.event_log_storage
        tried = storage.get_latest_asset_partition_materialization_attempts_without_materializations(asset)
    assert set(tried) == {key}


def test_what_a_run_is_about_to_record_is_left_to_it(tiny: Project) -> None:
    """Between the writing of a table and the run's own record, a tick must not report it."""
    fill(tiny, lambda name: name in ("twitter_dialogues", "contexts"))
    key, partition = dg.AssetKey("contexts"), "tiny|gender"
    with open_instance(tiny) as instance:
        run = create_run_for_test(
            instance, status=dg.DagsterRunStatus.STARTED, asset_selection=frozenset({key}),
            tags={"dagster/partition": partition},
        )  # fmt: skip
        sync(Lineage(tiny), instance)
        storage = instance.event_log_storage
        assert partition not in storage.get_materialized_partitions(key)
        assert "tiny|dialect" in storage.get_materialized_partitions(key)
        settings = dg.AssetKey(["settings", "contexts"])
        observed = storage.get_latest_tags_by_partition(
            settings, dg.DagsterEventType.ASSET_OBSERVATION, [DATA_VERSION_TAG]
        )
        assert set(observed) == {"tiny|dialect"}
        instance.report_run_failed(run, "its process is gone")
        sync(Lineage(tiny), instance)
        assert partition in storage.get_materialized_partitions(key)


def test_a_tick_inside_a_step_leaves_the_runs_record(made: Project, data: Path) -> None:
    """The sensor ticks while a run of the UI makes a partition, and reports the partition's old version."""
    change(
        data / "profiles" / "tiny.yaml", lambda profile: profile["dialogue_fairness"]["significance"].update(alpha=0.04)
    )
    lineage, name, partition = Lineage(Project("tiny")), "dialogue_significance", "gender|seq2seq"
    asset = lineage.assets[name]
    with open_instance(made) as instance:

        @wraps(asset.function)
        def ticked(*arguments: object, **options: object) -> object:
            with only(None):  # it is another process
                sync(Lineage(Project("tiny")), instance)
            return asset.function(*arguments, **options)

        shown = Shown(lineage)
        definition = assets.definition(shown, replace(asset, function=ticked), assets.Log())
        lineage.assets[name] = replace(asset, function=ticked)
        sync(lineage, instance)
        done = dg.materialize(
            [definition],
            partition_key=partition,
            instance=instance,
            resources={RESOURCE: LakeIOManager(profile=made.name)},
        )
        assert done.success
        assert sync(Lineage(Project("tiny")), instance).made == 0
        query = dg.AssetRecordsFilter(dg.AssetKey(name), asset_partitions=[partition])
        (last,) = instance.fetch_materializations(query, limit=1).records
    assert last.run_id == done.run_id
    assert last.asset_materialization and "found" in last.asset_materialization.metadata
