"""Jobs that belong to no transaction: preparing a table, and saying what a window would read."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tidemark.errors import TableNotFound, from_record
from tidemark.model.codec import from_plain, to_json
from tidemark.model.external_tables import ExternalTableAsk
from tidemark.model.jobs import JobKind
from tidemark.model.streams import StreamWindow, TableRef, WindowKind
from tidemark.model.transactions import TransactionKey
from tidemark.model.views import ViewQuery

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


def turn_on_row_tracking(hook: TidemarkHook, table: TableRef, *, key: TransactionKey, run: RunJob) -> None:
    """Runs a PREPARE job on `table`; a table that tracks its rows already is left as it is. Raises the job's error."""
    _run(hook, run, kind=JobKind.PREPARE, key=key, options={"table": table.path})


def create_quarantine(hook: TidemarkHook, name: str | None, *, key: TransactionKey, run: RunJob) -> None:
    """Runs a CREATE_QUARANTINE job where the table is asked for and not there. A second run finds it."""
    if name is None:
        return
    place = hook.table_place(name)
    try:
        hook.open_table(place)
    except TableNotFound:
        log.info("Creating the quarantine table %s.", name)
        _run(hook, run, kind=JobKind.CREATE_QUARANTINE, key=key, options={"table": place})


def resolve_view(
    hook: TidemarkHook, name: str, *, beyond_snowflake: bool, key: TransactionKey, run: RunJob
) -> tuple[ViewQuery, list[TableRef]]:
    """What Spark's catalog says of the view, and its base tables. Raises the errors of the RESOLVE_VIEW job."""
    options = {"view": name, "beyond_snowflake": str(beyond_snowflake).lower()}
    facts = _run(hook, run, kind=JobKind.RESOLVE_VIEW, key=key, options=options)
    return from_plain(ViewQuery, facts["query"]), [from_plain(TableRef, base) for base in facts["bases"]]


def refresh_external_table(
    hook: TidemarkHook, ask: ExternalTableAsk, *, key: TransactionKey, run: RunJob
) -> Mapping[str, Any]:
    """{table, version, added, overwritten, removed}. Raises the errors of the REFRESH_EXTERNAL_TABLE job."""
    return _run(hook, run, kind=JobKind.REFRESH_EXTERNAL_TABLE, key=key, options={"ask": to_json(ask)})


def backfill_table(hook: TidemarkHook, ask: BackfillAsk, *, key: TransactionKey, run: RunJob) -> Mapping[str, Any]:
    """{rows, found, version}. Raises the errors of the BACKFILL_TABLE job."""
    return _run(hook, run, kind=JobKind.BACKFILL_TABLE, key=key, options={"ask": to_json(ask)})


def holds_rows(hook: TidemarkHook, window: StreamWindow, *, key: TransactionKey, run: RunJob) -> bool:
    """Whether the window shows any row, by a HAS_ROWS job. Raises the job's error."""
    facts = _run(hook, run, kind=JobKind.HAS_ROWS, key=key, windows=(window,))
    return bool(facts[window.stream_name])


def vacuum(
    hook: TidemarkHook, plan: VacuumPlan, *, dry_run: bool, key: TransactionKey, run: RunJob
) -> Mapping[str, Any]:
    """{files, bytes} that were removed, or would be. Raises the errors of the VACUUM job."""
    options = {"plan": to_json(plan), "dry_run": str(dry_run).lower()}
    return _run(hook, run, kind=JobKind.VACUUM, key=key, options=options)


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
    reads = {} if silent else _run(hook, run, kind=JobKind.DRY_RUN, key=key, windows=windows)
    shown = [
        {"stream": w.stream_name, "from": w.start, "to": w.end, "initial_rows": w.kind is WindowKind.INITIAL_ROWS}
        for w in windows
    ]
    return {"windows": shown, "reads": dict(reads)}


def _run(hook: TidemarkHook, run: RunJob, *, kind: JobKind, key: TransactionKey, **what: Any) -> Mapping[str, Any]:
    from tidemark.transactions.limits import DEFAULT_LIMITS

    result = run(
        hook.job_places().spec(
            kind,
            str(uuid4()),
            store_id=hook.open_store().store_id,
            deadline=datetime.now(UTC) + DEFAULT_LIMITS.job_deadline,
            key=key,
            **what,
        )
    )
    if result.error is not None:
        raise from_record(result.error)
    return result.facts
