"""The histories of replications and of their tables: captures, moves, errors, backfills and applies."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.control.object_histories import (
    AT,
    Chart,
    Field,
    HistoryPart,
    Point,
    Portion,
    Shape,
    Unit,
    lag_at,
    newest_rows,
    seconds_between,
)
from tidemark.control.samples import sampled
from tidemark.replication.store.object_writes import WriteKind, WriteState
from tidemark.replication.store.schema import object_writes, replicated_objects, replication_errors, replication_moves

__all__ = ["REPLICATED_TABLE_HISTORY", "REPLICATION_HISTORY"]

_write, _move, _error, _object = object_writes.c, replication_moves.c, replication_errors.c, replicated_objects.c
_RUN = Field("run", "Run", Unit.RUN)
_SECONDS = Field("seconds", "Seconds", Unit.SECONDS)


def _captures(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    return sampled(connection, "replication", uid, portion)


def _moves(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    query = (
        sa.select(replication_moves, _object.schema_name, _object.table_name)
        .select_from(replication_moves.outerjoin(replicated_objects, _object.uid == _move.object_uid))
        .where(_move.replication_uid == uid)
    )
    return [_moved(row) for row in newest_rows(connection, query, (_move.id,), portion)]


def _moved(row: sa.RowMapping) -> Point:
    values = {
        "at": row["moved_at"],
        "object": _name(row),
        "act": row["act"],
        "before": row["from_state"],
        "after": row["to_state"],
        "why": row["why"],
        "by": row["run"] or row["who"],
    }
    of = None if row["object_uid"] is None else ("replicated_table", row["object_uid"])
    return Point((row["id"],), values, of)


def _errors(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    """The newest errors first. An error that is seen again is the newest again."""
    query = (
        sa.select(replication_errors, _object.schema_name, _object.table_name)
        .select_from(replication_errors.outerjoin(replicated_objects, _object.uid == _error.object_uid))
        .where(_error.replication_uid == uid)
    )
    rows = newest_rows(connection, query, (_error.last_seen_at, _error.id), portion)
    return [Point((row["last_seen_at"], row["id"]), _met(row)) for row in rows]


def _met(row: sa.RowMapping) -> dict[str, Any]:
    return {
        "at": row["last_seen_at"],
        "first_seen": row["first_seen_at"],
        "object": _name(row),
        "reason": row["reason"],
        "count": row["occurrences"],
        "error": row["message"],
        "run": row["run"],
    }


def _backfills(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    """Of all tables of the replication, by the time when they began."""
    query = (
        sa.select(*_COLUMNS, _object.schema_name, _object.table_name, _object.progress)
        .join(replicated_objects, _object.uid == _write.object_uid)
        .where(_write.kind == WriteKind.BACKFILL.value, _object.replication_uid == uid)
    )
    order = (_write.opened_at, _write.object_uid, _write.number)
    return [
        Point(tuple(row[column.name] for column in order), _copied(row))
        for row in newest_rows(connection, query, order, portion)
    ]


def _writes(connection: sa.Connection, uid: str, portion: Portion) -> list[Point]:
    query = (
        sa.select(*_COLUMNS, _object.progress)
        .join(replicated_objects, _object.uid == _write.object_uid)
        .where(_write.object_uid == uid)
    )
    return [Point((row["number"],), _written(row)) for row in newest_rows(connection, query, (_write.number,), portion)]


def _copied(row: sa.RowMapping) -> dict[str, Any]:
    found = {"object": _name(row), **_written(row)}
    return {field.name: found[field.name] for field in _BACKFILLS.fields}


def _written(row: sa.RowMapping) -> dict[str, Any]:
    """A backfill that is open has the rows of its progress."""
    report = json.loads(row["report"]) if row["report"] else {}
    closed: datetime | None = row["closed_at"]
    progress = json.loads(row["progress"]) if row["progress"] else {}
    copies, open_ = row["kind"] == WriteKind.BACKFILL.value, row["state"] == WriteState.OPEN.value
    return {
        "at": closed or row["opened_at"],
        "kind": row["kind"],
        "state": row["state"],
        "events": report.get("events"),
        "rows": _rows(report, progress if copies and open_ else {}),
        "expected": progress.get("expected") or None if copies and open_ else None,
        "seconds": seconds_between(row["opened_at"], closed),
        "lag_seconds": lag_at(closed, row["as_of"]),
        "run": row["run"],
    }


def _rows(report: dict[str, Any], progress: dict[str, Any]) -> int | None:
    """Of a backfill all of its copy, of an apply those that it inserted, updated or deleted."""
    told = report.get("rows", progress.get("done"))
    return sum(told.values()) if isinstance(told, dict) else told


def _name(row: sa.RowMapping) -> str | None:
    return None if row["table_name"] is None else f"{row['schema_name']}.{row['table_name']}"


_COLUMNS = (
    _write.object_uid,
    _write.number,
    _write.kind,
    _write.state,
    _write.as_of,
    _write.run,
    _write.opened_at,
    _write.closed_at,
    _write.report,
)
_STATE = Field("state", "State", Unit.TEXT)
_ROWS = Field("rows", "Rows", Unit.ROWS)
_EXPECTED = Field("expected", "Rows expected", Unit.ROWS)
_OBJECT = Field("object", "Table", Unit.TEXT)

_CAPTURES = HistoryPart(
    "captures",
    "Captures that brought events, the newest first",
    (
        AT,
        _RUN,
        Field("transactions", "Transactions", Unit.NUMBER),
        Field("events", "Events", Unit.NUMBER),
        Field("events_per_second", "Events per second", Unit.NUMBER),
        _SECONDS,
        Field("lag_seconds", "Lag until then", Unit.SECONDS),
        Field("lag_bytes", "Log behind it", Unit.BYTES),
    ),
    (
        Chart(
            "lag",
            "Lag of the capture",
            "The age of the captured state just before each capture ended.",
            ("lag_seconds",),
        ),
        Chart("lag_bytes", "Log behind the capture", "The bytes of the source's log behind it.", ("lag_bytes",)),
        Chart("events", "Events per second", "The speed of each capture.", ("events_per_second",), Shape.BARS),
    ),
    (int,),
    _captures,
)
_MOVES = HistoryPart(
    "moves",
    "Moves of the replication and its tables, the newest first",
    (
        AT,
        _OBJECT,
        Field("act", "Act", Unit.TEXT),
        Field("before", "From", Unit.TEXT),
        Field("after", "To", Unit.TEXT),
        Field("why", "Why", Unit.TEXT, owned=True),
        Field("by", "Who", Unit.RUN, owned=True),
    ),
    (),
    (int,),
    _moves,
)
_ERRORS = HistoryPart(
    "errors",
    "Errors of the replication and its tables, the last seen first",
    (
        AT,
        Field("first_seen", "First seen", Unit.TIME),
        _OBJECT,
        Field("reason", "Error", Unit.TEXT),
        Field("count", "Times", Unit.NUMBER),
        Field("error", "Message", Unit.TEXT, private=True),
        _RUN,
    ),
    (),
    (datetime, int),
    _errors,
)
_BACKFILLS = HistoryPart(
    "backfills",
    "Backfills of its tables, the newest first",
    (AT, _OBJECT, _STATE, _ROWS, _EXPECTED, _SECONDS, _RUN),
    (
        Chart("rows", "Rows of backfills", "The rows that each backfill has copied.", ("rows", "expected"), Shape.BARS),
        Chart("seconds", "Seconds of backfills", "How long each backfill took.", ("seconds",), Shape.BARS),
    ),
    (datetime, str, int),
    _backfills,
)
_WRITES = HistoryPart(
    "writes",
    "Applies and backfills, the newest first",
    (
        AT,
        Field("kind", "Kind", Unit.TEXT),
        _STATE,
        Field("events", "Events", Unit.NUMBER),
        _ROWS,
        _EXPECTED,
        _SECONDS,
        Field("lag_seconds", "Lag at its end", Unit.SECONDS),
        _RUN,
    ),
    (
        Chart("lag", "Lag of the target", "The age of the source's state that the target showed.", ("lag_seconds",)),
        Chart("rows", "Rows of writes", "The rows that each write changed or copied.", ("rows",), Shape.BARS),
        Chart("seconds", "Seconds of writes", "How long each write took.", ("seconds",), Shape.BARS),
    ),
    (int,),
    _writes,
)

REPLICATION_HISTORY = (_CAPTURES, _BACKFILLS, _MOVES, _ERRORS)
REPLICATED_TABLE_HISTORY = (_WRITES,)
