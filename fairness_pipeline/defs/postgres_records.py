"""Dagster's records in Postgres. The workspace's `dagster.yaml` names the class here."""

from collections.abc import Mapping
from typing import Any, Self

from dagster_postgres import DagsterPostgresStorage, PostgresEventLogStorage
from dagster_postgres.utils import pg_url_from_config

from fairness_pipeline.defs.dagster_internals import ConfigurableClassData
from fairness_pipeline.defs.records import LastStaysNoted


class EventsInPostgres(LastStaysNoted, PostgresEventLogStorage):
    """The events of all runs."""


class RecordsInPostgres(DagsterPostgresStorage):
    """Runs, events and schedules in one database."""

    def __init__(self, postgres_url: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(postgres_url, inst_data=inst_data)
        self._event_log_storage = EventsInPostgres(postgres_url)

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Called by Dagster."""
        return cls(pg_url_from_config(config_value), inst_data)
