"""The sources of streams and CHANGES (a Delta table, or a view with its base tables), and their versions at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.changes.driver.views.catalog import resolve_view
from tidemark.changes.planning.source_keys import require_keys
from tidemark.changes.worker.sources import require_stream_source, require_tracked_at
from tidemark.client.points import Point, Stream, Version, as_point, version_at
from tidemark.errors import (
    ExternalTableNotFound,
    InvalidArgument,
    NotADeltaTable,
    RowTrackingDisabled,
    SourceError,
    StreamNotFound,
    StreamOnStream,
    TableNotFound,
)
from tidemark.lake.external_tables import external_table_ref
from tidemark.model.streams import Addressing, BaseOffset, TableRef
from tidemark.model.streams import Stream as StoredStream
from tidemark.model.views import ViewQuery
from tidemark.sql.statements import path_name
from tidemark.streams.worker.streams import get_stream

if TYPE_CHECKING:
    from tidemark.client.context import ClientContext

__all__ = [
    "Source",
    "find_files",
    "find_source",
    "is_external_table",
    "offsets_at",
    "offsets_now",
    "offsets_until",
    "source_of",
    "total",
]

ONLY_OF_FILES = "streams of this mode can only be created on external tables; a Delta table has append_only (R5)"
ONLY_INSERT_ONLY = "streams on external tables must set mode='insert_only' (R6); CHANGES does not read them (R113)"


@dataclass(frozen=True)
class Source:
    """The source under a name: one table, or a view. A view's `ref` has no path, and its text's digest for an id."""

    ref: TableRef
    tables: tuple[TableRef, ...]
    view: ViewQuery | None = None
    keys: tuple[str, ...] = ()  # where rows are told apart by these columns


def find_source(
    context: ClientContext,
    name: str,
    *,
    enable_row_tracking: bool = False,
    beyond_snowflake: bool = False,
    keys: Sequence[str] = (),
) -> Source:
    """The table or view of that name, row tracking on in each table, and only features that can be read.

    `enable_row_tracking` turns it on where it is off (R3, R79). A table that is compared by `keys` needs none, but the
    columns (InvalidArgument); a view has no keys. Raises TableNotFound, NotADeltaTable, StreamOnStream,
    RowTrackingDisabled, UnsupportedTableFeature, ViewRefused (R70), ViewTextMissing, ViewNotUnderstood.
    """
    if context.tables.is_view(name):
        view = resolve_view(context.spark, name, beyond_snowflake=beyond_snowflake)
        ref = TableRef(name=name, path="", table_id=view.digest, addressing=Addressing.CATALOG)
        return Source(ref, tuple(_ready(context, base, enable_row_tracking) for base in view.bases), view)
    try:
        table = _ready(context, name, enable_row_tracking, keys)
    except (TableNotFound, NotADeltaTable) as error:
        if is_external_table(context, name):
            raise InvalidArgument(argument="on", value=name, problem=ONLY_INSERT_ONLY) from error
        try:
            stream = get_stream(context.store, name)
        except StreamNotFound:
            raise error from None
        raise StreamOnStream(source=stream.name, table=stream.source.name) from error
    return Source(table, (table,), keys=require_keys(context.tables(table).state().metadata, keys, name))


def find_files(context: ClientContext, name: str) -> Source:
    """The external table of that name (R5). Raises ExternalTableNotFound, InvalidArgument where it is a Delta table."""
    try:
        table = external_table_ref(context.paths.workspace, name, context.options)
    except ExternalTableNotFound:
        if is_table(context, name):
            raise InvalidArgument(argument="mode", value="insert_only", problem=ONLY_OF_FILES) from None
        raise
    return Source(table, (table,))


def is_external_table(context: ClientContext, name: str) -> bool:
    """Whether files were made known under that name."""
    try:
        external_table_ref(context.paths.workspace, name, context.options)
    except ExternalTableNotFound:
        return False
    return True


def is_table(context: ClientContext, name: str) -> bool:
    """Whether the name leads to a Delta table."""
    try:
        context.tables.reference(name)
    except SourceError:
        return False
    return True


def source_of(stream: StoredStream) -> Source:
    """The source of a stream."""
    return Source(stream.source, tuple(base.table for base in stream.bases), stream.view, stream.keys)


def offsets_now(context: ClientContext, source: Source) -> tuple[BaseOffset, ...]:
    """The newest version of each table."""
    return tuple(BaseOffset(table, context.tables(table).head()) for table in source.tables)


def offsets_at(
    context: ClientContext, source: Source, reader: str, *, at: Point | None, before: Point | None
) -> tuple[BaseOffset, ...]:
    """Each table's version at the point, by default now (R8). That version exists, and has row tracking or the key
    columns.

    Raises InvalidArgument, VersionNotFound (R8f), TrackingInterrupted (R8g), StreamNotFound (R8b).
    """
    if at is not None and before is not None:
        raise InvalidArgument(argument="before", value=before, problem="it contradicts at")
    argument, point = ("at", at) if at is not None else ("before", before)
    offsets = offsets_now(context, source) if point is None else _offsets(context, source, argument, point)
    for base in offsets:
        require_tracked_at(context.tables(base.table), base.table.name, base.version, stream=reader, keys=source.keys)
    return offsets


def offsets_until(
    context: ClientContext, source: Source, end: Point | None, *, before: bool = False
) -> tuple[BaseOffset, ...]:
    """Each table's version at an END, which includes what happened at it (R110); now where it is left out. Row tracking
    is not asked for.
    """
    if end is None:
        return offsets_now(context, source)
    return _offsets(context, source, "before" if before else "end", end)


def _offsets(context: ClientContext, source: Source, argument: str, given: Point) -> tuple[BaseOffset, ...]:
    point, before = as_point(argument, given), argument == "before"
    if isinstance(point, Version) and source.view is not None:
        problem = "the tables of a view have a version each; give a time, an offset from now, or a stream"
        raise InvalidArgument(argument=argument, value=point.version, problem=problem)
    if isinstance(point, Stream):
        return _offsets_of_stream(context, source, get_stream(context.store, point.name), before=before)
    now = context.store.clock()
    return tuple(
        BaseOffset(table, version_at(context.tables(table), point, now=now, before=before)) for table in source.tables
    )


def _offsets_of_stream(
    context: ClientContext, source: Source, other: StoredStream, *, before: bool
) -> tuple[BaseOffset, ...]:
    """A stream on another source means its point in time (R8h)."""
    if other.source.table_id == source.ref.table_id:
        return tuple(BaseOffset(base.table, base.version - int(before)) for base in other.bases)
    moment = max(context.tables(base.table).timestamp(base.version) for base in other.bases)
    return tuple(BaseOffset(table, context.tables(table).version_at(moment)) for table in source.tables)


def _ready(context: ClientContext, name: str, enable_row_tracking: bool, keys: Sequence[str] = ()) -> TableRef:
    table = context.tables.reference(name)
    try:
        require_stream_source(context.tables(table), table.name, keys)
    except RowTrackingDisabled:
        if not enable_row_tracking:
            raise
        context.spark.sql(f"ALTER TABLE {path_name(table.path)} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
        require_stream_source(context.tables(table), table.name)
    return table


def total(offsets: Sequence[BaseOffset]) -> int:
    """The versions as a stream's offset counts them: their sum."""
    return sum(base.version for base in offsets)
