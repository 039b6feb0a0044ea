"""Fixtures that tests share: a project in a temporary folder, and the real corpora where they are available."""

import atexit
import functools
import gc
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from sqlalchemy import event
from sqlalchemy.engine import Engine

# One thread a process: the models are tiny, and tests start several processes at once. Set before libraries load.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"  # no test waits for a hub that it must not reach

import dagster as dg

from fairness_pipeline.defs import records
from fairness_pipeline.defs.records import forget_connections
from fairness_pipeline.project.project import Project
from fairness_pipeline_tests.commands import run
from fairness_pipeline_tests.local_server import TOLD_AT, hearing

os.fsync = lambda descriptor: None  # what a test writes need not survive a power cut
_frozen = 0
gc.set_threshold(100_000, 50, 50)  # torch and Dagster hold a million objects; frequent collections take 4% of the time


@event.listens_for(Engine, "connect")
def _do_not_wait_for_the_disk(connection: Any, _record: object) -> None:
    """Turns off SQLite's syncs too."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(autouse=True)
def _no_file_stays_open() -> Iterator[None]:
    yield
    forget_connections()
    _skip_what_stays()


def _skip_what_stays() -> None:
    """Freezes the objects of libraries that were imported since the last time, so that the collector skips them."""
    global _frozen
    if len(sys.modules) > _frozen + 50:
        _frozen = len(sys.modules)
        gc.freeze()


TINY = {
    "description": "for tests",
    "seed": 3,
    "dimensions": ["gender", "dialect"],
    "models": {
        "seq2seq": {
            "corpus": "tiny",
            "seq2seq": {"layers": 1, "hidden": 16, "embedding": 8, "vocabulary": 300, "dropout": 0.1},
            "training": {
                "optimiser": "adam", "learning_rate": 0.01, "momentum": 0.0, "clipping": 1.0, "batch_tokens": 512,
                "epochs": 2, "patience": 2, "checkpoint_seconds": 0.5,
            },
        }
    },
    "dialogue_fairness": {
        "corpora": ["tiny"],
        "splits": {"train": 0.5, "valid": 0.1, "test": 0.1, "audit": 0.3},
        "pairs": {"maximum": 100, "no_effect": 0},
        "max_identical_share": 1.0,  # two epochs teach a model little else than one answer
        "significance": {"permutations": 50, "jackknife_blocks": 10},
    },
}  # fmt: skip

_INSTANCE = {"telemetry": {"enabled": False}, "nux": {"enabled": False}}
_RECORDS = {"event_log_storage": "EventsInOneFile", "run_storage": "RunsInOneFile", "compute_logs": "PrintsInFiles"}


def pytest_collection_finish() -> None:
    """Freezes what was imported, which lives as long as the process."""
    _skip_what_stays()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks whole runs and puts them first, so that no worker is left alone with a long one at the end."""
    for item in items:
        if {"defs", "studies"} & set(item.path.parts) and "tiny" in getattr(item, "fixturenames", ()):
            item.add_marker("whole_run")
    items.sort(key=lambda item: item.get_closest_marker("whole_run") is None)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that overrides the project's own, and an empty home for workspaces."""
    return empty_data(tmp_path, monkeypatch)


def empty_data(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Creates the data folder of the fixture `data` in `folder`."""
    data = folder / "data"
    for kind in ("dimensions", "models", "corpora", "profiles", "grammars"):
        (data / kind).mkdir(parents=True)
    patch.setenv("FAIRNESS_DATA", str(data))
    patch.setenv("FAIRNESS_HOME", str(folder / "home"))
    patch.delenv("FAIRNESS_PROFILE", raising=False)
    return data


@pytest.fixture
def tiny(data: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A profile `tiny` that trains in two seconds: 1,500 generated dialogues, two dimensions, one small model."""
    return tiny_project(data, monkeypatch)


def tiny_project(data: Path, patch: pytest.MonkeyPatch) -> Project:
    """Writes the profile of the fixture `tiny` into `data`."""
    write_yaml(
        data / "corpora" / "tiny.yaml",
        {
            "platform": "twitter",
            "format": "grammar",
            "grammar": {"file": "grammars/twitter_sample.yaml", "dialogues": 1500, "seed": 5},
            "licence": "none",
            "citation": "none",
        },
    )
    write_yaml(data / "profiles" / "tiny.yaml", TINY)
    write_instance(shutil.copytree(_no_runs_yet(), data.parent / "home" / "tiny" / "dagster"))
    patch.setenv("FAIRNESS_PROFILE", "tiny")
    return Project("tiny")


def write_small_audit(data: Path, dimensions: list[str], *, pairs: int) -> None:
    """Writes profile `audit` with few pairs and every fifteenth context into `data`, which overrides shipped files."""
    shipped = Path(__file__).parents[1] / "data"
    contexts, audit = (
        yaml.safe_load((shipped / name).read_text(encoding="utf-8"))
        for name in ("contexts/everyday.yaml", "profiles/audit.yaml")
    )
    (data / "contexts").mkdir(exist_ok=True)
    write_yaml(data / "contexts" / "everyday.yaml", contexts | {"frames": contexts["frames"][::15]})
    audit["dimensions"] = dimensions
    audit["dialogue_fairness"] |= {
        "pairs": {"maximum": pairs}, "significance": TINY["dialogue_fairness"]["significance"]
    }  # fmt: skip
    write_yaml(data / "profiles" / "audit.yaml", audit)


def write_instance(folder: Path) -> Path:
    storage = {
        setting: {"module": records.__name__, "class": name, "config": {"base_dir": str(folder)}}
        for setting, name in _RECORDS.items()
    }
    return write_yaml(folder / "dagster.yaml", _INSTANCE | storage)


@functools.cache
def _no_runs_yet() -> Path:
    """A Dagster instance with empty tables, cached since making them takes as long as a small test."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    write_instance(folder)
    dg.DagsterInstance.from_config(str(folder)).dispose()
    forget_connections()
    return folder


class Once(NamedTuple):
    """A workspace after its first run, and the output of the run."""

    workspace: Path
    said: str


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """`tiny` after its first run."""
    folder = tmp_path_factory.mktemp("made_once")
    with pytest.MonkeyPatch.context() as patch:
        project = tiny_project(empty_data(folder, patch), patch)
        return Once(project.workspace, run().stdout)


@pytest.fixture
def made(tiny: Project, made_once: Once) -> Project:
    """`tiny` after its first run, as a copy, since a run takes longer than most tests that start from it."""
    shutil.copytree(
        made_once.workspace, tiny.workspace, ignore=shutil.ignore_patterns("dagster.yaml"), dirs_exist_ok=True
    )
    return tiny


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The messages posted to a local server, whose address is in the variable `TOLD_AT`."""
    with hearing() as (address, messages):
        monkeypatch.setenv(TOLD_AT, address)
        yield messages


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora."""
    folder = os.environ.get("FAIRNESS_CORPORA")
    if not folder:
        pytest.skip("FAIRNESS_CORPORA is not set: no real corpora to test on")
    return Path(folder)


def write_yaml(path: Path, content: object) -> Path:
    """Writes `content` as YAML."""
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


class Killed(BaseException):
    """Stands for a kill: nothing that a loop does at its end is done."""
