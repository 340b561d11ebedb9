"""The base tables of a view, opened for a read of a window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.views.bases import Base, BaseRows
from tidemark.changes.driver.views.file_bases import FileBase
from tidemark.errors import InvalidArgument, LogIncomplete, SourceRecreated, StreamStale, VersionNotFound
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.external_tables import EXTERNAL_TABLE_PROPERTY
from tidemark.model.streams import BaseWindow, StreamMode
from tidemark.model.views import ViewQuery

__all__ = ["open_bases", "open_rows"]


def open_bases(
    query: ViewQuery,
    windows: Sequence[BaseWindow],
    mode: StreamMode,
    options: Mapping[str, str] | None,
    reader: str,
) -> tuple[Base, ...]:
    """The base tables of `query` with their windows and plans, in the order of `query.bases`. No data is read yet.

    Raises SourceRecreated (R83), StreamStale (R84), TrackingInterrupted, IncompatibleSchemaChange, VersionVacuumed.
    """
    _require_one_each(query, windows)
    return tuple(_opened(window, mode, options, reader) for window in windows)


def open_rows(
    query: ViewQuery, windows: Sequence[BaseWindow], options: Mapping[str, str] | None, reader: str
) -> tuple[BaseRows, ...]:
    """As `open_bases`, for reads of all rows at both ends without their ids. Raises SourceRecreated, StreamStale."""
    _require_one_each(query, windows)
    found = []
    for window in windows:
        log = _log_of(window, options, reader)
        with _stale_without_history(window, reader):
            log.state(window.start)
            found.append(BaseRows(window, log, log.state(window.end).metadata, row_ids=False))
    return tuple(found)


def _require_one_each(query: ViewQuery, windows: Sequence[BaseWindow]) -> None:
    if len(windows) != len(query.bases):
        problem = f"view {query.name} has {len(query.bases)} base tables"
        raise InvalidArgument(argument="windows", value=[w.table.name for w in windows], problem=problem)


def _opened(window: BaseWindow, mode: StreamMode, options: Mapping[str, str] | None, reader: str) -> Base:
    log = _log_of(window, options, reader)
    with _stale_without_history(window, reader):
        plan = plan_changes(log, window.start, window.end, mode, reader=reader)
        if EXTERNAL_TABLE_PROPERTY in plan.metadata.configuration:
            return FileBase(window, log, plan.metadata, row_ids=False, plan=plan, options=options)
        return Base(window, log, plan.metadata, row_ids=True, plan=plan)


def _log_of(window: BaseWindow, options: Mapping[str, str] | None, reader: str) -> DeltaLog:
    log = DeltaLog.open(window.table.path, options)
    found = log.state().table_id
    if found != window.table.table_id:
        raise SourceRecreated(
            table=window.table.name, stream=reader, path=log.uri, found=found, expected=window.table.table_id
        )
    return log


@contextmanager
def _stale_without_history(window: BaseWindow, reader: str) -> Iterator[None]:
    try:
        yield
    except (LogIncomplete, VersionNotFound) as error:
        raise StreamStale(stream=reader, version=window.start, table=window.table.name, reason=str(error)) from error
