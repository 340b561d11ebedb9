"""The answers of `show_streams` and `describe_stream` (R130)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tidemark.errors import SourceError, SourceRecreated
from tidemark.model.streams import Stream, StreamMode
from tidemark.streams.model.health import StreamHealth
from tidemark.streams.planning.staleness import Staleness
from tidemark.streams.planning.stream_sql.listing import name_parts
from tidemark.streams.worker.background import why_unreadable
from tidemark.streams.worker.sources import Tables
from tidemark.streams.worker.statistics import stream_healths
from tidemark.streams.worker.status import StreamStatus, status_of
from tidemark.streams.worker.streams import list_streams
from tidemark.streams.worker.threads import PATIENCE, for_each_stream

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = ["StreamDescription", "describe", "describe_listed", "look_and_describe", "look_and_describe_all"]

MODES = {mode: mode.name for mode in StreamMode} | {StreamMode.STANDARD: "DEFAULT"}


@dataclass(frozen=True)
class StreamDescription:
    """One stream; the first fifteen attributes are the columns of SHOW STREAMS (R130).

    `name` is the whole name; the parts before its last dots are database_name and schema_name, too (R12).
    `stale_after`: until then what the stream needs is kept; None where the source is gone (R132). `stale` is true after
    it, and where the stream cannot be read any more, for `invalid_reason`. A storage that refuses or does not answer is
    an `invalid_reason` too, and tells nothing of staleness. `offset_version`: up to it, it has been consumed. `keys`:
    columns that identify rows in place of row ids. `origin`: which knew the table's name: path, lake root or catalog.
    `path`: where the table is, "" for a view. `staleness` separates the forecast from the fact: after `stale_after` the
    stream may still be readable. `lost_version` is the first version whose changes cannot be read any more.
    `bytes_kept`: of removed data files that the stream needs. `bytes_past_retention` of them are past the table's own
    retention, so that only streams keep them. `health`: how its consumptions went.
    """

    created_on: datetime
    name: str
    database_name: str | None
    schema_name: str | None
    owner: str | None
    comment: str | None
    table_name: str
    source_type: str
    base_tables: tuple[str, ...]
    type: str
    stale: bool
    mode: str
    stale_after: datetime | None
    invalid_reason: str
    owner_role_type: str | None
    offset_version: int
    initial_rows_pending: bool
    keys: tuple[str, ...] = ()
    origin: str = ""
    path: str = ""
    staleness: Staleness = Staleness.FRESH
    hours_left: float = field(default=0.0, compare=False)  # two looks at the same differ in it
    lost_version: int | None = None
    bytes_kept: int | None = None
    bytes_past_retention: int | None = None
    health: StreamHealth = field(default_factory=StreamHealth)


def look_and_describe(context: ClientContext, stored: Stream) -> StreamDescription:
    """The stream as its tables' logs let it be described now."""
    return look_and_describe_all(context, [stored])[0]


def look_and_describe_all(
    context: ClientContext, stored: Sequence[Stream], *, patience: timedelta = PATIENCE
) -> tuple[StreamDescription, ...]:
    """The streams in this order; their logs are read in a few threads. One whose storage refuses, or has not answered
    within `patience`, says so, and keeps none of the others.
    """
    now = context.store.clock()
    silent = f"its lake has not answered for {patience.total_seconds():.0f} s"
    described = for_each_stream(
        stored,
        lambda stream: _look(context.tables, stream, now),
        failed=lambda stream, error: _without_log(stream, error, now),
        patience=patience,
    )
    counted = stream_healths(context.store, [stream.uid for stream in stored])
    return tuple(
        replace(one or _unknown(stream, silent, now), health=counted.get(stream.uid, StreamHealth()))
        for one, stream in zip(described, stored, strict=True)
    )


def describe_listed(
    context: ClientContext, choose: Callable[[Iterable[str]], Iterable[str]]
) -> tuple[StreamDescription, ...]:
    """The streams that are chosen by their names, in the order of the choice."""
    stored = {stream.name: stream for stream in list_streams(context.store)}
    return look_and_describe_all(context, [stored[name] for name in choose(stored)])


def _look(tables: Tables, stored: Stream, now: datetime) -> StreamDescription:
    status = status_of(stored, tables, now=now)
    reason = None if status.problem is None else str(status.problem)
    return describe(stored, status, now=now, invalid_reason=reason)


def _without_log(stored: Stream, error: BaseException, now: datetime) -> StreamDescription:
    if isinstance(error, SourceError):
        return describe(stored, None, now=now, invalid_reason=str(error))
    return _unknown(stored, why_unreadable(error), now)


def _unknown(stored: Stream, problem: str, now: datetime) -> StreamDescription:
    """Nobody could look: its table may be well."""
    blind = describe(stored, None, now=now, invalid_reason=problem)
    return replace(blind, table_name=stored.source.name, stale=False, staleness=Staleness.FRESH)


def describe(
    stream: Stream, status: StreamStatus | None, *, now: datetime, invalid_reason: str | None
) -> StreamDescription:
    """`status`: None if a table does not exist any more. `invalid_reason`: why the stream cannot be read."""
    seen = None if status is None or isinstance(status.problem, SourceRecreated) else status
    kept = None if seen is None else seen.kept
    database, schema, _ = name_parts(stream.name)
    return StreamDescription(
        created_on=stream.created_at,
        name=stream.name,
        database_name=database,
        schema_name=schema,
        owner=None,
        comment=stream.comment,
        table_name=stream.source.name if seen is not None else "No privilege or table dropped",
        source_type=_source_type(stream),
        base_tables=tuple(base.table.name for base in stream.bases),
        type="DELTA",
        stale=invalid_reason is not None or (seen is not None and seen.stale(now)),
        mode=MODES[stream.mode],
        stale_after=None if seen is None else seen.stale_after,
        invalid_reason=invalid_reason or "N/A",
        owner_role_type=None,
        offset_version=stream.offset.version,
        initial_rows_pending=stream.initial_rows_pending,
        keys=stream.keys,
        origin=stream.source.addressing.words,
        path=stream.source.path,
        staleness=Staleness.STALE if seen is None else seen.staleness(now),
        hours_left=0.0 if seen is None else seen.time_left(now).total_seconds() / 3600,
        lost_version=None if seen is None else seen.lost_version,
        bytes_kept=None if kept is None else kept.bytes,
        bytes_past_retention=None if kept is None else kept.bytes_past_retention,
    )


def _source_type(stream: Stream) -> str:
    if stream.mode is StreamMode.INSERT_ONLY:
        return "External Table"
    return "Table" if stream.view is None else "View"
