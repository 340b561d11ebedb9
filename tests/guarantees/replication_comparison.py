"""Whether a target is what its source is, row by row, and whether events are what happened; by canonical values."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tests.guarantees.replication_tables import SourceTable, quoted
from tests.guarantees.replication_values import canonical, is_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Rows", "differences", "event_rows", "history_of", "source_rows", "target_rows", "told_of"]

Rows = Counter[tuple[Any, ...]]
_TIMES = {"timestamp": "YYYY-MM-DD HH24:MI:SS.US", "timestamptz": "YYYY-MM-DD HH24:MI:SS.US"}
_AS_TIMES = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_SHOWN = 4


def source_rows(connection: Any, tables: Iterable[SourceTable]) -> dict[str, Rows]:
    """All tables as of one moment, by name. `connection` is in autocommit."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SET LOCAL timezone = 'UTC'; SET LOCAL intervalstyle = 'postgres'")
        for table in tables:
            columns = ", ".join(_read(name, native) for name, native in table.columns.items())
            cursor.execute(f"SELECT {columns} FROM {table.sql}".replace("%%", "%"))
            found[table.name] = _counted(table, cursor.fetchall())
        cursor.execute("COMMIT")
    return found


def _read(name: str, native: str) -> str:
    """A column as psycopg2 gives it without loss: what a target has as text by the type's own output."""
    column = quoted(name)
    shape = _TIMES.get(native.removesuffix("[]"))
    if native.endswith("[]") and (shape or is_text(native)):
        item = f"to_char(i, '{shape}')" if shape else "i::text"
        items = f"ARRAY(SELECT {item} FROM unnest({column}) WITH ORDINALITY AS u(i, n) ORDER BY n)"
        return f"CASE WHEN {column} IS NOT NULL THEN {items} END"
    if is_text(native):
        return f"CASE WHEN {column} IS DISTINCT FROM NULL THEN concat({column}) END"
    return f"to_char({column}, '{shape}')" if shape else column


def target_rows(target: DataFrame, table: SourceTable) -> Rows:
    """The columns that the source has now; what it has no more may be there as it was."""
    columns = [_written(F.col(_backticked(name)), native) for name, native in table.columns.items()]
    return _counted(table, [tuple(row) for row in target.select(*columns).collect()])


def _written(column: Column, native: str) -> Column:
    if native.removesuffix("[]") not in _TIMES:
        return column
    if native.endswith("[]"):
        return F.transform(column, lambda one: F.date_format(one.cast("timestamp"), _AS_TIMES))
    return F.date_format(column.cast("timestamp"), _AS_TIMES)


def _backticked(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _counted(table: SourceTable, rows: Iterable[Sequence[Any]]) -> Rows:
    natives = tuple(table.columns.values())
    return Counter(tuple(canonical(native, value) for native, value in zip(natives, row, strict=True)) for row in rows)


def differences(table: SourceTable, source: Rows, target: Rows) -> str | None:
    """None where both are the same; else some rows of each side that the other lacks, by column."""
    lacking, more = source - target, target - source
    if not lacking and not more:
        return None
    told = [f"{table.name}: the target lacks {lacking.total()} rows of {source.total()} and has {more.total()} others"]
    for title, rows in (("source", lacking), ("target", more)):
        ordered = sorted(rows, key=lambda row: [str(value) for value in _key(table, row)])
        told += [f"  {title}: {_told(table, row)}" for row in ordered[:_SHOWN]]
    pairs = {_key(table, row): row for row in lacking} if table.key else {}
    for row in more:
        if (other := pairs.get(_key(table, row))) is not None:
            columns = [name for name, a, b in zip(table.columns, other, row, strict=True) if a != b]
            told.append(f"  key {_key(table, row)} differs in {columns}")
    return "\n".join(told[: 3 * _SHOWN])


def _key(table: SourceTable, row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in zip(table.columns, row, strict=True) if name in table.key)


def _told(table: SourceTable, row: Sequence[Any]) -> str:
    shown = {name: value for name, value in zip(table.columns, row, strict=True)}
    return ", ".join(f"{name}={str(value)[:40]!r}" for name, value in list(shown.items())[:12])


Told = tuple[str, tuple[Any, ...] | None]
"""A change and the row that it left, or for a DELETE the row that it took, as texts; None for a TRUNCATE."""


def history_of(connection: Any, table: SourceTable) -> dict[int, list[Told]]:
    """What the trigger on a table has kept of every transaction that was committed, in order; by transaction.

    An update is the row that was and the row that is, as a table without a key has it in the event log.
    """
    found: dict[int, list[Told]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute("SELECT tx, change, old::text, new::text FROM shop.history ORDER BY number")
        for tx, change, old, new in cursor.fetchall():
            halves = [("UPDATE-DELETE", old), ("UPDATE-INSERT", new)] if change == "UPDATE" else [(change, new or old)]
            for half, row in halves:
                found[tx].append((half, _texts(table, None if row is None else json.loads(row))))
    return dict(found)


def event_rows(events: DataFrame, table: SourceTable, object_id: str) -> dict[int, list[Told]]:
    """The same, as an event log has it."""
    wanted = events.where((F.col("object_id") == object_id) & ~F.col("change").isin("SCHEMA"))
    found: dict[int, list[Told]] = defaultdict(list)
    rows = wanted.select("source_metadata.tx_id", "change", "payload", "position", "sequence").collect()
    for tx, change, payload, _, _ in sorted(rows, key=lambda row: (row.position, row.sequence)):
        found[int(tx)].append(told_of(table, change, payload))
    return dict(found)


def told_of(table: SourceTable, change: str, payload: str | None) -> Told:
    """An event of the event log, by its change and its payload."""
    row = None if change == "TRUNCATE" or payload is None else json.loads(payload)
    return change, _texts(table, row)


def _texts(table: SourceTable, row: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    return None if row is None else tuple(None if row[name] is None else str(row[name]) for name in table.columns)
