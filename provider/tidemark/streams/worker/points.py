"""Points in the history of a source's tables, as versions: from the store and the logs alone (R8, R110, R112)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tidemark.changes.worker.sources import require_tracked_at
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import BaseOffset
from tidemark.model.streams import Stream as StoredStream
from tidemark.streams.model.sources import Source
from tidemark.streams.planning.points import Offset, Point, Statement, Stream, Timestamp, Version, as_point, moment_of
from tidemark.streams.worker.opening import Tables
from tidemark.streams.worker.streams import get_stream

__all__ = ["offsets_at", "offsets_now", "offsets_until", "total"]

_FIRST = datetime(1, 1, 2, tzinfo=UTC)  # before it, one moment is as good as the other: no table is so old


def offsets_now(source: Source, tables: Tables) -> tuple[BaseOffset, ...]:
    """The newest version of each table."""
    return tuple(BaseOffset(table, tables(table).head()) for table in source.tables)


def offsets_at(
    store: ControlStore, source: Source, tables: Tables, *, reader: str, at: Point | None, before: Point | None
) -> tuple[BaseOffset, ...]:
    """Each table's version at the point, by default now (R8). That version exists, and has row tracking or the key
    columns. `reader`: the name of the stream that is to start there, for errors.

    Raises InvalidArgument, VersionNotFound (R8f), TrackingInterrupted (R8g), StreamNotFound (R8b).
    """
    if at is not None and before is not None:
        raise InvalidArgument(argument="before", value=before, problem="it contradicts at")
    argument, point = ("at", at) if at is not None else ("before", before)
    offsets = offsets_now(source, tables) if point is None else _offsets(store, source, tables, argument, point)
    for base in offsets:
        if source.view is not None and source.keys:
            tables(base.table).state(base.version)  # all its rows are compared, with or without ids
        else:
            require_tracked_at(tables(base.table), base.table.name, base.version, stream=reader, keys=source.keys)
    return offsets


def offsets_until(
    store: ControlStore, source: Source, tables: Tables, end: Point | None, *, before: bool = False
) -> tuple[BaseOffset, ...]:
    """Each table's version at an END, which includes what happened at it (R110); now if it is left out. Row tracking
    is not asked for.
    """
    if end is None:
        return offsets_now(source, tables)
    return _offsets(store, source, tables, "before" if before else "end", end)


def total(offsets: Sequence[BaseOffset]) -> int:
    """The versions as a stream's offset counts them: their sum."""
    return sum(base.version for base in offsets)


def _offsets(
    store: ControlStore, source: Source, tables: Tables, argument: str, given: Point
) -> tuple[BaseOffset, ...]:
    point, before = as_point(argument, given), argument == "before"
    if isinstance(point, Version) and source.view is not None:
        problem = "the tables of a view have a version each; give a time, an offset from now, or a stream"
        raise InvalidArgument(argument=argument, value=point.version, problem=problem)
    if isinstance(point, Stream):
        return _offsets_of_stream(source, tables, get_stream(store, point.name), before=before)
    now = store.clock()
    return tuple(BaseOffset(table, _version(tables(table), point, now=now, before=before)) for table in source.tables)


def _offsets_of_stream(source: Source, tables: Tables, other: StoredStream, *, before: bool) -> tuple[BaseOffset, ...]:
    """A stream on another source means its point in time (R8h)."""
    if other.source.table_id == source.ref.table_id:
        return tuple(BaseOffset(base.table, base.version - int(before)) for base in other.bases)
    moment = max(tables(base.table).timestamp(base.version) for base in other.bases)
    return tuple(BaseOffset(table, tables(table).version_at(moment)) for table in source.tables)


def _version(log: DeltaLog, point: Version | Timestamp | Offset | Statement, *, now: datetime, before: bool) -> int:
    """The version of the point: `at` includes a commit at that moment, `before` does not (R8, R112).

    Raises InvalidArgument, VersionNotFound (R8f).
    """
    if isinstance(point, Version):
        return point.version - 1 if before else point.version
    if isinstance(point, Statement):
        first, last = _versions_of(log, point)
        return first - 1 if before else last
    when = moment_of(point, now)
    if before and when > _FIRST:
        when -= timedelta(microseconds=1)
    return log.version_at(when)


def _versions_of(log: DeltaLog, statement: Statement) -> tuple[int, int]:
    """The first and the last version of the statement. Delta has no query ids, but a commit has a substitute. It is
    `userMetadata`, which `spark.databricks.delta.commitInfo.userMetadata` sets and DESCRIBE HISTORY shows, or `txnId`.
    Delta gives each commit the latter. Raises InvalidArgument.
    """
    found = [
        commit.version
        for commit in log.commits(log.earliest() - 1, log.head())
        if statement.name in (commit.user_metadata, commit.txn_id)
    ]
    if not found:
        problem = f"no commit that {log.uri} still has in its log names this statement"
        raise InvalidArgument(argument="statement", value=statement.name, problem=problem)
    return found[0], found[-1]
