"""Events of a binary log, out of their bytes. Pure; nothing is known here of any table's rows."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple

from tidemark.replication.sources.mysql.columns import (
    BIT,
    BLOB,
    DATETIME2,
    DECIMAL,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    JSON,
    SET,
    STRING,
    TIME2,
    TIMESTAMP2,
    VAR_STRING,
    VARCHAR,
    VECTOR,
    YEAR,
    LoggedColumn,
)

__all__ = [
    "COMPRESSED",
    "DELETES",
    "GTIDS",
    "QUERIES",
    "ROWS",
    "UPDATES",
    "Gtid",
    "Header",
    "Kind",
    "Query",
    "RowsHead",
    "TableMap",
    "decode_gtid",
    "decode_header",
    "decode_mariadb_gtid",
    "decode_query",
    "decode_rotate",
    "decode_rows_head",
    "decode_table_map",
    "decode_tagged_gtid",
    "decompressed",
    "gtid_of",
]

HEADER = 19
_HEAD_OF_LOAD = 13  # bytes with the file of a LOAD DATA, before what all statements have


class Kind(IntEnum):
    """Of an event."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    FORMAT = 15
    XID = 16
    EXECUTE_LOAD = 18  # LOAD DATA in STATEMENT format
    TABLE_MAP = 19
    WRITE_1 = 23
    UPDATE_1 = 24
    DELETE_1 = 25
    INCIDENT = 26
    WRITE = 30
    UPDATE = 31
    DELETE = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    XA_PREPARE = 38
    PARTIAL_UPDATE = 39
    COMPRESSED_TRANSACTION = 40
    TAGGED_GTID = 42
    MARIADB_GTID = 162
    MARIADB_QUERY_COMPRESSED = 165
    MARIADB_WRITE_COMPRESSED = 166
    MARIADB_UPDATE_COMPRESSED = 167
    MARIADB_DELETE_COMPRESSED = 168


UPDATES = frozenset({Kind.UPDATE_1, Kind.UPDATE, Kind.MARIADB_UPDATE_COMPRESSED})
DELETES = frozenset({Kind.DELETE_1, Kind.DELETE, Kind.MARIADB_DELETE_COMPRESSED})
ROWS = frozenset({Kind.WRITE_1, Kind.WRITE, Kind.MARIADB_WRITE_COMPRESSED}) | UPDATES | DELETES
GTIDS = frozenset({Kind.GTID, Kind.ANONYMOUS_GTID, Kind.TAGGED_GTID, Kind.MARIADB_GTID})  # a transaction begins
QUERIES = frozenset({Kind.QUERY, Kind.EXECUTE_LOAD, Kind.MARIADB_QUERY_COMPRESSED})
COMPRESSED = frozenset({Kind.MARIADB_WRITE_COMPRESSED, Kind.MARIADB_UPDATE_COMPRESSED, Kind.MARIADB_DELETE_COMPRESSED})
_EXTRA = frozenset({Kind.WRITE, Kind.UPDATE, Kind.DELETE})  # these have a head with more in it
_NUMERIC = frozenset({1, 2, 9, 3, 8, DECIMAL, FLOAT, DOUBLE, YEAR})
_TEXTS = frozenset({STRING, VAR_STRING, VARCHAR, BLOB})
_LABELLED = frozenset({ENUM, SET})
_META_SIZE = {FLOAT: 1, DOUBLE: 1, VARCHAR: 2, BIT: 2, DECIMAL: 2, BLOB: 1, JSON: 1, GEOMETRY: 1, VECTOR: 1, STRING: 2,
              VAR_STRING: 2, TIMESTAMP2: 1, DATETIME2: 1, TIME2: 1, 140: 1, 141: 2}  # fmt: skip


class Header(NamedTuple):
    """`at`: seconds; `end`: the place behind the event, in 32 bits; 0 for one that was made for the connection."""

    at: int
    kind: int
    server_id: int
    size: int
    end: int
    flags: int


class Gtid(NamedTuple):
    """`at`: microseconds at which the transaction was committed first, None where the event has no such time.
    `standalone`: a single statement, without a BEGIN.
    """

    text: str
    at: int | None = None
    standalone: bool = False
    two_phase: bool = False


class Query(NamedTuple):
    """A statement. `schema`: the default database of its session."""

    schema: str
    statement: str


class RowsHead(NamedTuple):
    """`body`: where the rows begin. `whole`: whether the rows have all columns, before and after."""

    table_id: int
    columns: int
    whole: bool
    body: int


@dataclass(frozen=True)
class TableMap:
    """The table of the rows that follow. `named`: whether the event has names, types' signs and labels; without
    binlog_row_metadata = FULL it has not. `keys`: places of the primary key's columns.
    """

    table_id: int
    schema: str
    table: str
    columns: tuple[LoggedColumn, ...]
    keys: tuple[int, ...]
    named: bool


def decode_header(data: bytes) -> Header:
    """Of an event."""
    return Header(*struct.unpack_from("<IBIIIH", data))


def decode_rotate(data: bytes) -> tuple[str, int]:
    """The file that comes next, and the place in it."""
    return data[HEADER + 8 :].decode(), int.from_bytes(data[HEADER : HEADER + 8], "little")


def decode_gtid(data: bytes, *, anonymous: bool) -> Gtid:
    """Of a MySQL."""
    server = uuid.UUID(bytes=data[HEADER + 1 : HEADER + 17])
    number = int.from_bytes(data[HEADER + 17 : HEADER + 25], "little")
    times, at = HEADER + 42, None
    if len(data) >= times + 7:
        at = int.from_bytes(data[times : times + 7], "little")
        if at >> 55:  # another server committed it first, and this is when
            at = int.from_bytes(data[times + 7 : times + 14], "little")
    return Gtid("" if anonymous else f"{server}:{number}", at or None)


def decode_mariadb_gtid(data: bytes, server_id: int) -> Gtid:
    """Of a MariaDB: `domain-server-number`."""
    number, domain, flags = struct.unpack_from("<QIB", data, HEADER)
    return Gtid(f"{domain}-{server_id}-{number}", None, bool(flags & 1), bool(flags & 0xC0))


def decode_tagged_gtid(data: bytes) -> Gtid:
    """Of a MySQL, `uuid:tag:number`. Its event is a list of numbered fields: flags, server, number, tag, and others."""
    at = HEADER
    for _ in range(5):  # version, size, the last field that must be known, and the flags with their number
        _, at = _serialized(data, at)
    server, (_, at) = bytearray(), _serialized(data, at)
    for _ in range(16):
        byte, at = _serialized(data, at)
        server.append(byte)
    _, at = _serialized(data, at)
    number, at = _serialized(data, at)
    _, at = _serialized(data, at)
    size, at = _serialized(data, at)
    tag = data[at : at + size].decode()
    return Gtid(f"{uuid.UUID(bytes=bytes(server))}:{tag}:{number >> 1 ^ -(number & 1)}")


def gtid_of(header: Header, data: bytes) -> Gtid:
    """Of an event in GTIDS; its text is "" for an anonymous transaction."""
    match header.kind:
        case Kind.MARIADB_GTID:
            return decode_mariadb_gtid(data, header.server_id)
        case Kind.TAGGED_GTID:
            return decode_tagged_gtid(data)
        case _:
            return decode_gtid(data, anonymous=header.kind == Kind.ANONYMOUS_GTID)


def decode_query(data: bytes, kind: int) -> Query:
    """A statement in an event of QUERIES."""
    schema_size, _, variables = struct.unpack_from("<BHH", data, HEADER + 8)
    at = HEADER + 13 + variables + (_HEAD_OF_LOAD if kind == Kind.EXECUTE_LOAD else 0)
    schema, statement = data[at : at + schema_size], data[at + schema_size + 1 :]
    text = decompressed(statement) if kind == Kind.MARIADB_QUERY_COMPRESSED else statement
    return Query(schema.decode("utf-8", "replace"), text.decode("utf-8", "replace"))


def decompressed(data: bytes) -> bytes:
    """Content that a MariaDB compressed (log_bin_compress): a byte, the size of the whole, then zlib."""
    return zlib.decompress(data[1 + (data[0] & 7) :])


def decode_rows_head(data: bytes, kind: int) -> RowsHead:
    """Of an event with rows."""
    table_id = int.from_bytes(data[HEADER : HEADER + 6], "little")
    at = HEADER + 8
    if kind in _EXTRA:
        at += int.from_bytes(data[at : at + 2], "little")
    columns, at = _number(data, at)
    size, whole = (columns + 7) // 8, (1 << columns) - 1
    images = 2 if kind in UPDATES else 1
    there = [int.from_bytes(data[at + size * n : at + size * (n + 1)], "little") & whole for n in range(images)]
    return RowsHead(table_id, columns, all(one == whole for one in there), at + size * images)


def decode_table_map(data: bytes, *, mariadb: bool) -> TableMap:
    """A table as it is from here on, for this connection. A MariaDB counts geometries among the texts."""
    table_id = int.from_bytes(data[HEADER : HEADER + 6], "little")
    schema, at = _text(data, HEADER + 8, 1)
    table, at = _text(data, at + 1, 1)
    count, at = _number(data, at + 1)
    kinds, at = data[at : at + count], at + count
    _, at = _number(data, at)
    columns = []
    for kind in kinds:
        size = _META_SIZE.get(kind, 0)
        columns.append(
            _column(kind, data[at], data[at + 1] if size == 2 else 0) if size else LoggedColumn(kind, (0, 0))
        )
        at += size
    more = _Metadata(tuple(columns), _TEXTS | {GEOMETRY} if mariadb else _TEXTS)
    more.read(data, at + (count + 7) // 8)
    return TableMap(table_id, schema, table, more.columns, more.keys, more.named)


def _column(kind: int, first: int, second: int) -> LoggedColumn:
    """ENUM and SET have the type of texts, and their meta names the real type and the size of a number."""
    if kind == STRING and first in (ENUM, SET):
        return LoggedColumn(first, (first, second))
    return LoggedColumn(kind, (first, second))


class _Metadata:
    """The metadata behind the types in a table's event."""

    def __init__(self, columns: tuple[LoggedColumn, ...], texts: frozenset[int]) -> None:
        self.columns, self._kinds_of_texts = columns, texts
        self.keys: tuple[int, ...] = ()
        self.named = False

    def read(self, data: bytes, at: int) -> None:
        while at < len(data):
            kind = data[at]
            size, at = _number(data, at + 1)
            self._field(kind, data[at : at + size])
            at += size

    def _field(self, kind: int, data: bytes) -> None:
        match kind:
            case 1:
                numeric = self._places(_NUMERIC)
                self._change(numeric, "unsigned", [bool(data[n // 8] << n % 8 & 0x80) for n in range(len(numeric))])
            case 2 | 10:
                places = self._places(self._kinds_of_texts if kind == 2 else _LABELLED)
                self._change(places, "collation", _defaulted(data, len(places)))
            case 3 | 11:
                self._change(
                    self._places(self._kinds_of_texts if kind == 3 else _LABELLED), "collation", [*_numbers(data)]
                )
            case 4:
                names = [name.decode() for name in _texts(data)]
                self.named = len(names) == len(self.columns)
                self._change(range(len(self.columns)), "name", names)
            case 5 | 6:
                self._change(self._places({SET if kind == 5 else ENUM}), "values", [*_labels(data)])
            case 8 | 9:  # the latter has the length of a prefix behind each
                self.keys = tuple(_numbers(data))[:: kind - 7]

    def _places(self, kinds: Collection[int]) -> list[int]:
        return [place for place, one in enumerate(self.columns) if one.kind in kinds]

    def _change(self, places: Sequence[int], field: str, values: Sequence[object]) -> None:
        columns = list(self.columns)
        for place, value in zip(places, values, strict=False):
            columns[place] = _with(columns[place], field, value)
        self.columns = tuple(columns)


def _with(column: LoggedColumn, field: str, value: Any) -> LoggedColumn:
    changed: dict[str, Any] = {field: value}
    return replace(column, **changed)


def _defaulted(data: bytes, count: int) -> list[int]:
    default, *pairs = _numbers(data)
    special = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return [special.get(place, default) for place in range(count)]


def _labels(data: bytes) -> Iterator[tuple[bytes, ...]]:
    at = 0
    while at < len(data):
        count, at = _number(data, at)
        labels = []
        for _ in range(count):
            size, at = _number(data, at)
            labels.append(data[at : at + size])
            at += size
        yield tuple(labels)


def _texts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = _number(data, at)
        yield data[at : at + size]
        at += size


def _numbers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        number, at = _number(data, at)
        yield number


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    start = at + size
    end = start + int.from_bytes(data[at:start], "little")
    return data[start:end].decode(), end


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def _serialized(data: bytes, at: int) -> tuple[int, int]:
    """A number in the form of a MySQL's numbered fields, and where it ends. Ones at the end of the first byte count the
    bytes that follow.
    """
    more = 0
    while more < 8 and data[at] >> more & 1:
        more += 1
    end = at + 1 + more
    return int.from_bytes(data[at:end], "little") >> min(more + 1, 8), end
