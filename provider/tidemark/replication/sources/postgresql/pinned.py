"""A table as of an exported snapshot, for many sessions to read: how, under which settings, in which ranges.

A transaction of ours holds the table while it is read, as pg_dump does. Without it a TRUNCATE or a rewriting ALTER
TABLE of somebody else would show an empty table to every older snapshot. Neither waits for long: a watch ends all
sessions of the copy for them. Each session that reads takes its lock at once or not at all. Behind an ALTER TABLE that
waits for another session of the copy it would wait for ever. It also checks that the table is what it was, and that the
session which holds it lives. After that session's end nobody may watch any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from tidemark.errors import BackfillGaveWay, BackfillInterrupted, InvalidArgument, TidemarkError
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.catalog import SeenTable
from tidemark.replication.model.replication import Column, Shown, TableSchema, TypeKind
from tidemark.replication.planning.hiding import MASK, pads_of
from tidemark.replication.sources.fetches import Fetch, RowSizes
from tidemark.replication.sources.postgresql.catalog import columns_of, read_from
from tidemark.replication.sources.postgresql.connection import SESSION, connect
from tidemark.replication.sources.postgresql.fingerprints import seen_tables
from tidemark.replication.sources.postgresql.giving_way import (
    BOUND,
    LOCK_TIMEOUT,
    Watch,
    driven,
    guards,
    milliseconds,
    watching,
)
from tidemark.replication.sources.postgresql.names import literal, quoted
from tidemark.replication.sources.postgresql.row_sizes import row_bytes, sample_percent
from tidemark.replication.sources.postgresql.snapshots import Snapshot, exported_snapshot

if TYPE_CHECKING:
    import psycopg2

__all__ = [
    "PATIENCE",
    "PinnedTable",
    "as_read",
    "hash_properties",
    "interruption",
    "is_native",
    "jdbc_properties",
    "jdbc_url",
    "pinned_table",
]

PATIENCE = timedelta(minutes=5)
RANGES_SINCE = 140000  # the version that reads a range of ctid without reading the whole table
_NATIVE = {
    TypeKind.BOOLEAN: "bool",
    TypeKind.SMALLINT: "int2",
    TypeKind.INTEGER: "int4",
    TypeKind.LONG: "int8",
    TypeKind.FLOAT: "float4",
    TypeKind.DOUBLE: "float8",
    TypeKind.BYTES: "bytea",
}
_CAST_IS_OUTPUT = re.compile(r"(text|character varying|uuid|numeric|interval|jsonb?|date|time|timestamp)\b[^.\"]*")
_PARTS = """
SELECT c.oid, c.relfilenode FROM pg_class c
WHERE c.relkind = 'r' AND c.oid IN (SELECT {oid}::oid UNION ALL SELECT relid FROM pg_partition_tree({oid}::oid))
"""
_FACTS = """
SELECT coalesce(max(pages), 0)::bigint, coalesce(sum(pages), 0)::bigint, count(*), transaction_timestamp(),
    coalesce(bool_or((SELECT pg_relation_size(c.reltoastrelid) > 0
        FROM pg_class c WHERE c.oid = parts.oid AND c.reltoastrelid <> 0)), false)
FROM (SELECT oid, pg_relation_size(oid) / current_setting('block_size')::bigint AS pages FROM ({parts}) AS one) AS parts
"""
_WIDEST = """
SELECT coalesce(max(size), 0), coalesce(avg(size), 0)::bigint
FROM (SELECT {size} AS size FROM {source} TABLESAMPLE SYSTEM ({percent})) AS sample
"""
_REWRITTEN = "was rewritten or truncated while it was copied"
_LOCKED = "is locked by another session, or one waits for it"
_HOLD = f"""DO $tidemark$BEGIN
BEGIN
LOCK TABLE {{source}} IN ACCESS SHARE MODE NOWAIT;
EXCEPTION WHEN lock_not_available THEN RAISE EXCEPTION 'it {_LOCKED}';
END;
IF EXISTS (SELECT FROM ({{parts}}) AS parts WHERE relfilenode IS DISTINCT FROM pg_relation_filenode(oid))
THEN RAISE EXCEPTION 'it {_REWRITTEN}'; END IF;
END$tidemark$"""
_GAVE_WAY = re.compile(rf"it (?:{_REWRITTEN}|{_LOCKED})|lock timeout|could not obtain lock")
_CLASS = 0x7469_6465  # of our advisory locks
_EXPORTED = f"SELECT pg_export_snapshot(), pg_try_advisory_xact_lock({_CLASS}, {{pid}})"
_HELD = (
    "CASE WHEN random() * {rows} < 1"
    f" THEN NOT (pg_try_advisory_lock_shared({_CLASS}, {{pid}}) AND pg_terminate_backend(pg_backend_pid()))"
    " ELSE true END"
)
_INNER, _OUTER = "tidemark.inner", "tidemark.outer"
_HASHED = (
    f"encode(sha256(decode(current_setting('{_OUTER}'), 'hex') || sha256(decode(current_setting('{_INNER}'), 'hex')"
    " || convert_to({text}, 'UTF8'))), 'hex')"
)
_IN_JDBC = {
    "connect_timeout": "connectTimeout",
    "channel_binding": "channelBinding",
    "gssencmode": "gssEncMode",
    "krbsrvname": "kerberosServerName",
    "target_session_attrs": "targetServerType",
}
_VALUES_IN_JDBC = {
    ("target_session_attrs", "read-write"): "primary",
    ("target_session_attrs", "prefer-standby"): "preferSecondary",
    ("target_session_attrs", "standby"): "secondary",
    ("target_session_attrs", "read-only"): "secondary",
}


@dataclass(frozen=True)
class PinnedTable:
    """A table just before `snapshot.position`, which the session that holds it keeps. `source`: its name in FROM.
    `parts`: 1, or how many partitions it has; `pages`: of its largest part.

    `statements`: what a reading session runs first, in the transaction that it reads in. `readers`: how these sessions
    are called, by which the watch knows them. `gave_way`: the session for which these sessions were ended; None: they
    were not. `bound`: how long somebody may wait for them.
    """

    snapshot: Snapshot
    taken_at: datetime
    schema: TableSchema
    source: str
    parts: int
    pages: int
    version: int
    statements: tuple[str, ...]
    sizes: RowSizes = field(default_factory=RowSizes)
    readers: str = "tidemark"
    bound: timedelta = BOUND
    gave_way: Callable[[], str | None] = lambda: None
    read: tuple[Column, ...] = ()  # as `schema`, with the types that the source has
    seen: SeenTable | None = None

    def ranges(self, partitions: int) -> tuple[str, ...]:
        """Conditions on `at`, the place of a row, that part its rows; the last is open, for rows that came since."""
        if self.version < RANGES_SINCE:
            return ("true",)
        count = max(1, min(partitions, self.pages))
        cuts = [self.pages * number // count for number in range(1, count)]
        lower = ["true", *(f"at >= '({cut},0)'::tid" for cut in cuts)]
        upper = [*(f"at < '({cut},0)'::tid" for cut in cuts), "true"]
        return tuple(f"{low} AND {high}" for low, high in zip(lower, upper, strict=True))

    def held(self, rows: int) -> str:
        """A condition that is true. About once in this many rows it ends the session that reads, if the session that
        holds the table is gone.
        """
        return _HELD.format(rows=rows, pid=self.snapshot.pid)

    def query(self, *, measured: bool = False) -> str:
        """The rows: `c0`, `c1` … in the order of the columns, `at`, `part` and `place`. The latter two are the row's
        place; `place`, 12 hexadecimal digits, is of no other row of the part. If `measured`, also `bytes`, how wide the
        row is.
        """
        values = [f"{as_read(column)} AS c{number}" for number, column in enumerate(self.read)]
        place = "ctid AS at, tableoid::text AS part, encode(tidsend(ctid), 'hex') AS place"
        size = f", {row_bytes(self.read)} AS bytes" if measured else ""
        return f"SELECT {', '.join(values)}, {place}{size} FROM {self.source}"


@contextmanager
def pinned_table(
    address: SourceAddress,
    oid: int,
    *,
    name: str,
    patience: timedelta = PATIENCE,
    numeric_as: str | None = None,
    choose: Callable[[TableSchema], TableSchema] = lambda schema: schema,
    bound: timedelta = BOUND,
) -> Iterator[PinnedTable]:
    """The table with that OID, held as it is now while the context lasts, or until somebody has waited `bound` for it.
    `choose`: its columns as the lake has them.

    Raises ObjectNotReplicable if it is gone. Raises BackfillGaveWay if somebody has it locked or rewrites it at this
    moment, or waits for it before it is ready. Raises what `exported_snapshot` and `connect` do. Nothing stays behind
    in the source in any case.
    """
    with (
        connect(driven(address, bound)) as connection,
        watching(address, name=f"tidemark copy {connection.info.backend_pid}", bound=bound) as watch,
    ):
        watch.look_after(connection)
        with _giving_way(name, watch):
            snapshot = _begun(address, connection, patience, bound)
            table = _held(connection, snapshot, oid, name, numeric_as, choose, bound)
        watch.keep(connection)
        yield replace(table, readers=watch.readers, gave_way=watch.why)


@contextmanager
def _giving_way(name: str, watch: Watch) -> Iterator[None]:
    """Errors raised within, as BackfillGaveWay if others caused them."""
    import psycopg2

    try:
        yield
    except psycopg2.errors.LockNotAvailable as error:
        raise BackfillGaveWay(object=name, problem=f"it {_LOCKED}") from error
    except (psycopg2.Error, TidemarkError) as error:
        if watch.found is None:
            raise
        raise BackfillGaveWay(object=name, problem=watch.found) from error


def _held(
    connection: psycopg2.extensions.connection,
    snapshot: Snapshot,
    oid: int,
    name: str,
    numeric_as: str | None,
    choose: Callable[[TableSchema], TableSchema],
    bound: timedelta,
) -> PinnedTable:
    """The table, which the session of `connection` holds from now on."""
    pinned = _pinning(snapshot, guards(bound, reads=True))
    parts = _PARTS.format(oid=oid)
    with connection.cursor() as cursor:
        source = read_from(connection, oid)
        hold = _HOLD.format(source=source, parts=parts)
        _run_hold(cursor, hold, name)
        cursor.execute(_FACTS.format(parts=parts))
        pages, all_pages, count, taken_at, out_of_line = cursor.fetchone()
        found = columns_of(connection, oid, numeric_as=numeric_as)
        schema, seen = choose(found), seen_tables(connection, [oid]).get(str(oid))
        read = tuple(replace(found.column(one.name), shown=one.shown) for one in schema.columns)
        cursor.execute(_WIDEST.format(size=row_bytes(read), source=source, percent=sample_percent(all_pages)))
        widest, mean = cursor.fetchone()
    return PinnedTable(
        snapshot=snapshot,
        taken_at=taken_at,
        schema=schema,
        source=source,
        parts=count,
        pages=pages,
        version=connection.server_version,
        statements=(*pinned, hold),
        read=read,
        seen=seen,
        sizes=RowSizes(widest, out_of_line, mean),
        bound=bound,
    )


def interruption(name: str, text: str) -> BackfillInterrupted:
    """The error of a copy whose reading session failed with `text`: BackfillGaveWay where that was for others."""
    if _GAVE_WAY.search(text):
        return BackfillGaveWay(object=name, problem=text)
    return BackfillInterrupted(object=name, problem=text)


def is_native(column: Column) -> bool:
    """Whether `as_read` gives the value itself, and not its canonical text."""
    return column.type.kind in _NATIVE


def as_read(column: Column) -> str:
    """The column in a query: its value where every client reads the same, else the canonical text of its type. Masked
    or hashed values do not leave the source; a hash needs `hash_properties`.
    """
    name = quoted(column.name)
    if column.shown is Shown.MASKED:
        return f"CASE WHEN {name} IS DISTINCT FROM NULL THEN {literal(MASK)} END"
    if column.shown is Shown.HASHED:
        return _HASHED.format(text=_text_to_hash(column, name))
    return _read(column, name)


def _text_to_hash(column: Column, name: str) -> str:
    """The canonical text, as events have it."""
    if column.type.kind is TypeKind.BYTES:
        return f"encode({name}, 'hex')"
    return f"{name}::text" if column.type.kind in _NATIVE else _read(column, name)


def _read(column: Column, name: str) -> str:
    native = column.native.lower()
    if column.type.kind in _NATIVE:
        return f"{name}::{_NATIVE[column.type.kind]}"
    if column.type.kind is TypeKind.ARRAY:
        return _array(column, name, native)
    if _CAST_IS_OUTPUT.fullmatch(native):
        return f"{name}::text"
    return (
        f"CASE WHEN {name} IS DISTINCT FROM NULL THEN concat({name}) END"  # a cast may write it otherwise (char, inet)
    )


def jdbc_url(address: SourceAddress) -> str:
    """Without user and password. Raises InvalidArgument for a socket, which Java does not know."""
    if address.host.startswith("/") or not address.host:
        problem = "a backfill reads by JDBC, which needs a host and a port, not a socket"
        raise InvalidArgument(argument="host", value=address.host, problem=problem)
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"jdbc:postgresql://{host}:{address.port}/{quote(address.database, safe='')}"


def jdbc_properties(
    address: SourceAddress, readers: str = "tidemark", fetch: Fetch | None = None, bound: timedelta = BOUND
) -> dict[str, str]:
    """The driver's properties, the password among them. The address's parameters choose a server, the way to it, and
    settings of the session, among which ours win. The driver's first question, for the columns, is asked before
    `statements` of a PinnedTable are run, and is about the table, too. A fetch of some rows makes it read in one
    transaction, as the snapshot needs.
    """
    fetched = {} if fetch is None else {"fetchsize": str(fetch.rows)}
    limited = {} if fetch is None or fetch.limit is None else {"maxResultBuffer": str(fetch.limit)}
    known = {
        _IN_JDBC.get(name, name): _VALUES_IN_JDBC.get((name, value), value)
        for name, value in address.parameters.items()
        if name.startswith("ssl") or name in _IN_JDBC
    }
    password = {"password": address.password} if address.password is not None else {}
    settings = {"lock_timeout": milliseconds(LOCK_TIMEOUT), **guards(bound, reads=True)}
    own = " ".join(f"-c {name}={value}" for name, value in settings.items())
    said = {"ApplicationName": readers, "options": f"{address.parameters.get('options', '')} {own}".strip()}
    return {**known, "user": address.user, **password, **said, **fetched, **limited, "tcpKeepAlive": "true"}


def _run_hold(cursor: psycopg2.extensions.cursor, hold: str, name: str) -> None:
    import psycopg2

    try:
        cursor.execute(hold)
    except psycopg2.errors.RaiseException as error:
        raise interruption(name, str(error.diag.message_primary)) from error


def hash_properties(secret: str) -> dict[str, str]:
    """The driver's properties if columns are hashed, besides `jdbc_properties`. The secret goes when the session
    begins, so it is in no statement that a server may keep.
    """
    inner, outer = pads_of(secret)
    return {"options": f"-c {_INNER}={inner} -c {_OUTER}={outer}"}


def _begun(
    address: SourceAddress, connection: psycopg2.extensions.connection, patience: timedelta, bound: timedelta
) -> Snapshot:
    """The snapshot that the session of `connection` has from now on, and gives to others. The session that made it can
    be asked nothing without losing it, but this one can be kept from being idle.
    """
    with (
        exported_snapshot(address, patience=patience, bound=bound) as snapshot,
        connection.cursor() as cursor,
    ):
        pid = connection.info.backend_pid
        cursor.execute("; ".join(("BEGIN", *_pinning(snapshot, guards(bound)))))
        cursor.execute(_EXPORTED.format(pid=pid))
        exported, _ = cursor.fetchone()
        return replace(snapshot, name=exported, pid=pid)


def _pinning(snapshot: Snapshot, guarded: Mapping[str, str]) -> tuple[str, ...]:
    """A policy that would hide rows is an error: such a copy would be no copy."""
    settings = {name: value for name, value in SESSION.items() if name != "synchronous_commit"}
    settings |= {"lock_timeout": str(milliseconds(LOCK_TIMEOUT)), **guarded}
    return (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        f"SET TRANSACTION SNAPSHOT {literal(snapshot.name)}",
        *(f"SET {name} = {literal(value)}" for name, value in settings.items()),
        "SET row_security = off",
    )


def _array(column: Column, name: str, native: str) -> str:
    """JSON of the items' texts, arrays in it as such; PostgreSQL's own functions, which escape as JSON wants it.

    A cast of an item may write it otherwise than the log has it (char, inet, domains over them). A comparison of the
    texts of both arrays shows it. Items that JSON would write in its own way (composites, domains over numbers) have
    such a cast.
    """
    item = column.type.item
    if item is not None and item.kind is TypeKind.BYTES:
        return f"""replace(array_to_json({name})::text, '"\\\\x', '"')"""
    as_text = f"array_to_json({name}::text[])::text"
    if _CAST_IS_OUTPUT.fullmatch(native) or (item is not None and item.kind in _NATIVE):
        return as_text
    same = f"{name}::text = {name}::text[]::text"
    return f"CASE WHEN {same} THEN {as_text} ELSE array_to_json({name})::text END"
