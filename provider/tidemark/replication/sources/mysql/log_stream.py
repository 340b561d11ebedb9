"""The events of a binary log from a place on, as the server sends them to a replica."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from tidemark.errors import SourceRefused, SourceUnreachable
from tidemark.model.source_address import SourceAddress
from tidemark.replication.planning.positions import FilePlace
from tidemark.replication.sources.mysql.binlog import HEADER, Header, Kind, decode_header, decode_rotate
from tidemark.replication.sources.mysql.catalog import system_id_of
from tidemark.replication.sources.mysql.connection import READ_TIMEOUT, open_connection
from tidemark.replication.sources.mysql.failures import log_failure, source_text

__all__ = ["FARTHEST", "FIRST", "LoggedEvent", "events_from"]

FIRST = 4  # the place of the first event in a file

_COM_BINLOG_DUMP = 0x12
_NON_BLOCK = 1
_END_OF_DATA = 0xFE
_MADE_FOR_US = 0x20  # of an event that is in no file
_CHECKSUM = 4
_REPLICAS = 1 << 30  # ids of servers from here on are seldom somebody else's
_32_BITS = (1 << 32) - 1
FARTHEST = _32_BITS
"""The farthest place in a file that can be asked for. Behind a transaction of 4 GB the file is read from its start."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """`start`, `end`: its places in `file`; `data`: with its header, without its checksum."""

    header: Header
    data: bytes
    file: str
    start: int
    end: int


def events_from(
    address: SourceAddress, place: FilePlace, *, server: str | None = None
) -> Generator[LoggedEvent, None, None]:
    """Everything that is in the log from `place` on, at this moment. The events of a transaction come together.

    The connection is a replica to the server, with an id that no other connection of ours has at the time. Of two
    with one id the server ends the older. The connection is closed at the end. `server`: the one whose log `place` is
    of. Raises LogPurged if the server has removed the file. Raises SourceRefused. Raises SourceUnreachable, even if
    another server answers.
    """
    import pymysql

    connection = open_connection(address, timedelta(seconds=15), READ_TIMEOUT)
    try:
        if server is not None and (found := system_id_of(connection)) != server:
            problem = f"another server answers than a moment ago ({found}, not {server})"
            raise SourceUnreachable(source=source_text(address), problem=problem)
        first = place if place.offset <= FARTHEST else replace(place, offset=FIRST)
        checksum = _begin(connection, first)
        for event in _Stream(address, first, checksum).events(connection):
            if event.file != place.file or event.start >= place.offset:
                yield event
    except (pymysql.err.Error, OSError) as error:
        raise log_failure(error, address, place.text) from error
    finally:
        connection.close()


def _begin(connection: Any, place: FilePlace) -> bool:
    """Whether events have checksums."""
    with connection.cursor() as cursor:
        cursor.execute("SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @mariadb_slave_capability = 4")
        cursor.execute("SET @source_binlog_checksum = @@GLOBAL.binlog_checksum, SESSION net_write_timeout = 600")
        cursor.execute("SELECT @@GLOBAL.binlog_checksum")
        ((checksum,),) = cursor.fetchall()
    server_id = _REPLICAS | connection.thread_id() & _REPLICAS - 1
    body = struct.pack("<BIHI", _COM_BINLOG_DUMP, place.offset, _NON_BLOCK, server_id) + place.file.encode()
    connection._write_bytes(struct.pack("<I", len(body)) + body)
    connection._next_seq_id = 1
    return str(checksum).upper() != "NONE"


class _Stream:
    def __init__(self, address: SourceAddress, place: FilePlace, checksum: bool) -> None:
        self._address, self._checksum = address, checksum
        self._file, self._end = place.file, place.offset

    def events(self, connection: Any) -> Iterator[LoggedEvent]:
        while True:
            packet = connection._read_packet().get_all_data()
            if packet[0] == _END_OF_DATA and len(packet) < HEADER:
                return
            event = self._event(packet[1:])
            if event is not None:
                yield event

    def _event(self, data: bytes) -> LoggedEvent | None:
        """None for one that tells only where the log continues."""
        header = decode_header(data)
        if header.kind == Kind.FORMAT:
            self._checksum = data[-_CHECKSUM - 1] == 1
            return None
        if self._checksum:
            self._require_sound(data)
            data = data[:-_CHECKSUM]
        if header.kind == Kind.ROTATE:
            self._file, self._end = decode_rotate(data)
            return None
        if not header.end or header.flags & _MADE_FOR_US:
            return None
        end = self._end & ~_32_BITS | header.end  # a header has the lower half of the place only
        if end < self._end:
            end += 1 << 32
        self._end = end
        return LoggedEvent(header, data, self._file, end - header.size, end)

    def _require_sound(self, data: bytes) -> None:
        if zlib.crc32(data[:-_CHECKSUM]) != int.from_bytes(data[-_CHECKSUM:], "little"):
            raise SourceRefused(
                source=source_text(self._address),
                what="a sound event",
                problem=f"an event of {self._file} behind {self._end} does not have its checksum",
                remedy="Its binary log is damaged: recover the replication from a position behind it.",
            )
