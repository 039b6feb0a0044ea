"""Dagster's records in Postgres. The workspace's `dagster.yaml` names the class here."""

from collections.abc import Mapping
from typing import Any, Self

import dagster as dg
from dagster_postgres import DagsterPostgresStorage, PostgresEventLogStorage
from dagster_postgres.utils import pg_url_from_config
from sqlalchemy.engine import Connection

from fairness_pipeline.defs.dagster_internals import ConfigurableClassData
from fairness_pipeline.defs.records import stored_later


class EventsInPostgres(PostgresEventLogStorage):
    """The events of all runs. An asset's last one stays noted as such, whoever notes an earlier one after it."""

    def _store_asset_event(self, conn: Connection, event: dg.EventLogEntry, event_id: int) -> None:
        """Called by Dagster in a transaction, in which the first statement locks the asset's row."""
        super()._store_asset_event(conn, event, event_id)
        if last := stored_later(self, event, event_id):
            super()._store_asset_event(conn, last.event_log_entry, last.storage_id)


class RecordsInPostgres(DagsterPostgresStorage):
    """Runs, events and schedules in one database."""

    def __init__(self, postgres_url: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(postgres_url, inst_data=inst_data)
        self._event_log_storage = EventsInPostgres(postgres_url)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return cls(pg_url_from_config(config_value), inst_data)
