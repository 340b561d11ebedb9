"""A source with a slot and an event log, captured in this process, and what the log has then."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.databases.postgresql.captured import SourceWorld
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.source_address import SourceKind
from tidemark.replication.driver.capture import capture_events
from tidemark.replication.model.jobs import CaptureEvents, CaptureReport
from tidemark.replication.model.replication import LogPosition, ReplicationOptions, TableSchema
from tidemark.replication.sources.change_log import OpenLog
from tidemark.replication.sources.postgresql.capturing import FUNCTIONS_UP_TO, postgres_log
from tidemark.replication.sources.postgresql.catalog import server_facts
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.slots import slot_status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["NOW", "CaptureWorld"]

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _nothing(*_: str) -> None:
    return None


@dataclass
class CaptureWorld:
    """`captured`, `batches` and `schemas` are what a store would know, once `store` was called with a report."""

    spark: SparkSession
    source: SourceWorld
    home: Path
    said: list[str] = field(default_factory=list)
    request: CaptureEvents = field(init=False)

    def __post_init__(self) -> None:
        with connect(self.source.address) as connection:
            system_id = server_facts(connection).system_id
        self.request = CaptureEvents(
            replication_uid="uid-1",
            stream="shop",
            kind=SourceKind.POSTGRESQL,
            event_log=f"file://{self.home}/events",
            slot=self.source.slot,
            publication="p",
            system_id=system_id,
            captured=self.confirmed,
            batches=0,
            objects=(),
            options=ReplicationOptions(target="mirror"),
        )

    @property
    def confirmed(self) -> LogPosition:
        """Up to where the slot was moved."""
        with connect(self.source.address) as connection:
            confirmed = slot_status(connection, self.source.slot).confirmed
        assert confirmed is not None
        return confirmed

    def capture(
        self,
        *,
        say: Callable[[str], None] | None = None,
        stop_if_due: Callable[[], None] = _nothing,
        functions_up_to: int = FUNCTIONS_UP_TO,
        open_log: OpenLog | None = None,
        **more: Any,
    ) -> CaptureReport:
        """A run that knows what the store knows; with other options in `more`."""
        objects = tuple(replace(one, schema=self.schemas.get(one.source_id)) for one in self.source.captured.values())
        request = replace(self.request, objects=objects, options=replace(self.request.options, **more))
        with Workspace(f"file://{self.home}/_tidemark", "capture") as workspace:
            return capture_events(
                self.spark,
                "store",
                request,
                self.source.address,
                workspace,
                now=NOW,
                say=say or self.said.append,
                stop_if_due=stop_if_due,
                open_log=open_log or partial(postgres_log, functions_up_to=functions_up_to),
            )

    schemas: dict[str, TableSchema] = field(default_factory=dict)

    def store(self, report: CaptureReport) -> None:
        """What the worker does with a report; the slot is not moved by it here."""
        self.request = replace(self.request, captured=report.captured, batches=report.batches)
        by_name = {one.name.text: oid for oid, one in self.source.captured.items()}
        self.schemas.update({by_name[name]: schema for name, schema in report.schemas.items()})

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.open(self.request.event_log)

    @property
    def rows(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.request.event_log)

    def events(self) -> list[Any]:
        """In the order of the log, without schemas."""
        return self.rows.where("change <> 'SCHEMA'").orderBy("position", "sequence").collect()

    def told(self) -> list[tuple[Any, ...]]:
        """Change and payload of each event."""
        return [(row["change"], json.loads(row["payload"])) for row in self.events()]
