"""Messages of PostgreSQL's `pgoutput` plugin, protocol version 1, in the form of values.

Only committed transactions are in it, each whole, between its BEGIN and its COMMIT, in the order of commits. Positions
are 64-bit integers, times microseconds since 1970 in UTC. A message that breaks off raises struct.error or IndexError.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple, TypeAlias

from tidemark.replication.planning.events import UNCHANGED, Values

__all__ = [
    "BEGIN",
    "COMMIT",
    "DELETE",
    "INSERT",
    "MESSAGE",
    "RELATION",
    "TRUNCATE",
    "UPDATE",
    "Begin",
    "Commit",
    "Decoded",
    "Delete",
    "Insert",
    "Message",
    "Relation",
    "RelationColumn",
    "Truncate",
    "Update",
    "decode",
    "decode_begin",
    "decode_commit",
    "decode_delete",
    "decode_insert",
    "decode_message",
    "decode_relation",
    "decode_truncate",
    "decode_update",
]

BEGIN, COMMIT, RELATION = b"BCR"
INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE = b"IUDTM"

_EPOCH = 946_684_800_000_000  # 2000-01-01, where PostgreSQL's time begins
_TEXT, _NULL, _UNCHANGED = b"tnu"
_KEY, _OLD = b"KO"

_u16 = Struct(">H").unpack_from
_u32 = Struct(">I").unpack_from
_begin = Struct(">QqI").unpack_from
_commit = Struct(">BQQq").unpack_from
_column_type = Struct(">Ii").unpack_from
_truncate = Struct(">IB").unpack_from
_message = Struct(">BQ").unpack_from


class Begin(NamedTuple):
    """`commit_lsn`: where the commit record begins, which is the transaction's place in the order."""

    commit_lsn: int
    at: int
    xid: int


class Commit(NamedTuple):
    """`end_lsn`: behind the commit record."""

    commit_lsn: int
    end_lsn: int
    at: int


class RelationColumn(NamedTuple):
    """`key`: part of the replica identity; of a whole row (FULL) every column is."""

    name: str
    type_oid: int
    typmod: int
    key: bool


class Relation(NamedTuple):
    """The columns and identity of a table from here on in the stream. `identity`: d(efault), n(othing), f(ull),
    i(ndex).
    """

    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Insert(NamedTuple):
    """Values are texts in the order of the relation's columns."""

    oid: int
    new: Values


class Update(NamedTuple):
    """`old`: the row before, whole (`old_is_whole`) or only its identity's values, the others None. It is None if it is
    not in the log, as the identity did not change. `unchanged`: whether some of `new` are UNCHANGED.
    """

    oid: int
    old: Values | None
    old_is_whole: bool
    new: Values
    unchanged: bool


class Delete(NamedTuple):
    """As in Update."""

    oid: int
    old: Values
    old_is_whole: bool


class Truncate(NamedTuple):
    """The tables of one statement."""

    oids: tuple[int, ...]


class Message(NamedTuple):
    """A message that pg_logical_emit_message wrote; if it is not transactional, it is alone, at its own place."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


Decoded: TypeAlias = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Message


def decode(data: bytes) -> Decoded | None:
    """The message, or None for one that says nothing of rows (an origin, a type's name)."""
    decoder = _DECODERS.get(data[0])
    return None if decoder is None else decoder(data)


def decode_begin(data: bytes) -> Begin:
    """Of a BEGIN."""
    commit_lsn, at, xid = _begin(data, 1)
    return Begin(commit_lsn, at + _EPOCH, xid)


def decode_commit(data: bytes) -> Commit:
    """Of a COMMIT."""
    _, commit_lsn, end_lsn, at = _commit(data, 1)
    return Commit(commit_lsn, end_lsn, at + _EPOCH)


def decode_relation(data: bytes) -> Relation:
    """Of a RELATION."""
    (oid,) = _u32(data, 1)
    schema, at = _name(data, 5)
    table, at = _name(data, at)
    identity = chr(data[at])
    (count,) = _u16(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        name, behind = _name(data, at + 1)
        type_oid, typmod = _column_type(data, behind)
        columns.append(RelationColumn(name, type_oid, typmod, bool(data[at] & 1)))
        at = behind + 8
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns))


def decode_insert(data: bytes) -> Insert:
    """Of an INSERT."""
    new, _, _ = _values(data, 6)
    return Insert(_u32(data, 1)[0], new)


def decode_update(data: bytes) -> Update:
    """Of an UPDATE."""
    kind, at, old = data[5], 6, None
    if kind in (_KEY, _OLD):
        old, at, _ = _values(data, 6)
        at += 1
    new, _, unchanged = _values(data, at)
    return Update(_u32(data, 1)[0], old, kind == _OLD, new, unchanged)


def decode_delete(data: bytes) -> Delete:
    """Of a DELETE."""
    old, _, _ = _values(data, 6)
    return Delete(_u32(data, 1)[0], old, data[5] == _OLD)


def decode_truncate(data: bytes) -> Truncate:
    """Of a TRUNCATE."""
    count, _ = _truncate(data, 1)
    return Truncate(Struct(f">{count}I").unpack_from(data, 6))


def decode_message(data: bytes) -> Message:
    """Of a MESSAGE."""
    flags, lsn = _message(data, 1)
    prefix, at = _name(data, 10)
    (length,) = _u32(data, at)
    return Message(bool(flags & 1), lsn, prefix, data[at + 4 : at + 4 + length])


_DECODERS: dict[int, Callable[[bytes], Decoded]] = {
    BEGIN: decode_begin,
    COMMIT: decode_commit,
    RELATION: decode_relation,
    INSERT: decode_insert,
    UPDATE: decode_update,
    DELETE: decode_delete,
    TRUNCATE: decode_truncate,
    MESSAGE: decode_message,
}


def _values(data: bytes, at: int) -> tuple[Values, int, bool]:
    """The values of a row that begins at `at`, where it ends, and whether some are UNCHANGED."""
    (count,) = _u16(data, at)
    at += 2
    values: Values = []
    add, unchanged = values.append, False
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            start = at + 5
            at = start + _u32(data, at + 1)[0]
            add(data[start:at].decode())
            continue
        at += 1
        if kind == _NULL:
            add(None)
        elif kind == _UNCHANGED:
            add(UNCHANGED)
            unchanged = True
        else:
            raise ValueError(f"a value of the unknown kind {chr(kind)!r}")
    if at > len(data):
        raise IndexError("the message breaks off in a value")
    return values, at, unchanged


def _name(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
