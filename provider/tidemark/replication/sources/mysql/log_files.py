"""The binary logs of a server: its files, and the end of what sessions can see."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tidemark.errors import LogPurged, SourceRefused, SourceSetBack, SourceUnreachable
from tidemark.model.source_address import SourceAddress
from tidemark.replication.planning.positions import FilePlace
from tidemark.replication.sources.mysql.connection import Connection, rows_of
from tidemark.replication.sources.mysql.dialects import MARIADB, dialect_of
from tidemark.replication.sources.mysql.failures import source_text

__all__ = [
    "bytes_behind",
    "file_sizes",
    "log_end",
    "owned_gtids",
    "require_readable",
    "seen_at",
    "snapshot",
    "visible_end",
]

_PATIENCE = 10.0  # seconds for transactions that are being applied or committed to be visible
_UNKNOWN_STATEMENT = 1064


def log_end(connection: Connection, address: SourceAddress) -> FilePlace:
    """The end of the log. Transactions before it may not be visible yet. Raises SourceRefused if there is no log."""
    import pymysql

    for statement in dialect_of(str(connection.get_server_info())).log_status:
        try:
            found = rows_of(connection, statement)
        except pymysql.err.ProgrammingError as error:
            if error.args[0] != _UNKNOWN_STATEMENT:
                raise
            continue
        if found:
            return FilePlace.of_file(str(found[0][0]), int(found[0][1]))
    raise SourceRefused(
        source=source_text(address),
        what="the end of its binary log",
        problem="it has no binary log",
        remedy="Start it with log_bin, binlog_format = ROW and binlog_row_metadata = FULL.",
    )


def visible_end(connection: Connection, address: SourceAddress) -> FilePlace:
    """The end of what every session sees now. All that was committed before this call is before it. A query that starts
    after this call sees all that is before it.

    A MySQL may have transactions in its log whose commit is not complete, which it lists as owned. These are waited
    for. A replica also lists those that it applies, for as long as each takes. Raises SourceUnreachable if one stays.
    """
    if dialect_of(str(connection.get_server_info())) is MARIADB:
        with seen_at(connection, address) as place:
            return place
    place = log_end(connection, address)
    deadline, waiting = time.monotonic() + _PATIENCE, _owned(connection)
    while waiting:
        if time.monotonic() > deadline:
            problem = f"transactions {', '.join(sorted(waiting))} are being applied or committed, and stay so"
            raise SourceUnreachable(source=source_text(address), problem=problem)
        time.sleep(0.02)
        waiting &= _owned(connection)
    return place


@contextmanager
def seen_at(connection: Connection, address: SourceAddress) -> Iterator[FilePlace]:
    """A transaction that sees one state of the database, and the place of that state in the log.

    Of a MariaDB it is exact: the snapshot has every transaction before the place and none behind it. Of a MySQL the
    snapshot has all before the place, and may have some behind it. Their events have whole rows, so they change nothing
    when they are applied again.
    """
    if dialect_of(str(connection.get_server_info())) is not MARIADB:
        place = visible_end(connection, address)
        with snapshot(connection):
            yield place
        return
    with snapshot(connection):
        found = dict(rows_of(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
        file = str(found.get("Binlog_snapshot_file", ""))
        yield (
            FilePlace.of_file(file, int(found["Binlog_snapshot_position"])) if file else log_end(connection, address)
        )


def file_sizes(connection: Connection) -> dict[str, int]:
    """The files that the server still has, oldest first, and their bytes."""
    return {str(row[0]): int(row[1]) for row in rows_of(connection, "SHOW BINARY LOGS")}


def bytes_behind(connection: Connection, place: FilePlace) -> int:
    """From a place to the end of the last file."""
    sizes = [(FilePlace.of_file(file, size), size) for file, size in file_sizes(connection).items()]
    return sum(
        max(0, size - place.offset) if one.number == place.number else size
        for one, size in sizes
        if one.number >= place.number
    )


def require_readable(connection: Connection, address: SourceAddress, place: FilePlace) -> None:
    """All that was committed behind `place` is in the files that the server has. Raises LogPurged if it has removed one
    of them. Raises SourceSetBack if its log ends before the place, since it was restored or begun again.
    """
    sizes = file_sizes(connection)
    if sizes.get(place.file, -1) >= place.offset:
        return
    ends = [FilePlace.of_file(file, size) for file, size in sizes.items()]
    ours = [one for one in ends if one.base == place.base]
    if ours and place.number < min(one.number for one in ours):
        problem = f"has purged its binary log {place.file} (the oldest that it has is {ours[0].file})"
        raise LogPurged(source=source_text(address), problem=problem, position=place.text)
    last = max(ends, key=lambda one: one.number, default=None)
    raise SourceSetBack(
        source=source_text(address), found="its start" if last is None else last.text, expected=place.text
    )


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """A transaction that sees one state of the database. After an error it lasts as long as the connection."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    yield
    if connection.open:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")


def _owned(connection: Connection) -> set[str]:
    """GTIDs of transactions that are being committed, or applied from another server: `uuid:7#41` of thread 41."""
    ((found,),) = rows_of(connection, "SELECT @@GLOBAL.gtid_owned")
    return set(owned_gtids(str(found or "")))


def owned_gtids(text: str) -> Iterator[str]:
    """`uuid:7#41:8#42, uuid2:tag:1#5`: a part without a thread is a tag, for the numbers behind it."""
    for part in filter(None, (one.strip() for one in text.split(","))):
        server, *owned = part.split(":")
        name = server
        for one in owned:
            number, thread, _ = one.partition("#")
            if thread:
                yield f"{name}:{number}"
            else:
                name = f"{server}:{one}"
