"""The versions that wait behind a stream, and the time at which its offset was committed: from the logs alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.streams.planning.backlog import change_records, operation_of
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.worker.opening import wherever
from tidemark.streams.worker.sources import Tables, look_at_sources, open_table
from tidemark.streams.worker.streams import get_stream

__all__ = ["WaitingVersion", "stream_backlog", "stream_table_timestamp"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class WaitingVersion:
    """A version between the offset and now (R125). `change_records` is an estimate; an update counts as two."""

    table: str
    version: int
    timestamp: datetime
    change_records: int
    operation: str


def stream_backlog(store: ControlStore, name: str, *, tables: Tables = open_table) -> tuple[WaitingVersion, ...]:
    """Each version behind the offset, of a view's stream for each of its tables, in the order of versions.

    Raises StreamNotFound, and what `begin` raises for the stream's source.
    """
    (head,) = look_at_sources(store, [name], tables, UNBOUNDED)
    stream = get_stream(store, name)
    return tuple(
        WaitingVersion(
            table=base.table.name,
            version=commit.version,
            timestamp=commit.timestamp,
            change_records=change_records(commit),
            operation=operation_of(commit),
        )
        for base, end in zip(stream.bases, head.ends, strict=True)
        for commit in tables(base.table).commits(base.version, max(base.version, end), listed=True)
    )


def stream_table_timestamp(store: ControlStore, name: str, *, tables: Tables = open_table) -> int:
    """When the version at the offset was committed, in nanoseconds since 1970 (R124).

    Raises StreamNotFound, InvalidArgument for a stream on a view, and VersionNotFound or LogIncomplete where the log
    no longer tells.
    """
    stream = get_stream(store, name)
    if stream.view is not None:
        problem = "it reads a view, whose tables have a time each; the backlog shows them"
        raise InvalidArgument(argument="name", value=name, problem=problem)
    time = wherever(tables)(stream.source).timestamp(stream.offset.version)
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000
