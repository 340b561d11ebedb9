"""Jobs that belong to no transaction: preparing a table, and saying what a window would read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidemark.errors import TableNotFound
from tidemark.model.external_tables import ExternalTableRequest, Refreshed
from tidemark.model.statements import PlannedWrite, TransactionKey
from tidemark.model.streams import StreamWindow, TableRef, WindowKind
from tidemark.operators._plans import TableUri, WriteRequest, planned_writes
from tidemark.sql.table_names import table_name
from tidemark.streams.model.table_jobs import (
    CREATE_QUARANTINE,
    PREPARE,
    REFRESH_EXTERNAL_TABLE,
    RESOLVE_VIEW,
    ResolvedView,
    TablePath,
    ViewRequest,
)
from tidemark.streams.model.transaction_jobs import CREATE_TABLE, DRY_RUN, HAS_ROWS, TableRequest, WindowsRequest
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.planning.vacuum_job import VACUUM, Vacuumed, VacuumRequest

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.streams.planning.bounds import Bound
    from tidemark.streams.planning.executors import PlannedExecutors
    from tidemark.streams.planning.retention import VacuumPlan
    from tidemark.streams.worker.runtime import Runtime
    from tidemark.streams.worker.sources import SourceHead

__all__ = [
    "create_quarantine",
    "create_table",
    "explain",
    "holds_rows",
    "refresh_external_table",
    "resolve_view",
    "turn_on_row_tracking",
    "vacuum",
]

log = logging.getLogger(__name__)


def turn_on_row_tracking(runtime: Runtime, table: TableRef, *, key: TransactionKey) -> None:
    """Runs a PREPARE job on `table`; a table that tracks its rows already is left as it is. Raises the job's error."""
    runtime.run_job(PREPARE, TablePath(table.path), key=key)


def create_quarantine(
    runtime: Runtime,
    hook: TidemarkHook,
    request: WriteRequest,
    table_uri: TableUri,
    *,
    key: TransactionKey,
    check: Callable[[Sequence[PlannedWrite]], object],
) -> None:
    """Runs a CREATE_QUARANTINE job where the table is asked for and not there. A second run finds it.

    `check` refuses the writes before the job starts; only their quarantine does not exist yet.
    """
    name = request.quarantine
    if name is None or table_name(name).only_in_catalog:  # the planned write says if a catalog has no such table
        return
    path = hook.table_path(name)
    try:
        runtime.tables(path)
    except TableNotFound:
        writes = planned_writes(replace(request, quarantine=None), table_uri)
        check([replace(write, quarantine=name) for write in writes])
        log.info("Creating the quarantine table %s.", name)
        runtime.run_job(CREATE_QUARANTINE, TablePath(path), key=key)


def resolve_view(runtime: Runtime, name: str, *, beyond_snowflake: bool, key: TransactionKey) -> ResolvedView:
    """The view as Spark's catalog has it, and its base tables. Raises the errors of the RESOLVE_VIEW job."""
    return runtime.run_job(RESOLVE_VIEW, ViewRequest(name, beyond_snowflake), key=key)


def refresh_external_table(runtime: Runtime, request: ExternalTableRequest, *, key: TransactionKey) -> Refreshed:
    """Raises the errors of the REFRESH_EXTERNAL_TABLE job."""
    return runtime.run_job(REFRESH_EXTERNAL_TABLE, request, key=key)


def holds_rows(runtime: Runtime, window: StreamWindow, *, key: TransactionKey) -> bool:
    """Whether the window shows any row, by a HAS_ROWS job. Raises the job's error."""
    name = window.stream_name
    return runtime.run_job(HAS_ROWS, WindowsRequest((window,)), key=key, streams=(name,)).shows[name]


def vacuum(runtime: Runtime, plan: VacuumPlan, *, dry_run: bool, key: TransactionKey) -> Vacuumed:
    """Raises the errors of the VACUUM job."""
    return runtime.run_job(VACUUM, VacuumRequest(plan, dry_run), key=key)


def explain(runtime: Runtime, streams: Sequence[str], *, key: TransactionKey, bound: Bound) -> dict[str, Any]:
    """The next window of each stream, as it would be read. No transaction is opened, and no job runs if nothing is new.
    A table that was renamed or moved is read in its new place, and its stream stays as it is.

    {"windows": [{stream, from, to, initial_rows}], "reads": what the job found, by stream, or {}}. With bounds
    for executors also {"planned": {bytes, min_executors, executors, max_executors}}.
    """
    sources, windows = _coming(runtime, streams, bound)
    silent = all(source.silent(window) for source, window in zip(sources, windows, strict=True))
    names = tuple(streams)
    reads = {} if silent else runtime.run_job(DRY_RUN, WindowsRequest(windows), key=key, streams=names).reads
    shown = [
        {"stream": w.stream_name, "from": w.start, "to": w.end, "initial_rows": w.kind is WindowKind.INITIAL_ROWS}
        for w in windows
    ]
    found = {"windows": shown, "reads": dict(reads)}
    if runtime.sizing is None or silent:
        return found
    return {**found, "planned": _facts_of(runtime.sizing.tell(windows, runtime.tables))}


def create_table(
    runtime: Runtime, write: PlannedWrite, head: str, query: str, *, streams: Sequence[str], key: TransactionKey
) -> None:
    """Runs a CREATE_TABLE job: `head` is the statement before AS, and `write` the INSERT of the `query` that follows.

    A table that exists is left as it is. Raises the job's error, and StreamNotFound.
    """
    _, windows = _coming(runtime, streams, UNBOUNDED)
    tables = {name: path for name, path in write.tables.items() if name != write.target}
    log.info("Creating the table %s.", write.target)
    runtime.run_job(CREATE_TABLE, TableRequest(windows, head, query, tables), key=key, streams=tuple(streams))


def _coming(
    runtime: Runtime, streams: Sequence[str], bound: Bound
) -> tuple[tuple[SourceHead, ...], tuple[StreamWindow, ...]]:
    """The heads of the streams' sources, and the windows that would be taken now. Nothing is moved."""
    from tidemark.streams.worker.following import where_they_are
    from tidemark.streams.worker.opening import wherever
    from tidemark.streams.worker.sources import look_at_sources, window_from
    from tidemark.streams.worker.streams import get_stream

    store = runtime.store
    sources = look_at_sources(store, streams, wherever(runtime.tables), bound, to_read=True)
    stored = tuple(
        window_from(get_stream(store, name), source.ends, store.clock())
        for name, source in zip(streams, sources, strict=True)
    )
    return sources, where_they_are(stored, runtime.tables)


def _facts_of(planned: PlannedExecutors) -> dict[str, Any]:
    return {
        "bytes": planned.planned_bytes,
        "min_executors": planned.least,
        "executors": planned.initial,
        "max_executors": planned.most,
    }
