"""Imports everything that this package uses of Dagster's internals, which may change.

`pyproject.toml` pins Dagster's minor version; `test_dagster_internals.py` shows what a new version has changed.
"""

from dagster._cli.api import api_cli
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
)
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.execution.compute_logs import redirect_to_file
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._core.storage.compute_log_manager import CapturedLogContext, ComputeIOType
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.consolidated_sqlite_event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.local_compute_log_manager import IO_TYPE_EXTENSION, LocalComputeLogManager
from dagster._core.storage.runs.sqlite import SqliteRunStorage
from dagster._core.storage.sql import create_engine
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS, create_db_conn_string
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import ConfigurableClass, ConfigurableClassData, deserialize_value, serialize_value
from dagster._utils import ensure_file, touch_file

DAEMON = "dagster._daemon"
"""The module of Dagster's daemon, which `python -m` starts."""

__all__ = [
    "CODE_VERSION_TAG", "DAEMON", "DATA_VERSION_IS_USER_PROVIDED_TAG", "DATA_VERSION_TAG", "DEFAULT_DATA_VERSION",
    "INPUT_DATA_VERSION_TAG_PREFIX", "INPUT_EVENT_POINTER_TAG_PREFIX", "IO_TYPE_EXTENSION",
    "SQLITE_BUSY_TIMEOUT_SECONDS", "AssetKeyPartitionKey", "CapturedLogContext", "CheckRunHealthResult",
    "ComputeIOType", "ConfigurableClass", "ConfigurableClassData", "ConsolidatedSqliteEventLogStorage",
    "ExecuteRunArgs", "GrpcServerTarget", "LaunchRunContext", "LocalComputeLogManager", "RunLauncher",
    "SqlEventLogStorage", "SqlEventLogStorageTable", "SqliteRunStorage", "WorkerStatus", "WorkspaceProcessContext",
    "api_cli", "create_db_conn_string", "create_engine", "deserialize_value", "ensure_file", "redirect_to_file",
    "serialize_value", "touch_file",
]  # fmt: skip
