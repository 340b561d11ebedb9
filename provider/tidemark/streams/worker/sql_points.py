"""Points that SQL names, as versions of a table: from the store and the log alone (R8, R112)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from tidemark.changes.worker.sources import require_tracked_at
from tidemark.control.store import ControlStore
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef
from tidemark.sql.text import compilation_error
from tidemark.streams.planning.stream_sql.statements import PointKind, SqlPoint
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.statement_ids import versions_of_statement
from tidemark.streams.worker.streams import get_stream

__all__ = ["start_version"]


def start_version(
    store: ControlStore,
    source: TableRef,
    point: SqlPoint | None,
    *,
    text: str,
    stream: str,
    tables: Tables,
    keys: Sequence[str] = (),
) -> int:
    """The version just behind the point, or the newest one.

    `text` is the statement, for errors. Raises VersionNotFound (R8f), StreamNotFound (R8b), and SqlCompilationError for
    an unknown statement (R8c). Raises TrackingInterrupted if rows had no ids at it (R8g), and InvalidArgument if it
    lacks one of `keys`.
    """
    log = tables(source)
    if point is None:
        return log.head()
    version = _version(store, log, source, point, text, tables)
    require_tracked_at(log, source.name, version, stream=stream, keys=keys)
    return version


def _version(store: ControlStore, log: DeltaLog, source: TableRef, point: SqlPoint, text: str, tables: Tables) -> int:
    value = point.value
    if isinstance(value, int):
        return value - int(point.before)
    if isinstance(value, datetime | float):
        when = value if isinstance(value, datetime) else store.clock() + timedelta(seconds=value)
        return log.version_at(when - timedelta(microseconds=int(point.before)))
    if point.kind is PointKind.STATEMENT:
        found = versions_of_statement(log, value)
        if found is None:
            raise compilation_error(text, point.span, f"Statement {value} not found")
        return found[0] - 1 if point.before else found[1]
    other = get_stream(store, value)
    if other.source.table_id == source.table_id:
        return other.offset.version - int(point.before)
    return log.version_at(max(tables(base.table).timestamp(base.version) for base in other.bases))
