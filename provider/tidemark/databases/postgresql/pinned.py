"""A table as of an exported snapshot, for many sessions to read: how, under which settings, in which ranges.

A transaction of ours holds the table as long as it is read, as pg_dump does: a TRUNCATE or a rewriting ALTER TABLE of
somebody else would show an empty table to every older snapshot. Both wait until the copy is done; and each session that
reads looks for itself that nothing of it has happened since the snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from tidemark.databases.postgresql.catalog import columns_of, read_from
from tidemark.databases.postgresql.connection import SESSION, connect
from tidemark.databases.postgresql.names import literal, quoted
from tidemark.databases.postgresql.snapshots import Snapshot, exported_snapshot
from tidemark.errors import BackfillInterrupted, InvalidArgument
from tidemark.model.replication import Column, SourceAddress, TableSchema, TypeKind

__all__ = ["PATIENCE", "PinnedTable", "as_read", "is_native", "jdbc_properties", "jdbc_url", "pinned_table"]

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
SELECT coalesce(max(pg_relation_size(oid) / current_setting('block_size')::bigint), 0)::bigint, count(*),
    transaction_timestamp()
FROM ({parts}) AS parts
"""
_REWRITTEN = "was rewritten or truncated while it was copied"
_HOLD = """DO $tidemark$BEGIN
LOCK TABLE {source} IN ACCESS SHARE MODE;
IF EXISTS (SELECT FROM ({parts}) AS parts WHERE relfilenode IS DISTINCT FROM pg_relation_filenode(oid))
THEN RAISE EXCEPTION 'it {rewritten}'; END IF;
END$tidemark$"""
_IN_URL = {"connect_timeout": "connectTimeout"}


@dataclass(frozen=True)
class PinnedTable:
    """A table just before `snapshot.position`. `source`: its name in FROM. `parts`: 1, or how many partitions it has;
    `pages`: of its largest part.

    `statements`: what a reading session runs first, in the transaction that it reads in.
    """

    snapshot: Snapshot
    taken_at: datetime
    schema: TableSchema
    source: str
    parts: int
    pages: int
    version: int
    statements: tuple[str, ...]

    def ranges(self, partitions: int) -> tuple[str, ...]:
        """Conditions on `at`, the place of a row, that part its rows; the last is open, for what came meanwhile."""
        if self.version < RANGES_SINCE:
            return ("true",)
        count = max(1, min(partitions, self.pages))
        cuts = [self.pages * number // count for number in range(1, count)]
        lower = ["true", *(f"at >= '({cut},0)'::tid" for cut in cuts)]
        upper = [*(f"at < '({cut},0)'::tid" for cut in cuts), "true"]
        return tuple(f"{low} AND {high}" for low, high in zip(lower, upper, strict=True))

    def query(self) -> str:
        """The rows: `c0`, `c1` … in the order of the columns, `at`, and where it lies: `part` and, as 12 hexadecimal
        digits, `place`, which no other row of the part has.
        """
        values = [f"{as_read(column)} AS c{number}" for number, column in enumerate(self.schema.columns)]
        place = "ctid AS at, tableoid::text AS part, encode(tidsend(ctid), 'hex') AS place"
        return f"SELECT {', '.join(values)}, {place} FROM {self.source}"


@contextmanager
def pinned_table(
    address: SourceAddress,
    oid: int,
    *,
    name: str,
    patience: timedelta = PATIENCE,
    numeric_as: str | None = None,
    excluded: Sequence[str] = (),
) -> Iterator[PinnedTable]:
    """The table with that OID, held as it is now while the context lasts. `excluded`: columns that are left out.

    Raises ObjectNotReplicable where it is gone, BackfillInterrupted where it is rewritten at this moment, and what
    `exported_snapshot` and `connect` do. Nothing stays behind in the source, whatever happens.
    """
    import psycopg2

    with exported_snapshot(address, patience=patience) as snapshot, connect(address) as connection:
        pinned = _pinning(snapshot)
        parts = _PARTS.format(oid=oid)
        with connection.cursor() as cursor:
            cursor.execute("; ".join(("BEGIN", *pinned, f"SET lock_timeout = {int(patience.total_seconds() * 1000)}")))
            source = read_from(connection, oid)
            hold = _HOLD.format(source=source, parts=parts, rewritten=_REWRITTEN)
            try:
                cursor.execute(hold)
            except psycopg2.errors.RaiseException as error:
                raise BackfillInterrupted(object=name, problem=f"it {_REWRITTEN}") from error
            cursor.execute(_FACTS.format(parts=parts))
            pages, count, taken_at = cursor.fetchone()
        found = columns_of(connection, oid, numeric_as=numeric_as)
        columns = tuple(column for column in found.columns if column.name not in excluded)
        version = connection.server_version
        yield PinnedTable(snapshot, taken_at, TableSchema(columns), source, count, pages, version, (*pinned, hold))


def is_native(column: Column) -> bool:
    """Whether `as_read` gives the value itself, and not its canonical text."""
    return column.type.kind in _NATIVE


def as_read(column: Column) -> str:
    """The column in a query: its value where every client reads the same, else the canonical text of its type."""
    name, native = quoted(column.name), column.native.lower()
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


def jdbc_properties(address: SourceAddress) -> dict[str, str]:
    """What the driver is told, the password among it."""
    known = {
        _IN_URL.get(name, name): value
        for name, value in address.parameters.items()
        if name.startswith("ssl") or name in _IN_URL
    }
    password = {"password": address.password} if address.password is not None else {}
    return {**known, "user": address.user, **password, "ApplicationName": "tidemark", "tcpKeepAlive": "true"}


def _pinning(snapshot: Snapshot) -> tuple[str, ...]:
    """A policy that would hide rows is an error: such a copy would be no copy."""
    settings = {name: value for name, value in SESSION.items() if name != "synchronous_commit"}
    return (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        f"SET TRANSACTION SNAPSHOT {literal(snapshot.name)}",
        *(f"SET {name} = {literal(value)}" for name, value in settings.items()),
        "SET row_security = off",
    )


def _array(column: Column, name: str, native: str) -> str:
    """JSON of the items' texts, arrays in it as such; PostgreSQL's own functions, which escape as JSON wants it.

    A cast of an item may write it otherwise than the log has it (char, inet, domains over them): the texts of both
    arrays tell. What JSON would write in its own way (composites, domains over numbers) has such a cast.
    """
    item = column.type.item
    if item is not None and item.kind is TypeKind.BYTES:
        return f"""replace(array_to_json({name})::text, '"\\\\x', '"')"""
    as_text = f"array_to_json({name}::text[])::text"
    if _CAST_IS_OUTPUT.fullmatch(native) or (item is not None and item.kind in _NATIVE):
        return as_text
    same = f"{name}::text = {name}::text[]::text"
    return f"CASE WHEN {same} THEN {as_text} ELSE array_to_json({name})::text END"
