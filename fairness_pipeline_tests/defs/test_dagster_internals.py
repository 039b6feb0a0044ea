"""What this package uses of Dagster's private modules; these tests fail where a new version of Dagster breaks it."""

import inspect
import re
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.context.system import StepExecutionContext
from packaging.specifiers import SpecifierSet

import fairness_pipeline
from fairness_pipeline.defs import dagster_internals as internals

PACKAGE = Path(fairness_pipeline.__file__).parent
PRIVATE = re.compile(r"dagster\._\w")


def test_one_module_imports_what_is_private() -> None:
    using = {
        path.name for path in PACKAGE.rglob("*.py") if PRIVATE.search(path.read_text(encoding="utf-8"))
    }  # fmt: skip
    assert using == {"dagster_internals.py"}


def test_each_internal_exists_and_is_used() -> None:
    text = "".join(
        path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "dagster_internals.py"
    )
    for name in internals.__all__:
        assert hasattr(internals, name)
        assert re.search(rf"\b{name}\b", text), f"{name} is not used any more"


def test_dagster_is_of_the_pinned_minor_version() -> None:
    lines = (PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    pinned = next(line.strip().strip('",').removeprefix("dagster") for line in lines if '"dagster>' in line)
    assert dg.__version__ in SpecifierSet(pinned)
    assert re.fullmatch(r">=(\d+)\.(\d+),<\1\.\d+", pinned), "a minor version may change what is private"


OVERRIDDEN = {
    "ConsolidatedSqliteEventLogStorage._init_db": ["self"],
    "ConsolidatedSqliteEventLogStorage._connect": ["self"],
    "ConsolidatedSqliteEventLogStorage.get_db_path": ["self"],
    "ConsolidatedSqliteEventLogStorage.has_table": ["self", "table_name"],
    "ConsolidatedSqliteEventLogStorage.store_event": ["self", "event"],
    "ConsolidatedSqliteEventLogStorage.store_asset_check_event": ["self", "event", "event_id"],
    "ConsolidatedSqliteEventLogStorage._event_to_row": ["self", "event"],
    "SqliteRunStorage.from_local": ["base_dir", "inst_data"],
    "SqliteRunStorage.connect": ["self"],
    "LocalComputeLogManager.capture_logs": ["self", "log_key"],
    "LocalComputeLogManager.get_captured_local_path": ["self", "log_key", "extension", "partial"],
    "LocalComputeLogManager.complete_artifact_path": ["self", "log_key"],
    "RunLauncher.launch_run": ["self", "context"],
    "RunLauncher.terminate": ["self", "run_id"],
}
"""What is overridden or called of private classes, and its arguments."""


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_what_is_overridden_has_these_arguments(name: str) -> None:
    kind, method = name.split(".")
    function = getattr(getattr(internals, kind), method)
    expected = OVERRIDDEN[name][1:] if inspect.ismethod(function) else OVERRIDDEN[name]
    parameters = list(inspect.signature(function).parameters)
    assert parameters in (expected, OVERRIDDEN[name]), f"{name} of Dagster {dg.__version__} takes {parameters}"


def test_a_step_can_forget_the_version_of_an_input() -> None:
    """`defs/assets.py` calls it after reporting the settings' version inside a step."""
    assert list(inspect.signature(StepExecutionContext.wipe_input_asset_version_info).parameters) == ["self", "key"]
