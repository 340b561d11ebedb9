"""A database of a real server with a binary log, and what the log has of its tables, as events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.databases.mariadb import BinlogServer
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.jobs import CapturedObject, CaptureEvents
from tidemark.replication.model.replication import START, LogPosition, ObjectName, ReplicationOptions, TableSchema
from tidemark.replication.planning.hiding import hasher
from tidemark.replication.sources.change_log import Found
from tidemark.replication.sources.mysql.capturing import binary_log
from tidemark.replication.sources.mysql.catalog import columns_of, server_facts
from tidemark.replication.sources.mysql.connection import connect
from tidemark.replication.sources.mysql.log_files import visible_end

__all__ = ["BinlogWorld"]

ROW = ("facts", "commit", "gtid", "at", "server_id", "file", "place", "nth", "row", "sequence", "change", "half",
       "payload", "key", "old_key", "unchanged", "problem")  # fmt: skip


@dataclass
class BinlogWorld:
    """A new database; `captured` are the tables that have events. `position`: how far they were captured."""

    server: BinlogServer
    hash_secret: str | None = None
    database: str = field(init=False)
    captured: dict[str, CapturedObject] = field(default_factory=dict)
    schemas: Mapping[str, TableSchema] = field(default_factory=dict)
    position: LogPosition = START
    found: Found | None = None

    def __post_init__(self) -> None:
        self.database = self.server.new_database()
        self.position = self.here()

    @property
    def address(self) -> SourceAddress:
        return replace(self.server.address(), hash_secret=self.hash_secret)

    def sql(self, *texts: str) -> list[tuple[Any, ...]]:
        for text in texts:
            rows = self.server.sql(text, self.database)
        return rows

    def replicate(self, *tables: str, **more: Any) -> None:
        """Events of these tables are captured, from here on."""
        with connect(self.address) as connection:
            for table in tables:
                source_id = f"{self.database}.{table}"
                schema = columns_of(connection, source_id)
                name = ObjectName(self.database, table)
                self.captured[source_id] = CapturedObject(name, source_id, schema.keys, registered=schema, **more)
        self.position = self.here()

    def here(self) -> LogPosition:
        with connect(self.address) as connection:
            return visible_end(connection, self.address).position

    def request(self, **options: Any) -> CaptureEvents:
        with connect(self.address) as connection:
            system_id = server_facts(connection).system_id
        return CaptureEvents(
            "uid", "shop", self.server.kind, "/nowhere", "slot", "p", system_id, START, 0,
            tuple(self.captured.values()), ReplicationOptions("lake", **options),
        )  # fmt: skip

    def chunks(self, until: LogPosition | None = None, **options: Any) -> list[list[dict[str, Any]]]:
        """The next batch, in its chunks; the position moves behind it."""
        hashed = hasher(self.hash_secret) if self.hash_secret else None
        with binary_log(self.request(**options), self.address, hashed) as log:
            log.resume(self.position)
            batch = log.batch(self.position, until or log.end(), self.schemas, heartbeat=False)
            with batch.rows() as chunks:
                rows = [[dict(zip(ROW, row, strict=True)) for row in chunk] for chunk in chunks]
        self.found, self.schemas, self.position = batch.found, batch.found.schemas, batch.found.upto
        return rows

    def batch(self, until: LogPosition | None = None, **options: Any) -> list[dict[str, Any]]:
        """The events of the next batch, schemas included."""
        return [row for chunk in self.chunks(until, **options) for row in chunk]

    def events(self, until: LogPosition | None = None, **options: Any) -> list[dict[str, Any]]:
        """`batch`, without schemas."""
        return [row for row in self.batch(until, **options) if row["change"] != "SCHEMA"]

    def changes(self) -> Sequence[tuple[str, str, str | None]]:
        """Change, payload and key of each."""
        return [(str(row["change"]), row["payload"], row["key"]) for row in self.events()]
