"""A stream's window as rows, for every kind of source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.changes.driver.files import require_files, require_live_files
from tidemark.changes.driver.views.by_key import explain_view_by_key, read_view_by_key
from tidemark.changes.driver.views.catalog import resolve_view, stored_view
from tidemark.changes.driver.views.opening import open_bases
from tidemark.changes.driver.views.plan import plan_view_changes
from tidemark.changes.driver.views.read import (
    FoundRows,
    read_signed_rows,
    read_view_changes,
    read_view_rows,
)
from tidemark.changes.driver.window import plan_window as plan_table_window
from tidemark.changes.driver.window import read_window as read_table_window
from tidemark.changes.driver.window import require_files_of_window as require_files_of_table
from tidemark.changes.planning.sets.plan import explain_pages
from tidemark.changes.planning.views.expand import digest_of
from tidemark.errors import TableNotFound, VersionVacuumed, ViewChanged, ViewError
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode, StreamWindow, WindowKind
from tidemark.streams.driver.external_tables.window import explain_file_window, read_file_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.jobs.workspace import Workspace
    from tidemark.model.views import ViewQuery

__all__ = ["explain_window", "read_query_window", "read_window", "require_files_of_window", "require_same_view"]


def read_window(
    spark: SparkSession,
    window: StreamWindow,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None] | None = None,
) -> DataFrame:
    """The rows that the stream shows of `window`: the columns of its source, then METADATA$ACTION, METADATA$ISUPDATE,
    METADATA$ROW_ID (R27). METADATA$FILENAME follows if they come from files (R65).

    The same window gives the same rows however often it is read, and no commit in between changes them (R20). `say`
    gets the plan in a line. Raises SourceRecreated (R82, R91), ViewChanged (R83), StreamStale (R84),
    TrackingInterrupted (R85), VersionVacuumed, IncompatibleSchemaChange, DataFileChanged.
    """
    with _lost_to(window.stream_name):
        return _read(spark, window, workspace, options, say)


def _read(
    spark: SparkSession,
    window: StreamWindow,
    workspace: Workspace,
    options: Mapping[str, str] | None,
    say: Callable[[str], None] | None,
) -> DataFrame:
    if window.mode is StreamMode.INSERT_ONLY:
        return read_file_window(spark, window, workspace, options, say=say)
    if window.view is None:
        return read_table_window(spark, window, workspace, options, say=say)
    require_same_view(spark, window.view, window.stream_name)
    now, name = _time_of(window), window.stream_name
    if window.kind is WindowKind.INITIAL_ROWS:
        return read_view_rows(spark, window.view, window.bases, now, options, reader=name)
    if window.keys:
        if say is not None:
            say(f"stream {name}, view {window.view.name}: whole, it compares by {', '.join(window.keys)}")
        return read_view_by_key(spark, window.view, window.bases, window.keys, now, options, reader=name)
    return read_view_changes(
        spark, window.view, window.bases, window.mode, now, workspace, options, reader=name, say=say
    ).rows


def read_query_window(
    spark: SparkSession,
    window: StreamWindow,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    signed: bool,
    say: Callable[[str], None] | None = None,
) -> FoundRows:
    """The changes of a query in a window that is not of initial rows, with the same errors as `read_window`. `signed`:
    those for sums (see `read_signed_rows`), of a linear query.
    """
    query, name, now = window.view, window.stream_name, _time_of(window)
    assert query is not None
    with _lost_to(name):
        require_same_view(spark, query, name)
        if signed:
            return read_signed_rows(spark, query, window.bases, now, workspace, options, reader=name, say=say)
        mode = window.mode
        return read_view_changes(spark, query, window.bases, mode, now, workspace, options, reader=name, say=say)


def explain_window(window: StreamWindow, options: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The plan by which `read_window` would read a window of changes, in plain values, without Spark; same errors."""
    with _lost_to(window.stream_name):
        if window.mode is StreamMode.INSERT_ONLY:
            return explain_file_window(window, options)
        if window.view is None:
            return explain_pages(plan_table_window(window, options))
        if window.keys:
            return explain_view_by_key(window.view, window.bases, window.keys, options, reader=window.stream_name)
        return plan_view_changes(window.view, window.bases, window.mode, options, reader=window.stream_name).explain()


def require_files_of_window(window: StreamWindow, options: Mapping[str, str] | None = None) -> None:
    """Nothing, or VersionVacuumed if a file of a Delta table that the window needs is gone by now. It needs no Spark.
    Of a view's window only files that it surely reads count: which others it reads, the rows decide.
    """
    with _lost_to(window.stream_name):
        if window.view is None:
            listed = replace(window, mode=StreamMode.STANDARD) if window.mode is StreamMode.INSERT_ONLY else window
            require_files_of_table(listed, options)
            return
        if window.kind is WindowKind.INITIAL_ROWS:
            for base in window.bases:
                require_live_files(DeltaLog.open(base.table.path, options), base.start)
        if window.kind is WindowKind.CHANGES and not window.keys:
            for opened in open_bases(window.view, window.bases, window.mode, options, window.stream_name):
                require_files(opened.log, opened.plan)


@contextmanager
def _lost_to(stream: str) -> Iterator[None]:
    """Files that are gone are reported with the stream that needs them."""
    try:
        yield
    except VersionVacuumed as gone:
        raise VersionVacuumed(**{**gone.facts, "reader": f"the stream {stream!r}"}) from gone


def require_same_view(spark: SparkSession, view: ViewQuery, stream: str) -> None:
    """The view is still what it was when the stream was made; for a query, the catalogs' views that it reads. Raises
    ViewChanged (R83).
    """
    if view.views is not None:
        for name, digest in view.views.items():
            _require_same_text(spark, name, digest, stream)
        return
    try:
        found = resolve_view(spark, view.name, beyond_snowflake=True)
    except (TableNotFound, ViewError) as error:
        raise ViewChanged(view=view.name, stream=stream) from error
    if found.digest != view.digest:
        raise ViewChanged(view=view.name, stream=stream)


def _require_same_text(spark: SparkSession, name: str, digest: str, stream: str) -> None:
    try:
        found = stored_view(spark, name)
    except (TableNotFound, ViewError) as error:
        raise ViewChanged(view=name, stream=stream) from error
    if digest_of(found) != digest:
        raise ViewChanged(view=name, stream=stream)


def _time_of(window: StreamWindow) -> datetime:
    """The value of the view's current_timestamp() at both ends (R37)."""
    if window.read_at is None:
        raise AssertionError(f"the window of {window.stream_name} on a view has no time of its read")
    return window.read_at
