"""The log of a MySQL or MariaDB for a run of capture: its binary log files, transaction by transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidemark.errors import SourceIsAnother
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import START, LogPosition, ObjectName, TableSchema
from tidemark.replication.planning.events import TextOf
from tidemark.replication.planning.gtids import parse_gtids
from tidemark.replication.planning.positions import FilePlace, place_of, position_text
from tidemark.replication.sources.change_log import ONE_SERVER, LogBatch, Origin
from tidemark.replication.sources.mysql.catalog import ServerFacts, server_facts
from tidemark.replication.sources.mysql.connection import Connection, connect, rows_of
from tidemark.replication.sources.mysql.dialects import MARIADB, dialect_of
from tidemark.replication.sources.mysql.failover import Continued, continued, gtids_at, require_not_set_back
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
    """The `ChangeLog` of a server. Raises what `connect` does."""
    with connect(address) as connection:
        yield BinaryLog(request, address, hashed, connection, server_facts(connection))


@dataclass
class BinaryLog:
    """The `ChangeLog` of binary log files. Nothing keeps them for a reader: the server removes them by their age."""

    request: CaptureEvents
    address: SourceAddress
    hashed: TextOf | None
    connection: Connection
    facts: ServerFacts
    protocol: str = "binlog"
    _from: LogPosition = START  # where the run was resumed; in the log of the server `_before`
    _before: str = ""
    _standing: Continued | None = None  # where that is in this log; None: at its beginning
    _last: TransactionReader | None = None  # the newest batch

    def end(self, until: LogPosition | None = None) -> LogPosition:
        """The end of what every session sees, or `until`. Nothing is read if `until` was read from another server, or
        before this one had all that was captured.
        """
        standing = self._standing
        epoch = 1 if standing is None else standing.place.epoch
        if until is None:
            return visible_end(self.connection, self.address).in_epoch(epoch).position
        there = place_of(until)
        if there is None or there.epoch != epoch:
            return self._from
        behind = None if standing is None else standing.behind
        return until if behind is None or behind.position <= until else self._from

    def resume(self, position: LogPosition, origin: Origin = ONE_SERVER) -> None:
        """Raises SourceSetBack, LogPurged."""
        self._from, self._before, self._last = position, origin.server or self.request.system_id, None
        place, other = place_of(position), self._before != self.facts.system_id
        if other and (place is None or not origin.gtids or self.facts.dialect.kind is not self.request.kind):
            source = source_text(self.address)
            raise SourceIsAnother(source=source, found=self.facts.system_id, expected=self._before)
        if place is None:
            self._standing = None
        elif other:
            epoch = place.epoch + 1
            self._standing = continued(
                self.connection, self.address, origin.gtids, epoch=epoch, position=position_text(position)
            )
        else:
            require_readable(self.connection, self.address, place)
            if origin.gtids:
                require_not_set_back(self.connection, self.address, origin.gtids)
            self._standing = Continued(place, origin.gtids or gtids_at(self.connection, self.address, place))

    def batch(
        self, start: LogPosition, end: LogPosition, schemas: Mapping[str, TableSchema], *, heartbeat: bool
    ) -> LogBatch:
        """A connection of its own reads it, as a replica does."""
        standing, until = self._at(start), place_in(end)
        begin = standing.place
        ((any_case,),) = rows_of(self.connection, "SELECT @@GLOBAL.lower_case_table_names")
        tables = LoggedSchemas(self.connection, source_text(self.address), self.hashed)
        reader = TransactionReader(
            objects={one.source_id: one for one in self.request.objects},
            schemas=dict(schemas),
            table_of=tables,
            altered=tables.altered,
            created_at=self._created_at,
            start=begin,
            end=until,
            max_events=self.request.options.max_events,
            source=source_text(self.address),
            mariadb=dialect_of(str(self.connection.get_server_info())) is MARIADB,
            any_case=bool(any_case),
            server=self.facts.system_id,
            gtids=None if standing.gtids is None else parse_gtids(self.request.kind, standing.gtids),
            again=None if standing.again is None else standing.again.copy(),
        )
        if begin.position != start:
            reader.took_over(self._before)
        self._last = reader

        @contextmanager
        def rows() -> Iterator[Iterator[list[EventRow]]]:
            with closing(events_from(self.address, begin, server=self.facts.system_id)) as events:
                yield readable(
                    reader.chunks(events),
                    source=source_text(self.address),
                    what="an event that can be read",
                    which=f"an event behind {begin.text}",
                    remedy="Exclude the table of it from the replication, if it has a type that is not supported.",
                )

        return LogBatch(reader, rows)

    def release(self, position: LogPosition) -> None:
        """Nothing is kept for us, so there is nothing to release."""

    def lag(self, position: LogPosition) -> int:
        """Behind it to the end of the last file."""
        place = place_of(position)
        if place is None or self._standing is None or place.epoch != self._standing.place.epoch:
            return 0
        return bytes_behind(self.connection, place)

    def _at(self, start: LogPosition) -> Continued:
        """The place in this log at which a batch begins."""
        if self._last is not None and self._last.upto == start:
            return Continued(place_in(start), self._last.origin.gtids or None)
        return self._standing if self._standing is not None and self._from == start else Continued(place_in(start))

    def _created_at(self, name: ObjectName) -> datetime | None:
        for (created,) in rows_of(self.connection, _CREATED, (name.schema, name.table)):
            return created.replace(tzinfo=UTC) if isinstance(created, datetime) else None
        return None


def place_in(position: LogPosition) -> FilePlace:
    """Of a position that is no START. Raises InvalidArgument for one of another kind of source."""
    place = place_of(position)
    if place is None:
        raise ValueError("the beginning of all logs is not a place in a file")
    return place
