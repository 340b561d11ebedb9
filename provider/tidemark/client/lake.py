"""The client: streams by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.client.descriptions import StreamDescription, describe
from tidemark.client.points import Point, Stream, version_at
from tidemark.client.surroundings import Surroundings
from tidemark.client.transaction import LakeTransaction
from tidemark.engine.changes.every_change import ROWS_PER_PAGE, plan_pages
from tidemark.engine.changes.plan import plan_changes
from tidemark.engine.changes.rows import read_changes
from tidemark.engine.changes.window import read_window
from tidemark.errors import (
    InvalidArgument,
    NotYetSupported,
    RowTrackingDisabled,
    SourceError,
    SourceRecreated,
    StreamError,
    StreamNotFound,
    StreamOnStream,
    TableNotFound,
    TidemarkError,
    TrackingInterrupted,
)
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.sources import require_stream_source
from tidemark.model.streams import Stream as StoredStream
from tidemark.model.streams import StreamMode, TableRef
from tidemark.model.transactions import TransactionKey
from tidemark.planning.statements import path_name
from tidemark.transactions import streams
from tidemark.transactions.sources import look_at_sources, window_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

__all__ = ["Lake"]

INFORMATION = {"default": StreamMode.STANDARD, "append_only": StreamMode.APPEND_ONLY}


class Lake:
    """What `connect` returns. Stream names are found whatever their case (R12)."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def create_stream(
        self,
        name: str,
        on: str,
        *,
        mode: str = "standard",
        at: Point | None = None,
        before: Point | None = None,
        show_initial_rows: bool = False,
        or_replace: bool = False,
        if_not_exists: bool = False,
        comment: str | None = None,
        enable_row_tracking: bool = False,
    ) -> StreamDescription:
        """A stream on the Delta table `on`, its offset at the current version or at the given point (R1, R8).

        `mode`: standard or append_only (R4). `show_initial_rows`: the rows of the start point come first (R10).
        `enable_row_tracking` turns it on where it is off, by up to three commits, before the offset is taken (R3).
        With `if_not_exists` a second run changes nothing. Raises StreamExists, InvalidArgument, TableNotFound,
        NotADeltaTable, RowTrackingDisabled, UnsupportedTableFeature, StreamOnStream, TrackingInterrupted (R8g),
        VersionNotFound, StreamNotFound, TransactionOpen, NotYetSupported (views).
        """
        if or_replace and if_not_exists:
            raise InvalidArgument(argument="or_replace", value=True, problem="it contradicts if_not_exists (R7)")
        kind = _mode(mode)
        if if_not_exists and (kept := self._find(name)) is not None:
            return self._describe(kept)
        source = self._source(on, enable_row_tracking=enable_row_tracking)
        created = streams.create_stream(
            self._around.store,
            name=name,
            source=source,
            mode=kind,
            at_version=self._start(self._around.tables(source), source, name, at=at, before=before),
            who=self._around.who,
            initial_rows=show_initial_rows,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            comment=comment,
        )
        return self._describe(created)

    def stream(self, name: str) -> DataFrame:
        """The stream's unread rows up to now; reading never advances it (R16).

        Columns: those of the source in its current schema, METADATA$ACTION (INSERT or DELETE), METADATA$ISUPDATE
        (boolean), METADATA$ROW_ID (string), as R27 to R31. Raises StreamNotFound, SourceRecreated, StreamStale,
        TrackingInterrupted, VersionVacuumed, IncompatibleSchemaChange.
        """
        around = self._around
        (head,) = look_at_sources(around.store, (name,), around.tables, None)
        window = window_from(streams.get_stream(around.store, name), head.head, None)
        return read_window(around.spark, window, around.workspace, around.options)

    def transaction(self) -> LakeTransaction:
        """A transaction that starts now: its end of every stream's window is the source's version at this moment."""
        around = self._around
        return LakeTransaction(around, TransactionKey("client", around.store.new_id(), "transaction"))

    def has_data(self, name: str) -> bool:
        """Whether the stream may have unread rows, from the log alone: never a false negative (R120)."""
        around = self._around
        stored = streams.get_stream(around.store, name)
        (head,) = look_at_sources(around.store, (name,), around.tables, None)
        return not head.silent(window_from(stored, head.head, None))

    def show_streams(self) -> tuple[StreamDescription, ...]:
        """Every stream, by name (R130, R131)."""
        return tuple(self._describe(stored) for stored in streams.list_streams(self._around.store))

    def describe_stream(self, name: str) -> StreamDescription:
        """One stream as in `show_streams`. Raises StreamNotFound."""
        return self._describe(streams.get_stream(self._around.store, name))

    def drop_stream(self, name: str, *, if_exists: bool = False) -> None:
        """End the stream; its place is gone for good (R92). Row tracking stays on (R3). Raises TransactionOpen."""
        if if_exists and self._find(name) is None:
            return
        streams.drop_stream(self._around.store, name, self._around.who)

    def advance_stream(self, name: str, to: Point | None = None, *, why: str = "advanced by hand") -> StreamDescription:
        """Skip unread changes up to now or `to`, never back; logged with who and why. Raises InvalidArgument,
        TransactionOpen.
        """
        stored = streams.get_stream(self._around.store, name)
        log = self._around.tables(stored.source)
        version = log.head() if to is None else self._version(log, stored.source, to, before=False)
        _require_version(log, stored.source, name, version)
        moved = streams.advance_stream(self._around.store, name, version, self._around.who, why)
        return self._describe(moved)

    def changes(
        self,
        table: str,
        *,
        information: str = "default",
        at: Point | None = None,
        before: Point | None = None,
        end: Point | None = None,
    ) -> DataFrame:
        """What a stream with that window would show, without an offset (R110–R114).

        `information`: default or append_only. `end`, inclusive, is now where left out. Columns as in `stream`.
        """
        if information not in INFORMATION:
            raise InvalidArgument(argument="information", value=information, problem=f"one of {list(INFORMATION)}")
        log, start, until = self._window(table, at, before, end)
        plan = plan_changes(log, start, until, INFORMATION[information])
        return read_changes(self._around.spark, log, plan, self._around.workspace)

    def every_change(
        self,
        table: str,
        *,
        at: Point | None = None,
        before: Point | None = None,
        end: Point | None = None,
        rows_per_page: int = ROWS_PER_PAGE,
    ) -> Iterator[DataFrame]:
        """Each change that each commit made, not only the net: pages of whole commits, in their order, to be read one
        after the other.

        A page reads `rows_per_page` rows at most, or one commit. Columns as in `stream`, then METADATA$COMMIT_VERSION
        (bigint) and METADATA$COMMIT_TIMESTAMP (timestamp). `at`, `before`, `end` as in `changes`.
        """
        log, start, until = self._window(table, at, before, end)
        for page in plan_pages(log, start, until, rows_per_page=rows_per_page):
            yield read_changes(self._around.spark, log, page, self._around.workspace)

    def clone_stream(self, name: str, clone: str, *, comment: str | None = None) -> StreamDescription:
        """Another stream with the definition and the place of `name`, from now on independent of it (R11)."""
        stored = streams.get_stream(self._around.store, name)
        cloned = streams.create_stream(
            self._around.store,
            name=clone,
            source=stored.source,
            mode=stored.mode,
            at_version=stored.offset.version,
            who=self._around.who,
            initial_rows=stored.initial_rows_pending,
            comment=stored.comment if comment is None else comment,
        )
        return self._describe(cloned)

    def sql(self, text: str) -> DataFrame:
        """Not yet: the SQL of the source systems."""
        raise NotYetSupported(
            feature=f"lake.sql ({' '.join(text.split()[:2])} …)",
            instead="Use create_stream, transaction and the other methods.",
        )

    def close(self) -> None:
        """Remove what this client keeps in work; DataFrames of its streams cannot be read any more."""
        self._around.workspace.close()
        self._around.store.close()

    def _find(self, name: str) -> StoredStream | None:
        try:
            return streams.get_stream(self._around.store, name)
        except StreamNotFound:
            return None

    def _source(self, on: str, *, enable_row_tracking: bool) -> TableRef:
        """The table to read, with row tracking on and only features that can be read."""
        try:
            source = self._around.tables.reference(on)
        except TableNotFound as error:
            stream = self._find(on)
            if stream is None:
                raise
            raise StreamOnStream(source=stream.name, table=stream.source.name) from error
        try:
            require_stream_source(self._around.tables(source), source.name)
        except RowTrackingDisabled:
            if not enable_row_tracking:
                raise
            table = path_name(source.path)
            self._around.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
            require_stream_source(self._around.tables(source), source.name)
        return source

    def _window(
        self, table: str, at: Point | None, before: Point | None, end: Point | None
    ) -> tuple[DeltaLog, int, int]:
        """The log, and the versions between which changes are asked for (R110)."""
        if (at is None) == (before is None):
            raise InvalidArgument(argument="at", value=at, problem="give either at or before (R110)")
        source = self._source(table, enable_row_tracking=False)
        log = self._around.tables(source)
        start = self._start(log, source, "CHANGES", at=at, before=before)
        return log, start, log.head() if end is None else self._version(log, source, end, before=False)

    def _start(self, log: DeltaLog, source: TableRef, name: str, *, at: Point | None, before: Point | None) -> int:
        if at is not None and before is not None:
            raise InvalidArgument(argument="before", value=before, problem="it contradicts at")
        point = at if at is not None else before
        if point is None:
            return log.head()
        version = self._version(log, source, point, before=before is not None)
        _require_version(log, source, name, version)
        return version

    def _version(self, log: DeltaLog, source: TableRef, point: Point, *, before: bool) -> int:
        if not isinstance(point, Stream):
            return version_at(log, point, now=self._around.store.clock(), before=before)
        other = streams.get_stream(self._around.store, point.name)
        if other.source.table_id == source.table_id:
            return other.offset.version - int(before)
        moment = self._around.tables(other.source).timestamp(other.offset.version)
        return log.version_at(moment)

    def _describe(self, stored: StoredStream) -> StreamDescription:
        log: DeltaLog | None = None
        reason: str | None = None
        try:
            log = self._around.tables(stored.source)
            if log.state().table_id != stored.source.table_id:
                log, reason = None, str(_recreated(stored))
            else:
                look_at_sources(self._around.store, (stored.name,), self._around.tables, None)
        except (SourceError, StreamError) as error:
            reason = str(error)
        return describe(stored, log, now=self._around.store.clock(), invalid_reason=reason)


def _mode(mode: str) -> StreamMode:
    try:
        kind = StreamMode(mode.lower())
    except ValueError as error:
        raise InvalidArgument(argument="mode", value=mode, problem="standard or append_only") from error
    if kind is StreamMode.INSERT_ONLY:
        raise NotYetSupported(feature="mode='insert_only' (streams on files)", instead="Use append_only on a table.")
    return kind


def _require_version(log: DeltaLog, source: TableRef, name: str, version: int) -> None:
    """The version is there and row tracking was on at it (R8f, R8g)."""
    if not log.state(version).row_tracking:
        raise TrackingInterrupted(
            table=source.name, stream=name, problem=f"row tracking was not on yet at version {version}"
        )


def _recreated(stored: StoredStream) -> TidemarkError:
    return SourceRecreated(
        table=stored.source.name,
        stream=stored.name,
        path=stored.source.path,
        found="another",
        expected=stored.source.table_id,
    )
