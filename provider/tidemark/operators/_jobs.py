"""Jobs that belong to no transaction: preparing a table, and saying what a window would read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tidemark.errors import TableNotFound
from tidemark.model.external_tables import ExternalTableAsk, Refreshed
from tidemark.model.jobs import Job
from tidemark.model.streams import StreamWindow, TableRef, WindowKind
from tidemark.model.table_jobs import (
    BACKFILL_TABLE,
    CREATE_QUARANTINE,
    PREPARE,
    REFRESH_EXTERNAL_TABLE,
    RESOLVE_VIEW,
    BackfilledTable,
    ResolvedView,
    TablePath,
    ViewRequest,
)
from tidemark.model.transaction_jobs import DRY_RUN, HAS_ROWS, WindowsRequest
from tidemark.model.transactions import TransactionKey
from tidemark.planning.vacuum_job import VACUUM, Vacuumed, VacuumRequest

if TYPE_CHECKING:
    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.model.backfill import BackfillAsk
    from tidemark.planning.bounds import Bound
    from tidemark.planning.retention import VacuumPlan
    from tidemark.transactions.limits import RunJob

__all__ = [
    "backfill_table",
    "create_quarantine",
    "explain",
    "holds_rows",
    "refresh_external_table",
    "resolve_view",
    "turn_on_row_tracking",
    "vacuum",
]

log = logging.getLogger(__name__)
Request = TypeVar("Request")
Report = TypeVar("Report")


def turn_on_row_tracking(hook: TidemarkHook, table: TableRef, *, key: TransactionKey, run: RunJob) -> None:
    """Runs a PREPARE job on `table`; a table that tracks its rows already is left as it is. Raises the job's error."""
    _run(hook, PREPARE, TablePath(table.path), key=key, run=run)


def create_quarantine(hook: TidemarkHook, name: str | None, *, key: TransactionKey, run: RunJob) -> None:
    """Runs a CREATE_QUARANTINE job where the table is asked for and not there. A second run finds it."""
    if name is None:
        return
    place = hook.table_place(name)
    try:
        hook.open_table(place)
    except TableNotFound:
        log.info("Creating the quarantine table %s.", name)
        _run(hook, CREATE_QUARANTINE, TablePath(place), key=key, run=run)


def resolve_view(
    hook: TidemarkHook, name: str, *, beyond_snowflake: bool, key: TransactionKey, run: RunJob
) -> ResolvedView:
    """What Spark's catalog says of the view, and its base tables. Raises the errors of the RESOLVE_VIEW job."""
    return _run(hook, RESOLVE_VIEW, ViewRequest(name, beyond_snowflake), key=key, run=run)


def refresh_external_table(hook: TidemarkHook, ask: ExternalTableAsk, *, key: TransactionKey, run: RunJob) -> Refreshed:
    """Raises the errors of the REFRESH_EXTERNAL_TABLE job."""
    return _run(hook, REFRESH_EXTERNAL_TABLE, ask, key=key, run=run)


def backfill_table(hook: TidemarkHook, ask: BackfillAsk, *, key: TransactionKey, run: RunJob) -> BackfilledTable:
    """Raises the errors of the BACKFILL_TABLE job."""
    return _run(hook, BACKFILL_TABLE, ask, key=key, run=run)


def holds_rows(hook: TidemarkHook, window: StreamWindow, *, key: TransactionKey, run: RunJob) -> bool:
    """Whether the window shows any row, by a HAS_ROWS job. Raises the job's error."""
    name = window.stream_name
    return _run(hook, HAS_ROWS, WindowsRequest((window,)), key=key, run=run, streams=(name,)).shows[name]


def vacuum(hook: TidemarkHook, plan: VacuumPlan, *, dry_run: bool, key: TransactionKey, run: RunJob) -> Vacuumed:
    """Raises the errors of the VACUUM job."""
    return _run(hook, VACUUM, VacuumRequest(plan, dry_run), key=key, run=run)


def explain(
    hook: TidemarkHook, streams: Sequence[str], *, key: TransactionKey, bound: Bound, run: RunJob
) -> dict[str, Any]:
    """What the next window of each stream would read; opens no transaction, and runs no job where nothing is new.

    {"windows": [{stream, from, to, initial_rows}], "reads": what the job found, by stream, or {}}.
    """
    from tidemark.transactions.sources import look_at_sources, window_from
    from tidemark.transactions.streams import get_stream

    store = hook.open_store()
    sources = look_at_sources(store, streams, hook.open_table, bound)
    windows = tuple(
        window_from(get_stream(store, name), source.ends, store.clock())
        for name, source in zip(streams, sources, strict=True)
    )
    silent = all(source.silent(window) for source, window in zip(sources, windows, strict=True))
    names = tuple(streams)
    reads = {} if silent else _run(hook, DRY_RUN, WindowsRequest(windows), key=key, run=run, streams=names).reads
    shown = [
        {"stream": w.stream_name, "from": w.start, "to": w.end, "initial_rows": w.kind is WindowKind.INITIAL_ROWS}
        for w in windows
    ]
    return {"windows": shown, "reads": dict(reads)}


def _run(
    hook: TidemarkHook,
    job: Job[Request, Report],
    request: Request,
    *,
    key: TransactionKey,
    run: RunJob,
    streams: tuple[str, ...] = (),
) -> Report:
    from tidemark.transactions.job_runs import run_job

    return run_job(hook.open_store(), job, request, run=run, places=hook.job_places(), key=key, streams=streams)
