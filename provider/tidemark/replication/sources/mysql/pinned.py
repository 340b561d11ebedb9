"""A table exactly as of one place of the log, read by one session.

Events cannot repair the copy of a table without a key, nor rows of a target that keeps all of them. So such a copy has
each change before its place, and none behind it. These servers share no snapshot between sessions, hence the single
reader.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from tidemark.errors import BackfillGaveWay, BackfillInterrupted, ObjectNotReplicable
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import ObjectName
from tidemark.replication.planning.positions import FilePlace
from tidemark.replication.sources.mysql import binlog
from tidemark.replication.sources.mysql.connection import Connection, connect, rows_of
from tidemark.replication.sources.mysql.dialects import MARIADB, dialect_of
from tidemark.replication.sources.mysql.failures import said
from tidemark.replication.sources.mysql.log_files import log_end, seen_at, snapshot, visible_end
from tidemark.replication.sources.mysql.log_stream import LoggedEvent, events_from
from tidemark.replication.sources.mysql.names import qualified
from tidemark.replication.sources.mysql.statements import is_change_of_rows

__all__ = ["PinnedRows", "pinned_rows"]

_PATIENCE = 10.0  # seconds in which a MySQL should have a moment without a change of the table
_AT_ONCE = 16 << 20  # bytes of a chunk, by and large
_MOST_ROWS = 50_000
_VALUE = 16  # bytes of a value that is not measured
_SESSION = "SET SESSION lock_wait_timeout = 1, net_write_timeout = 60, wait_timeout = 600"
_HAS_SNAPSHOTS = """
SELECT t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES t LEFT JOIN information_schema.ENGINES e
ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = %s AND t.TABLE_NAME = %s
"""
_GIVES_WAY = frozenset({1205, 1412, 1690})  # a lock, another definition, and `fails_unless_held`


@dataclass(frozen=True)
class PinnedRows:
    """A session whose snapshot has every change of the table before `place`, and none behind it. It reads once."""

    place: FilePlace
    name: str
    address: SourceAddress
    session: Connection

    def chunks(
        self, query: str, *, first: str, variables: Mapping[str, str], gave_way: Callable[[], str | None]
    ) -> Generator[list[tuple[Any, ...]], None, None]:
        """The rows of a query, after the query `first`, which fails if nobody holds the table. The session ends
        with the last chunk, an error, or when the iterator is closed. Then it holds the table no more.

        Raises BackfillGaveWay if others wanted the table, and BackfillInterrupted if the source goes away.
        """
        import pymysql

        try:
            for name, value in variables.items():
                rows_of(self.session, f"SET {name} = {value}")
            rows_of(self.session, first)
            cursor = pymysql.cursors.SSCursor(self.session)
            cursor.execute(query)
            yield from _chunks(cursor)
        except (pymysql.err.Error, OSError) as error:
            raise self._failure(error, gave_way()) from error
        finally:
            _leave(self.session)

    def _failure(self, error: Exception, waited: str | None) -> BackfillInterrupted:
        if waited is not None or (error.args and error.args[0] in _GIVES_WAY):
            return BackfillGaveWay(object=self.name, problem=waited or said(error, self.address))
        return BackfillInterrupted(object=self.name, problem=said(error, self.address))


@contextmanager
def pinned_rows(
    address: SourceAddress, table: ObjectName, *, name: str, server: str | None = None
) -> Iterator[PinnedRows]:
    """The table, whose definition somebody holds, as of one place. `server`: whose log it is.

    A MariaDB tells the place of a snapshot. A MySQL does not: so snapshots are taken until the log shows no change of
    the table around one. Raises BackfillGaveWay if the table is written to without a pause.
    Raises ObjectNotReplicable if its engine has no snapshots. Raises what `connect` and `visible_end` do.
    """
    with connect(address) as session:
        _require_snapshots(session, table, name)
        rows_of(session, _SESSION)
        if dialect_of(str(session.get_server_info())) is MARIADB:
            with seen_at(session, address) as place:
                yield PinnedRows(place, name, address, session)
            return
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            place = visible_end(session, address)
            with snapshot(session):
                if not _changed(address, table, place, log_end(session, address), server):
                    yield PinnedRows(place, name, address, session)
                    return
    problem = f"it was written to at each moment of {_PATIENCE:g} seconds, so that no snapshot has a place in the log"
    raise BackfillGaveWay(object=name, problem=problem)


def _require_snapshots(session: Connection, table: ObjectName, name: str) -> None:
    for engine, has_transactions in rows_of(session, _HAS_SNAPSHOTS, (table.schema, table.table)):
        if has_transactions != "YES":
            raise ObjectNotReplicable(
                object=name,
                problem=f"its engine {engine} has no snapshots, which an append-only target or a table without a key"
                " needs for its copy",
                remedy=f"Run ALTER TABLE {qualified(table)} ENGINE = InnoDB.",
            )


def _changed(address: SourceAddress, table: ObjectName, place: FilePlace, end: FilePlace, server: str | None) -> bool:
    """Whether a transaction in [place, end) may have changed rows of the table."""
    if place == end:
        return False
    with closing(events_from(address, place, server=server)) as events:
        for event in events:
            if FilePlace.of_file(event.file, event.start).position >= end.position:
                return False
            if _is_change(event, table):
                return True
    return False


def _is_change(event: LoggedEvent, table: ObjectName) -> bool:
    """A statement that changes rows counts for every table, and so does what cannot be read."""
    kind = event.header.kind
    if kind == binlog.Kind.TABLE_MAP:
        found = binlog.decode_table_map(event.data, mariadb=False)
        return (found.schema.lower(), found.table.lower()) == (table.schema.lower(), table.table.lower())
    if kind in binlog.QUERIES:
        return is_change_of_rows(binlog.decode_query(event.data, kind).statement)
    return kind in (binlog.Kind.COMPRESSED_TRANSACTION, binlog.Kind.INCIDENT)


def _chunks(cursor: Any) -> Iterator[list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in iter(cursor.fetchone, None):
        rows.append(row)
        size += sum(len(value) if isinstance(value, str | bytes) else _VALUE for value in row)
        if size >= _AT_ONCE or len(rows) >= _MOST_ROWS:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _leave(session: Any) -> None:
    """End a session without its remaining rows, which the client would read otherwise, however many they are."""
    if session._result is not None:
        session._result.unbuffered_active = False
    session._force_close()
