"""Replay: what an earlier run took from its streams is delivered again, into other targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Transaction
from tidemark.errors import InvalidArgument, TidemarkError, TransactionNotFound
from tidemark.failpoints import failpoint
from tidemark.model.statements import PlannedWrite, TransactionKey, WriteAs
from tidemark.model.streams import StreamWindow
from tidemark.streams.planning.bounds import UNBOUNDED
from tidemark.streams.planning.replay_steps import as_of_a_replay
from tidemark.streams.store import transactions
from tidemark.streams.worker.begin import Request, check_targets, resume, write_ahead
from tidemark.streams.worker.changed_plans import unless_half_written
from tidemark.streams.worker.consume import deliver
from tidemark.streams.worker.fitting import require_columns_of_windows
from tidemark.streams.worker.following import where_they_are
from tidemark.streams.worker.late_jobs import refuse_late_jobs
from tidemark.streams.worker.older_store import require_known
from tidemark.streams.worker.outcomes import Begun, Consumed, Opened
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import get_stream
from tidemark.streams.worker.targets import TargetHead, look_at_targets

__all__ = ["find_run", "replay", "require_replayable"]


def find_run(store: ControlStore, stream: str, run: str) -> Transaction:
    """The committed transaction in which `run` took from the stream: a run id, or the whole dag/run/task/map index.
    A replay took nothing.

    Raises StreamNotFound, TransactionNotFound, InvalidArgument where the run id stands for several.
    """
    uid = get_stream(store, stream).uid
    found = [
        stored.transaction
        for stored in store.read(lambda connection: transactions.of_run(connection, uid, run))
        if stored.transaction.result is not None and not any(w.replayed for w in stored.transaction.windows)
    ]
    if not found:
        raise TransactionNotFound(key=f"{run}, which took from {stream} and is committed")
    if len(found) > 1:
        keys = ", ".join(str(one.key) for one in found)
        raise InvalidArgument(argument="run", value=run, problem=f"several took from {stream}; name one: {keys}")
    return found[0]


def replay(
    runtime: Runtime, past: Transaction, *, key: TransactionKey, writes: Sequence[PlannedWrite], owner: str
) -> Consumed:
    """Deliver the windows of `past`, a committed transaction, to the targets of `writes`, each change once.

    The streams are neither held nor moved, and may have continued or have ended. Their history keeps that they were
    replayed. Retries as in `consume`: the same key continues, and after the commit delivers nothing. Raises what begin,
    submit and commit raise, with the next steps of a replay. Raises InvalidArgument for a target that `past` has
    written, and VersionVacuumed or PastWindowLost if the window can no longer be read.
    """
    try:
        return _replayed(runtime, past, key, writes, owner)
    except TidemarkError as error:
        told = as_of_a_replay(error)
        if told is error:
            raise
        raise told.with_traceback(error.__traceback__) from error.__cause__


def _replayed(
    runtime: Runtime, past: Transaction, key: TransactionKey, writes: Sequence[PlannedWrite], owner: str
) -> Consumed:
    store, tables, limits = runtime.store, runtime.tables, runtime.limits
    failpoint("begin.before")
    windows = where_they_are(tuple(replace(window, replayed=True) for window in past.windows), tables)
    names = tuple(window.stream_name for window in windows)
    request = Request(key, names, tuple(writes), owner, UNBOUNDED, limits)
    targets = look_at_targets(store, writes, tables, limits)
    _require_other_targets(past, targets)
    require_known(store, [target.inspected for target in targets], tables)
    if store.read(lambda connection: transactions.current(connection, key)) is None:
        require_columns_of_windows(windows, targets, tables)
    begun = unless_half_written(
        lambda: store.write(lambda connection: _open(connection, store, request, windows, targets)), runtime
    )
    if isinstance(begun, Opened):
        check_targets(begun.transaction, tables, limits)
    failpoint("begin.stored")
    return deliver(runtime, begun)


def require_replayable(runtime: Runtime, past: Transaction, writes: Sequence[PlannedWrite]) -> None:
    """Check by the logs that `writes` can take the windows of `past`. Raises what `replay` raises of targets."""
    targets = look_at_targets(runtime.store, writes, runtime.tables, runtime.limits)
    _require_other_targets(past, targets)
    require_columns_of_windows(where_they_are(past.windows, runtime.tables), targets, runtime.tables)


def _open(
    connection: sa.Connection,
    store: ControlStore,
    request: Request,
    windows: tuple[StreamWindow, ...],
    targets: Sequence[TargetHead],
) -> Begun:
    resumed = resume(connection, store, request)
    if resumed is not None:
        return resumed
    refuse_late_jobs(connection, targets, store)
    return write_ahead(connection, store, request, windows, targets)


def _require_other_targets(past: Transaction, targets: Sequence[TargetHead]) -> None:
    """A quarantine may be shared: its rows name their run."""
    written = {s.target.table_id for s in past.plan.statements if s.write.write_as is not WriteAs.QUARANTINE}
    for target in targets:
        if target.write.write_as is not WriteAs.QUARANTINE and target.table.table_id in written:
            problem = f"it has this window since {past.key}; a replay is for another table"
            raise InvalidArgument(argument="target", value=target.table.name, problem=problem)
