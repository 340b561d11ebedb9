"""Streams as they are asked for: found, created or cloned, and moved forward by hand. Operators, the command line, the
client and statements in SQL all create streams here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tidemark.changes.planning.source_keys import require_fitting_mode, require_keys, require_view_keys
from tidemark.changes.planning.source_support import require_readable
from tidemark.changes.worker.sources import require_stream_source
from tidemark.control.store import ControlStore
from tidemark.errors import (
    ExternalTableNotFound,
    InvalidArgument,
    NotADeltaTable,
    StreamExists,
    StreamNotFound,
    StreamOnStream,
    TableNotFound,
)
from tidemark.model.streams import Addressing, BaseOffset, Stream, StreamMode, TableRef
from tidemark.sql.statements import path_name
from tidemark.streams.model.sources import Source, source_of, table_source
from tidemark.streams.planning.names import require_stream_name
from tidemark.streams.planning.points import Point, Version, as_point
from tidemark.streams.worker import streams
from tidemark.streams.worker.following import followed, was_on
from tidemark.streams.worker.opening import Tables
from tidemark.streams.worker.points import offsets_at, total

__all__ = [
    "CreatedStream",
    "IfExists",
    "Sources",
    "StreamRequest",
    "advance_to",
    "clone_stream",
    "create_stream",
    "find_stream",
    "no_stream_of_a_stream",
    "place_of",
    "prepared",
]

log = logging.getLogger(__name__)


class IfExists(StrEnum):
    """The fate of a stream that has the name already."""

    FAIL = "fail"
    KEEP = "keep"  # as it is, whatever it reads
    KEEP_SAME = "keep_same"  # if it reads the same table, in the same mode and by the same keys; else it fails
    REPLACE = "replace"  # its offset is lost

    @classmethod
    def of(cls, *, or_replace: bool, if_not_exists: bool) -> IfExists:
        """As SQL says it. Raises InvalidArgument for both (R7)."""
        if or_replace and if_not_exists:
            raise InvalidArgument(argument="or_replace", value=True, problem="it contradicts if_not_exists (R7)")
        return cls.REPLACE if or_replace else cls.KEEP if if_not_exists else cls.FAIL


@dataclass(frozen=True)
class StreamRequest:
    """A stream as it is asked for. `at`, `before`: where it starts; None for both: at the newest version. `keys`:
    columns that identify a row in place of its row id. `on_view`: a view is meant; `beyond_snowflake`: it may group,
    and join with outer, semi and anti joins.
    """

    name: str
    on: str
    mode: StreamMode = StreamMode.STANDARD
    at: Point | None = None
    before: Point | None = None
    keys: Sequence[str] = ()
    initial_rows: bool = False
    if_exists: IfExists = IfExists.KEEP_SAME
    comment: str | None = None
    on_view: bool = False
    beyond_snowflake: bool = False


@dataclass(frozen=True)
class Sources:
    """How sources are found and opened. `find`: the source of a stream, as it is now. `turn_on`: turns row tracking on
    in a table; logs that are opened afterwards have it. None: a table without it is refused.
    """

    find: Callable[[StreamRequest], Source]
    open: Tables
    turn_on: Callable[[TableRef], None] | None = None


@dataclass(frozen=True)
class CreatedStream:
    """The stream as it is now. `created`: it did not exist before, or was replaced."""

    stream: Stream
    created: bool


def create_stream(store: ControlStore, request: StreamRequest, *, who: str, sources: Sources) -> CreatedStream:
    """The stream on a table, a view or an external table. `request.if_exists` decides about an existing one.

    A second run changes nothing, but with REPLACE, and raises StreamExists with FAIL. Raises StreamExists,
    StreamOnStream, TableNotFound, NotADeltaTable, ExternalTableNotFound, RowTrackingDisabled, UnsupportedTableFeature,
    VersionNotFound, TrackingInterrupted, StreamNotFound, TransactionOpen, InvalidArgument, NotYetSupported.
    """
    require_stream_name(request.name)
    existing = find_stream(store, request.name)
    if existing is not None and request.if_exists is IfExists.FAIL:
        raise StreamExists(stream=existing.name, source=existing.source.name)
    if existing is not None and request.if_exists is IfExists.KEEP:
        return CreatedStream(existing, created=False)
    require_fitting_mode(request.mode, request.keys, on_view=request.on_view)
    if existing is not None and request.if_exists is IfExists.KEEP_SAME:
        _require_same(existing, request, _asked_again(store, existing, request, sources))
        return CreatedStream(existing, created=False)
    source = _found(store, request, sources)
    offsets = offsets_at(store, source, sources.open, reader=request.name, at=request.at, before=request.before)
    try:
        created = _create(
            store,
            source,
            offsets,
            name=request.name,
            mode=request.mode,
            who=who,
            initial_rows=request.initial_rows,
            or_replace=request.if_exists is IfExists.REPLACE,
            if_not_exists=request.if_exists is IfExists.KEEP,
            comment=request.comment,
        )
    except StreamExists:  # another creation was faster
        existing = find_stream(store, request.name)
        if existing is None or request.if_exists is not IfExists.KEEP_SAME:
            raise
        _require_same(existing, request, source)
        return CreatedStream(existing, created=False)
    return CreatedStream(created, created=True)


def clone_stream(
    store: ControlStore,
    name: str,
    clone: str,
    *,
    who: str,
    tables: Tables,
    at: Point | None = None,
    before: Point | None = None,
    or_replace: bool = False,
    comment: str | None = None,
) -> Stream:
    """Another stream with the definition and the offset of `name`, from now on independent of it (R11).

    With a point its offset is that point instead. `comment`: None for that of `name`.

    Raises StreamNotFound, StreamExists, TransactionOpen, and what `offsets_at` raises for a point.
    """
    original = followed(store, name, tables)
    source, offsets = source_of(original), original.bases
    if at is not None or before is not None:
        offsets = offsets_at(store, source, tables, reader=clone, at=at, before=before)
    return _create(
        store,
        source,
        offsets,
        name=clone,
        mode=original.mode,
        who=who,
        initial_rows=original.initial_rows_pending,
        or_replace=or_replace,
        comment=original.comment if comment is None else comment,
    )


def advance_to(
    store: ControlStore, name: str, to: Point | None, *, who: str, why: str, tables: Tables
) -> tuple[Stream, Stream]:
    """Pass over unread changes up to a point; None: up to now. The stream before and after it. A second run to the same
    point moves nothing.

    Raises StreamNotFound, InvalidArgument for a version of a view and for a step back, VersionNotFound,
    TrackingInterrupted, TransactionOpen.
    """
    before, offsets = place_of(store, name, to, tables=tables)
    bases = offsets if before.view is not None else ()
    return before, streams.advance_stream(store, name, total(offsets), who=who, why=why, bases=bases)


def place_of(
    store: ControlStore, name: str, to: Point | None, *, tables: Tables
) -> tuple[Stream, tuple[BaseOffset, ...]]:
    """The stream, after it has followed its table, and the place of that point in each of its tables. Raises as
    `advance_to`, but no TransactionOpen.
    """
    before, point = followed(store, name, tables), None if to is None else as_point("to", to)
    if before.view is not None and isinstance(point, Version):
        problem = f"{before.name} reads a view, and each of its tables counts versions of its own: give a time"
        raise InvalidArgument(argument="to", value=point.version, problem=problem)
    return before, tuple(offsets_at(store, source_of(before), tables, reader=before.name, at=point, before=None))


def find_stream(store: ControlStore, name: str) -> Stream | None:
    """The stream of that name, in any case; None if there is none."""
    try:
        return streams.get_stream(store, name)
    except StreamNotFound:
        return None


@contextmanager
def no_stream_of_a_stream(store: ControlStore, name: str) -> Iterator[None]:
    """Raises StreamOnStream if the block does not find a table of that name, and a stream has it."""
    try:
        yield
    except (TableNotFound, NotADeltaTable, ExternalTableNotFound) as error:
        stream = find_stream(store, name)
        if stream is None:
            raise
        raise StreamOnStream(source=stream.name, table=stream.source.name) from error


def prepared(
    source: Source, tables: Tables, *, keys: Sequence[str] = (), turn_on: Callable[[TableRef], None] | None = None
) -> Source:
    """The source, if a stream can read each of its tables, by `keys` as table or view spells them. Row tracking is
    turned on if it is off (R3, R79), once all tables can be read. A second run finds it on.

    Raises RowTrackingDisabled, UnsupportedTableFeature, InvalidArgument for invalid keys.
    """
    states = [(table, tables(table).state()) for table in source.tables]
    for table, state in states:
        require_readable(state, _for_spark(table), row_ids=turn_on is None and not keys)
    if keys and source.view is not None:
        return replace(source, keys=require_view_keys(source.view, keys))
    if keys:
        ((table, state),) = states
        return replace(source, keys=require_keys(state.metadata, keys, _for_spark(table)))
    for table, state in states:
        if turn_on is not None and not state.row_tracking:
            turn_on(table)
            require_stream_source(tables(table), _for_spark(table))
    return source


def _found(store: ControlStore, request: StreamRequest, sources: Sources) -> Source:
    """The source, ready to be read."""
    with no_stream_of_a_stream(store, request.on):
        source = sources.find(request)
    require_fitting_mode(request.mode, request.keys, on_view=source.view is not None)
    turn_on = None if request.mode is StreamMode.INSERT_ONLY else sources.turn_on
    return prepared(source, sources.open, keys=request.keys, turn_on=turn_on)


def _asked_again(store: ControlStore, kept: Stream, request: StreamRequest, sources: Sources) -> Source:
    """The source that is asked for, for an existing stream. It is the stream's own, without a job, if the stream knows
    its table from a catalog under that name. It is also the stream's own if that table had the name before a rename.
    """
    name = request.on.strip()
    if kept.view is None and kept.source.addressing is Addressing.CATALOG and kept.source.name == name:
        return source_of(kept)
    try:
        return sources.find(request)
    except (TableNotFound, NotADeltaTable, ExternalTableNotFound) as missing:
        known = kept.view is None and (name == kept.source.name or was_on(store, kept, name))
        if not (known and isinstance(missing, TableNotFound)):
            with no_stream_of_a_stream(store, name):
                raise
        log.warning("The table %s has another name now: %s. Stream %s continues.", name, kept.source.name, kept.name)
        return table_source(followed(store, kept.name, sources.open).source)


def _require_same(kept: Stream, request: StreamRequest, source: Source) -> None:
    """Raises StreamExists."""
    same_keys = [key.lower() for key in request.keys] == [key.lower() for key in kept.keys]
    if kept.source.table_id != source.ref.table_id or kept.mode is not request.mode or not same_keys:
        by_key = f", by {', '.join(kept.keys)}" if kept.keys else ""
        raise StreamExists(stream=kept.name, source=f"{kept.source.name} ({kept.mode.value}{by_key})")


def _create(store: ControlStore, source: Source, offsets: tuple[BaseOffset, ...], **how: Any) -> Stream:
    return streams.create_stream(
        store,
        source=source.ref,
        at_version=total(offsets),
        view=source.view,
        view_bases=offsets if source.view is not None else (),
        keys=source.keys,
        **how,
    )


def _for_spark(table: TableRef) -> str:
    """The table's name in a statement that Spark runs as it is."""
    return table.name if table.addressing is Addressing.CATALOG else path_name(table.path)
