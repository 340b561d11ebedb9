"""The log of a PostgreSQL for a run of capture: what its slot has, transaction by transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from tidemark.errors import SlotBusy, SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import LogPosition, TableSchema
from tidemark.replication.planning.events import TextOf
from tidemark.replication.planning.positions import lsn_of
from tidemark.replication.sources.change_log import ONE_SERVER, LogBatch, Origin
from tidemark.replication.sources.postgresql.catalog import server_facts
from tidemark.replication.sources.postgresql.change_log import read_by_functions, read_by_protocol
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.failures import source_text
from tidemark.replication.sources.postgresql.relations import CatalogSchemas
from tidemark.replication.sources.postgresql.slots import (
    advance_slot,
    current_position,
    losses_named,
    require_not_set_back,
    require_ours,
    slot_status,
)
from tidemark.replication.sources.postgresql.snapshots import require_primary
from tidemark.replication.sources.postgresql.transactions import EventRow, TransactionReader
from tidemark.replication.sources.undecodable import readable

if TYPE_CHECKING:
    import psycopg2

    from tidemark.replication.model.jobs import CaptureEvents

__all__ = ["FUNCTIONS_UP_TO", "PostgresLog", "postgres_log"]

FUNCTIONS_UP_TO = 64 << 20  # bytes of log that the server decodes at once
_SECONDS_FOR_A_READER_TO_GO = 15.0  # that was cut off, until the server has noticed


@contextmanager
def postgres_log(
    request: CaptureEvents, address: SourceAddress, hashed: TextOf | None, *, functions_up_to: int = FUNCTIONS_UP_TO
) -> Iterator[PostgresLog]:
    """The `ChangeLog` of the slot. More than `functions_up_to` bytes of log are read by the replication protocol.

    Raises SourceIsAnother, SourceRefused for a standby, and what `connect` does.
    """
    with connect(address) as connection:
        require_primary(connection)
        found = server_facts(connection).system_id
        if found != request.system_id:
            raise SourceIsAnother(source=source_text(address), found=found, expected=request.system_id)
        yield PostgresLog(request, address, hashed, connection, functions_up_to)


@dataclass
class PostgresLog:
    """The `ChangeLog` of a slot. Its methods raise SlotLost, SlotForeign, SlotAhead and SlotBusy, too."""

    request: CaptureEvents
    address: SourceAddress
    hashed: TextOf | None
    connection: psycopg2.extensions.connection
    functions_up_to: int
    protocol: str = "functions"

    def end(self, until: LogPosition | None = None) -> LogPosition:
        """The end of the log on the server's disk."""
        return current_position(self.connection) if until is None else until

    def resume(self, position: LogPosition, origin: Origin = ONE_SERVER) -> None:
        """Raises SourceSetBack for a server that was restored."""
        require_not_set_back(self.connection, position)
        require_ours(slot_status(self.connection, self.request.slot), captured=position, idle=False)

    def batch(
        self, start: LogPosition, end: LogPosition, schemas: Mapping[str, TableSchema], *, heartbeat: bool
    ) -> LogBatch:
        """A connection of its own reads it."""
        of_catalog = CatalogSchemas(self.connection, self.request.options.numeric_as, self.hashed)
        reader = TransactionReader(
            {one.source_id: one for one in self.request.objects},
            dict(schemas),
            of_catalog,
            lsn_of(start),
            lsn_of(end),
            self.request.options.max_events,
            heartbeat,
            of_catalog.hide,
        )

        @contextmanager
        def rows() -> Iterator[Iterator[list[EventRow]]]:
            with self._messages(start, end) as messages:
                yield readable(
                    reader.chunks(messages),
                    source=source_text(self.address),
                    what="a message that can be read",
                    which=f"a message of slot {self.request.slot} behind {start.commit}",
                    remedy="Its database must have an encoding that is known (not SQL_ASCII), its plugin be pgoutput.",
                )

        return LogBatch(reader, rows)

    def release(self, position: LogPosition) -> None:
        """A reader that was cut off just now holds the slot for a moment, which is waited for."""
        patience = Retrying(
            retry=retry_if_exception_type(SlotBusy),
            stop=stop_after_delay(_SECONDS_FOR_A_READER_TO_GO),
            wait=wait_fixed(0.2),
            reraise=True,
        )
        patience(advance_slot, self.connection, self.request.slot, position)

    def lag(self, position: LogPosition) -> int:
        """Behind the end of the log now."""
        return max(0, lsn_of(self.end()) - lsn_of(position))

    @contextmanager
    def _messages(self, start: LogPosition, end: LogPosition) -> Iterator[Iterator[tuple[int, bytes]]]:
        status = slot_status(self.connection, self.request.slot)
        behind = lsn_of(end) - lsn_of(status.restart or start)
        slot, publication = self.request.slot, self.request.publication
        if behind <= self.functions_up_to:
            with connect(self.address, autocommit=False) as reading, losses_named(self.connection, slot):
                yield read_by_functions(reading, slot, publication, end)
            return
        self.protocol = "replication"
        with connect(self.address, replication=True) as reading, losses_named(self.connection, slot):
            yield read_by_protocol(reading, slot, publication, start, end)
