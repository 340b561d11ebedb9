"""Reads of `Lake` and of its statements: unread rows of a stream, changes between points, versions at a point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes
from tidemark.changes.driver.views.read import read_view_changes
from tidemark.client.sources import find_source
from tidemark.errors import InvalidArgument
from tidemark.model.streams import BaseWindow, StreamMode
from tidemark.streams.driver.windows import read_window
from tidemark.streams.model.sources import Source, table_source
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.worker.points import offsets_at, offsets_until
from tidemark.streams.worker.sources import look_at_sources, window_from
from tidemark.streams.worker.streams import get_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemark.client.context import ClientContext
    from tidemark.client.points import Point

__all__ = ["changes_between", "unread_rows", "version_at", "windows_between"]


def unread_rows(context: ClientContext, name: str) -> DataFrame:
    """The rows of `Lake.stream`."""
    (head,) = look_at_sources(context.store, (name,), context.tables, UNBOUNDED, to_read=True)
    window = window_from(get_stream(context.store, name), head.ends, context.store.clock())
    return read_window(context.spark, window, context.workspace, context.options)


def changes_between(
    context: ClientContext,
    table: str,
    mode: StreamMode,
    *,
    at: Point | None = None,
    before: Point | None = None,
    end: Point | None = None,
) -> DataFrame:
    """The rows of `Lake.changes`."""
    windows, source = windows_between(context, table, at, before, end)
    if source.view is not None:
        now = context.store.clock()
        workspace, options = context.workspace, context.options
        return read_view_changes(context.spark, source.view, windows, mode, now, workspace, options).rows
    (window,) = windows
    log = context.tables(window.table)
    return read_changes(context.spark, log, plan_changes(log, window.start, window.end, mode), context.workspace)


def windows_between(
    context: ClientContext, table: str, at: Point | None, before: Point | None, end: Point | None
) -> tuple[tuple[BaseWindow, ...], Source]:
    """The source, and between which versions of each of its tables changes are asked for (R110)."""
    if (at is None) == (before is None):
        raise InvalidArgument(argument="at", value=at, problem="give either at or before (R110)")
    source = find_source(context, table)
    start = offsets_at(context.store, source, context.tables, reader="CHANGES", at=at, before=before)
    until = offsets_until(context.store, source, context.tables, end)
    return tuple(BaseWindow(a.table, a.version, b.version) for a, b in zip(start, until, strict=True)), source


def version_at(context: ClientContext, table: str, *, at: Point | None = None, before: Point | None = None) -> int:
    """The number of `Lake.version_of`."""
    if at is not None and before is not None:
        raise InvalidArgument(argument="before", value=before, problem="it contradicts at")
    source, point = table_source(context.tables.reference(table)), at if at is not None else before
    (base,) = offsets_until(context.store, source, context.tables, point, before=before is not None)
    return context.tables(base.table).state(base.version).version
