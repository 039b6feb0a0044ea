"""Old runs go, with what they wrote; what they made stays known, and the newest stay."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest

from fairness_pipeline.defs.instance import open_instance
from fairness_pipeline.defs.pruning import prune
from fairness_pipeline.defs.sync import sync
from fairness_pipeline.foundation.parquet import write_parquet
from fairness_pipeline.lineage.lineage import Lineage
from fairness_pipeline.project.project import Project
from fairness_pipeline.reporting import history
from fairness_pipeline_tests.commands import change, planned, run


def profile(project: Project, **records: int) -> Project:
    change(project.path, lambda own: own.update(records=records))
    return Project("tiny")


def made_partitions(instance: dg.DagsterInstance, asset: str) -> set[str]:
    return instance.get_materialized_partitions(dg.AssetKey(asset))


def test_old_runs_go_and_what_they_made_stays_known(made: Project) -> None:
    with open_instance(made) as instance:
        known = {name: made_partitions(instance, name) for name in ("politeness", "dialogue_significance")}
        runs = instance.get_run_ids()
        assert len(runs) > 5
        assert prune(made, instance) == 0
        printed = made.workspace / "dagster" / "storage"
        assert {path.name for path in printed.iterdir()} >= set(runs)
    project = profile(made, runs=3)
    assert planned() == []  # it changes nothing that is made
    with open_instance(project) as instance:
        assert prune(project, instance) == len(runs) - 3
        assert instance.get_run_ids() == runs[:3]
        assert not {path.name for path in printed.iterdir()} & set(runs[3:])
        sync(Lineage(project), instance)
        assert {name: made_partitions(instance, name) for name in known} == known
        assert prune(project, instance) == 0
    run()
    with open_instance(project) as instance:
        assert {name: made_partitions(instance, name) for name in known} == known


def test_age(made: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_instance(made) as instance:
        count = instance.get_runs_count()

        class Later(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
                return datetime(2126, 1, 1, tzinfo=UTC)

        monkeypatch.setattr("fairness_pipeline.defs.pruning.datetime", Later)
        assert prune(made, instance) == count
        assert instance.get_runs_count() == 0
        sync(Lineage(made), instance)
        assert made_partitions(instance, "politeness")


def test_history(tmp_path: Path, made: Project) -> None:
    first, *others = made.studies
    times = [f"2026-01-{day:02d}T00-00-00Z" for day in range(1, 11)]
    for place, time in enumerate(times):
        study = others[0] if others and place < 3 else first
        folder = tmp_path / "history" / time
        folder.mkdir(parents=True)
        write_parquet(pa.table({"a": [1]}), folder / f"{study.table}.parquet")
    assert history.prune(tmp_path, made.studies, 20) == 0
    assert history.prune(tmp_path, made.studies, 1) == (6 if others else 8)
    assert history.entries(tmp_path, first) == times[-2:]
