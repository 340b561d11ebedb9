"""A stream's window as rows, with errors for a consumer of the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from tidemark.changes.driver.every_change import plan_pages
from tidemark.changes.driver.files import require_files, require_live_files
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.rows import read_changes, read_snapshot
from tidemark.changes.planning.sets.plan import ChangePlan
from tidemark.errors import LogIncomplete, SourceRecreated, StreamStale, VersionNotFound
from tidemark.jobs.workspace import Workspace
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamMode, StreamWindow, WindowKind

__all__ = ["plan_window", "read_window", "require_files_of_window"]

ROWS_PER_PART = 50_000_000  # of every change: one DataFrame has all parts, each with a plan of its own


def read_window(
    spark: SparkSession,
    window: StreamWindow,
    workspace: Workspace,
    options: Mapping[str, str] | None = None,
    *,
    say: Callable[[str], None] | None = None,
) -> DataFrame:
    """The rows that the stream shows of `window`, in all modes and kinds; columns as in `read_changes`.

    Every change of a window is the union of its pages, so the plan grows with a thousandth of the commits.

    Idempotent: the same window always gives the same rows, even if more is committed (R20). `say` gets the plan in a
    line. Raises SourceRecreated (R82, R91), StreamStale (R84), TrackingInterrupted (R85), VersionVacuumed,
    IncompatibleSchemaChange, KeyColumnChanged.
    """
    log = _open(window, options)
    with _stale_without_history(window):
        if window.kind is WindowKind.INITIAL_ROWS:
            each, name = window.mode is StreamMode.EVERY_CHANGE, window.stream_name
            return read_snapshot(spark, log, window.start, keys=window.keys, with_commit=each, reader=name)
        plans = _planned(log, window)
        if say is not None:
            for plan in plans:
                say(f"stream {window.stream_name}, {plan.in_words()}")
        shown = [plan for plan in plans if not plan.empty] or plans[:1]
        return reduce(DataFrame.unionAll, [read_changes(spark, log, plan, workspace) for plan in shown])


def plan_window(window: StreamWindow, options: Mapping[str, str] | None = None) -> tuple[ChangePlan, ...]:
    """The plans of `read_window` for a window of changes, without Spark, with the same errors. There is one plan, or
    one for each page of every change.
    """
    with _stale_without_history(window):
        return _planned(_open(window, options), window)


def require_files_of_window(window: StreamWindow, options: Mapping[str, str] | None = None) -> None:
    """Nothing, or VersionVacuumed if a file that `read_window` reads is gone by now, without Spark. CorruptLog for one
    of another size.
    """
    log = _open(window, options)
    if window.kind is WindowKind.INITIAL_ROWS:
        require_live_files(log, window.start)
        return
    for plan in plan_window(window, options):
        require_files(log, plan)


def _open(window: StreamWindow, options: Mapping[str, str] | None) -> DeltaLog:
    log = DeltaLog.open(window.source.path, options)
    found = log.state().table_id
    if found != window.source.table_id:
        raise SourceRecreated(
            table=window.source.name,
            stream=window.stream_name,
            path=log.uri,
            found=found,
            expected=window.source.table_id,
        )
    return log


def _planned(log: DeltaLog, window: StreamWindow) -> tuple[ChangePlan, ...]:
    name = window.stream_name
    if window.mode is StreamMode.EVERY_CHANGE:
        pages = plan_pages(log, window.start, window.end, rows_per_page=ROWS_PER_PART, reader=name)
        return tuple(pages)
    table_id = window.source.table_id
    plan = plan_changes(log, window.start, window.end, window.mode, reader=name, keys=window.keys, table_id=table_id)
    return (plan,)


@contextmanager
def _stale_without_history(window: StreamWindow) -> Iterator[None]:
    try:
        yield
    except (LogIncomplete, VersionNotFound) as error:
        raise StreamStale(
            stream=window.stream_name, version=window.start, table=window.source.name, reason=str(error)
        ) from error
