"""A database of a real server with a slot and a publication, and what its slot has, as events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.postgresql import PostgresServer
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.jobs import CapturedObject
from tidemark.replication.model.replication import LogPosition, ObjectName, TableSchema
from tidemark.replication.planning.hiding import hasher
from tidemark.replication.planning.positions import lsn_of
from tidemark.replication.sources.postgresql.change_log import read_by_functions, read_by_protocol
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.relations import CatalogSchemas
from tidemark.replication.sources.postgresql.slots import current_position
from tidemark.replication.sources.postgresql.transactions import EventRow, TransactionReader

__all__ = ["SourceWorld"]

ROW = ("facts", "commit", "xid", "at", "lsn", "nth", "sequence", "change", "half", "payload", "key", "old_key",
       "unchanged", "problem")  # fmt: skip


@dataclass
class SourceWorld:
    """`slot` and publication `p` of a new database; `captured` are the tables that have events."""

    server: PostgresServer
    slot: str
    database: str = field(init=False)
    captured: dict[str, CapturedObject] = field(default_factory=dict)
    hash_secret: str | None = None

    def __post_init__(self) -> None:
        self.database = self.server.new_database()
        self.slot = f"{self.slot}_{self.database}"
        self.sql("CREATE PUBLICATION p")
        self.sql(f"SELECT pg_create_logical_replication_slot('{self.slot}', 'pgoutput')")

    def close(self) -> None:
        self.sql(f"SELECT pg_drop_replication_slot('{self.slot}')")

    @property
    def address(self) -> SourceAddress:
        return replace(self.server.address(self.database), hash_secret=self.hash_secret)

    def sql(self, *texts: str) -> list[tuple[Any, ...]]:
        for text in texts:
            rows = self.server.sql(text, self.database)
        return rows

    def replicate(self, *tables: str, keys: Sequence[str] = ("id",), excluded: Sequence[str] = ()) -> None:
        """Publish tables of schema public, whose events are captured from now on."""
        for table in tables:
            self.sql(f'ALTER PUBLICATION p ADD TABLE "{table}"')
            oid = str(self.sql(f"SELECT '\"{table}\"'::regclass::oid::bigint")[0][0])
            name = ObjectName("public", table)
            self.captured[oid] = CapturedObject(name, oid, tuple(keys), excluded=tuple(excluded))

    def reader(
        self, connection: Any, end: LogPosition, schemas: dict[str, TableSchema] | None = None, **more: Any
    ) -> TransactionReader:
        of_catalog = CatalogSchemas(connection, None, hasher(self.hash_secret) if self.hash_secret else None)
        given = {"start": 0, "max_events": 10**9, "hide": of_catalog.hide, **more}
        return TransactionReader(
            objects=self.captured,
            schemas={} if schemas is None else schemas,
            schema_of=of_catalog,
            end=lsn_of(end),
            **given,
        )

    def rows(self, *, by_protocol: bool = False, **more: Any) -> list[EventRow]:
        """All events that the slot has now; it stays where it is."""
        with connect(self.address) as connection:
            end = current_position(connection)
            reader = self.reader(connection, end, **more)
            start = LogPosition("")
            if by_protocol:
                with connect(self.address, replication=True) as reading:
                    found = list(reader.chunks(read_by_protocol(reading, self.slot, "p", start, end)))
                self._wait_until_idle()
            else:
                with connect(self.address, autocommit=False) as reading:
                    found = list(reader.chunks(read_by_functions(reading, self.slot, "p", end)))
        return [row for chunk in found for row in chunk]

    def _wait_until_idle(self) -> None:
        """The server's process holds the slot for a moment after its client has left."""
        active = f"SELECT active FROM pg_replication_slots WHERE slot_name = '{self.slot}'"
        until = time.monotonic() + 60
        while self.sql(active) != [(False,)]:
            assert time.monotonic() < until, "the slot stays active"
            time.sleep(0.02)

    def events(self, **more: Any) -> list[dict[str, Any]]:
        """`rows` by name, without schemas."""
        named = (dict(zip(ROW, row, strict=True)) for row in self.rows(**more))
        return [row for row in named if row["change"] != "SCHEMA"]
