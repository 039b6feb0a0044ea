"""Pruning removes old runs and their output; the last run of each partition stays, with its checks."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest

from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.pruning import prune
from fairness_pipeline.foundation.parquet import write_parquet
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting import history
from fairness_pipeline_tests.commands import change, planned, run

ASSETS = ("twitter_dialogues", "politeness", "dialogue_significance", "dialogue_fairness_report")
CHECKS = [
    dg.AssetCheckKey(dg.AssetKey("politeness"), name) for name in ("both_sides_present", "probabilities_in_range")
]


def known(instance: dg.DagsterInstance) -> list[object]:
    """What Dagster knows of partitions and checks, and their runs."""
    checks = instance.event_log_storage.get_latest_asset_check_execution_by_key(CHECKS)
    return [
        *(instance.get_materialized_partitions(dg.AssetKey(name)) for name in ASSETS),
        *(instance.get_latest_materialization_event(dg.AssetKey(name)).run_id for name in ASSETS),
        *((record.status, record.run_id) for record in checks.values()),
    ]


@pytest.fixture
def twice(made: Project) -> Project:
    """`tiny`, of which a part was made twice."""
    run("--force", "--dimension", "gender")
    return made


@pytest.mark.verify
def test_runs_beyond_the_newest_go(twice: Project) -> None:
    with open_instance(twice) as instance:
        runs, before = instance.get_run_ids(), known(instance)
        assert len(before) > 2 * len(ASSETS)
        assert prune(twice, instance) == 0
        printed = twice.workspace / "dagster" / "storage"
        assert {path.name for path in printed.iterdir()} >= set(runs)
    change(twice.path, lambda profile: profile.update(records={"runs": 2}))
    project = Project("tiny")
    assert planned() == []  # it makes nothing stale
    with open_instance(project) as instance:
        count = prune(project, instance)
        remaining = instance.get_run_ids()
        assert 5 <= count == len(runs) - len(remaining)
        assert remaining[:2] == runs[:2]
        assert not {path.name for path in printed.iterdir()} & (set(runs) - set(remaining))
        assert known(instance) == before
        assert prune(project, instance) == 0
    assert " 0 not made" in run().stdout
    with open_instance(project) as instance:
        assert known(instance) == before


def test_age(twice: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2126, 1, 1, tzinfo=UTC)

    with open_instance(twice) as instance:
        before, count = known(instance), instance.get_runs_count()
        monkeypatch.setattr("fairness_pipeline.defs.pruning.datetime", Later)
        assert prune(twice, instance) >= 5
        assert 0 < instance.get_runs_count() < count
        assert known(instance) == before


@pytest.mark.verify
def test_two_commands_at_once_are_no_trouble(twice: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    change(twice.path, lambda profile: profile.update(records={"runs": 1}))
    project = Project("tiny")
    with open_instance(project) as instance:

        def gone(prefix: list[str]) -> None:
            raise FileNotFoundError(prefix[0])

        monkeypatch.setattr(instance.compute_log_manager, "delete_logs", gone)
        assert prune(project, instance) >= 5


def test_history(tmp_path: Path, made: Project) -> None:
    (study,) = made.studies
    times = [f"2026-01-{day:02d}T00-00-00Z" for day in range(1, 11)]
    for time in times:
        folder = tmp_path / "history" / time
        folder.mkdir(parents=True)
        write_parquet(pa.table({"a": [1]}), folder / f"{study.table}.parquet")
    assert history.prune(tmp_path, made.studies, 20) == 0
    assert history.prune(tmp_path, made.studies, 1) == 8
    assert history.entries(tmp_path, study) == times[-2:]
