"""The log of a MySQL or MariaDB for a run of capture: its binary log files, transaction by transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidemark.errors import SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import LogPosition, ObjectName, TableSchema
from tidemark.replication.planning.events import TextOf
from tidemark.replication.planning.positions import FilePlace, place_of, position_text
from tidemark.replication.sources.change_log import LogBatch
from tidemark.replication.sources.mysql.catalog import server_facts
from tidemark.replication.sources.mysql.connection import Connection, connect, rows_of
from tidemark.replication.sources.mysql.dialects import MARIADB, dialect_of
from tidemark.replication.sources.mysql.failures import source_text
from tidemark.replication.sources.mysql.log_files import bytes_behind, require_readable, visible_end
from tidemark.replication.sources.mysql.log_stream import events_from
from tidemark.replication.sources.mysql.schemas import LoggedSchemas
from tidemark.replication.sources.mysql.transactions import EventRow, TransactionReader
from tidemark.replication.sources.undecodable import readable

if TYPE_CHECKING:
    from tidemark.replication.model.jobs import CaptureEvents

__all__ = ["BinaryLog", "binary_log", "place_in"]

_CREATED = "SELECT CREATE_TIME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"


@contextmanager
def binary_log(request: CaptureEvents, address: SourceAddress, hashed: TextOf | None) -> Iterator[BinaryLog]:
    """The `ChangeLog` of a server. Raises SourceIsAnother, and what `connect` does."""
    with connect(address) as connection:
        found = server_facts(connection).system_id
        if found != request.system_id:
            raise SourceIsAnother(source=source_text(address), found=found, expected=request.system_id)
        yield BinaryLog(request, address, hashed, connection)


@dataclass
class BinaryLog:
    """The `ChangeLog` of binary log files. Nothing keeps them for a reader: the server removes them by their age."""

    request: CaptureEvents
    address: SourceAddress
    hashed: TextOf | None
    connection: Connection
    protocol: str = "binlog"

    def end(self) -> LogPosition:
        """The end of what every session sees."""
        return visible_end(self.connection, self.address).position

    def resume(self, position: LogPosition) -> None:
        """Raises SourceSetBack, LogPurged."""
        if position.commit:
            require_readable(self.connection, self.address, place_in(position))

    def batch(
        self, start: LogPosition, end: LogPosition, schemas: Mapping[str, TableSchema], *, heartbeat: bool
    ) -> LogBatch:
        """A connection of its own reads it, as a replica does."""
        begin, until = place_in(start), place_in(end)
        ((any_case,),) = rows_of(self.connection, "SELECT @@GLOBAL.lower_case_table_names")
        reader = TransactionReader(
            objects={one.source_id: one for one in self.request.objects},
            schemas=dict(schemas),
            table_of=LoggedSchemas(self.connection, source_text(self.address), self.hashed),
            created_at=self._created_at,
            start=begin,
            end=until,
            max_events=self.request.options.max_events,
            source=source_text(self.address),
            mariadb=dialect_of(str(self.connection.get_server_info())) is MARIADB,
            any_case=bool(any_case),
        )

        @contextmanager
        def rows() -> Iterator[Iterator[list[EventRow]]]:
            with closing(events_from(self.address, begin)) as events:
                yield readable(
                    reader.chunks(events),
                    source=source_text(self.address),
                    what="an event that can be read",
                    which=f"an event behind {position_text(start)}",
                    remedy="Exclude the table of it from the replication, if it has a type that is not supported.",
                )

        return LogBatch(reader, rows)

    def release(self, position: LogPosition) -> None:
        """Nothing is kept for us, so there is nothing to release."""

    def lag(self, position: LogPosition) -> int:
        """Behind it to the end of the last file."""
        return bytes_behind(self.connection, place_in(position)) if position.commit else 0

    def _created_at(self, name: ObjectName) -> datetime | None:
        for (created,) in rows_of(self.connection, _CREATED, (name.schema, name.table)):
            return created.replace(tzinfo=UTC) if isinstance(created, datetime) else None
        return None


def place_in(position: LogPosition) -> FilePlace:
    """Of a position that is no START. Raises InvalidArgument for one of another kind of source."""
    place = place_of(position)
    if place is None:
        raise ValueError("the beginning of all logs is no place in a file")
    return place
