"""Begin: windows and plan are written ahead (PROTOCOL steps 1 to 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import CommitResult, Plan, Transaction, TransactionState
from tidemark.errors import InvalidArgument, TargetChanged
from tidemark.failpoints import failpoint
from tidemark.model.statements import PlannedWrite, TransactionKey
from tidemark.model.streams import Stream, StreamWindow
from tidemark.streams.planning.bounds import UNBOUNDED, Bound
from tidemark.streams.planning.names import require_own
from tidemark.streams.store import empty_windows, streams, transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.changed_plans import require_plan, unless_half_written
from tidemark.streams.worker.fitting import require_columns
from tidemark.streams.worker.late_jobs import refuse_late_jobs
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.offsets import delivered, move_offsets
from tidemark.streams.worker.older_store import LakeAhead, require_knows, require_numbers, settle
from tidemark.streams.worker.outcomes import Begun, Delivered, Opened
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sources import SourceHead, Tables, look_at_sources, window_from
from tidemark.streams.worker.statistics import count_deliveries
from tidemark.streams.worker.takeover import locked, takeover
from tidemark.streams.worker.targets import TargetHead, look_at_targets, open_target, plan_statements, require_memory
from tidemark.streams.worker.versions import renumber_fenced

__all__ = [
    "NOTHING_IS_REMEMBERED",
    "Overdue",
    "Request",
    "begin",
    "check_targets",
    "get_transaction",
    "resume",
    "write_ahead",
]

NOTHING_IS_REMEMBERED = timedelta(hours=1)  # the key of an empty window, for its retries


@dataclass(frozen=True)
class Request:
    """The arguments of one begin."""

    key: TransactionKey
    streams: tuple[str, ...]
    writes: tuple[PlannedWrite, ...]
    owner: str
    bound: Bound
    limits: Limits


@dataclass(frozen=True)
class Overdue:
    """Another key's submitted transaction holds a stream and its lease has run out: it must be finished first."""

    held: Transaction
    stream: str


class _SourceReplaced(Exception):
    """A stream was replaced between the look at its source and the transaction: look again."""


def begin(
    runtime: Runtime,
    *,
    key: TransactionKey,
    streams: Sequence[str],
    writes: Sequence[PlannedWrite],
    owner: str,
    bound: Bound = UNBOUNDED,
) -> Begun:
    """Pin the streams' windows and the plan under `key`; the first stream is the lead.

    A second run returns the same windows, versions and plan, and renews the lease (step 3). Once the key is committed,
    it returns the stored result (step 2). Windows without a change commit at once, without a job (step 5); with no
    `writes` yet the transaction stays open for `extend`. A stream held by another transaction whose lease has run out:
    unsubmitted, it is released; submitted, it is finished whole (step 4). If the key was begun with another plan, and
    no target has any of that, it begins again.

    Raises StreamLocked, PlanChanged for a plan that is written in part, and JobsMayBeAlive (step 6, 19). Raises of the
    targets TargetChanged, TargetNotFound, TargetNotDelta, TargetDoesNotFit, MissingMergeKey, TargetForgetsTransactions,
    StoreOlderThanLake. Raises of the sources StreamNotFound, SourceRecreated, StreamStale, TrackingInterrupted. Raises
    StreamOfAView.
    """
    if writes and not streams:
        raise InvalidArgument(argument="streams", value=(), problem="a plan needs a lead stream")
    if not runtime.serves_views:
        require_own(streams)
    failpoint("begin.before")
    request = Request(key, tuple(streams), tuple(writes), owner, bound, runtime.limits)
    finished: tuple[CommitResult, ...] = ()

    def next_step() -> Begun | Overdue:
        return unless_half_written(lambda: _step(runtime.store, request, runtime.tables), runtime)

    while isinstance(step := next_step(), Overdue):
        result = takeover(runtime, step.held.key, by=key, owner=owner)
        finished = finished if result is None else (*finished, result)
    failpoint("begin.stored")
    return replace(step, finished=finished)


def get_transaction(store: ControlStore, key: TransactionKey) -> Transaction:
    """The transaction of `key` as it stands, a released one if there is no other. Raises TransactionNotFound."""
    return store.read(lambda connection: transactions.latest(connection, key)).transaction


def _step(store: ControlStore, request: Request, tables: Tables) -> Begun | Overdue:
    resumed = None
    if store.read(lambda connection: transactions.current(connection, request.key)) is not None:
        resumed = store.write(lambda connection: resume(connection, store, request))  # a new key takes no turn
    if isinstance(resumed, Opened):
        check_targets(resumed.transaction, tables, request.limits)
        require_knows(store, resumed.transaction, tables)
    if resumed is not None:
        return resumed
    settled: frozenset[str] = frozenset()
    while True:
        sources = look_at_sources(store, request.streams, tables, request.bound, to_read=True)
        targets = look_at_targets(store, request.writes, tables, request.limits)
        require_columns(sources, targets)
        try:
            return store.write(
                lambda connection: _open(connection, store, request, sources, targets, settled)  # noqa: B023 - runs now
            )
        except _SourceReplaced:
            continue
        except LakeAhead as ahead:
            settle(store, ahead.tables, tables)
            settled |= {one.table.table_id for one in ahead.tables}


def resume(connection: sa.Connection, store: ControlStore, request: Request) -> Begun | None:
    """The outcome of the key's earlier attempt (steps 2 and 3); None: it left nothing. Raises OtherPlan for another
    plan.
    """
    stored = transactions.current(connection, request.key)
    if stored is None:
        return None
    transaction = stored.transaction
    if transaction.result is not None:
        return Delivered(transaction.result, fresh=False, by=transaction.superseded_by)
    now = store.clock()
    if transaction.superseded_by is not None and transaction.lease_until > now:
        raise locked(transaction, ", ".join(request.streams))
    require_plan(transaction, request.streams, request.writes)
    stored = renumber_fenced(connection, stored, now)
    transactions.take_over(connection, stored.id, by=None, owner=request.owner, until=now + request.limits.lease)
    return Opened(transactions.by_id(connection, stored.id).transaction)


def check_targets(transaction: Transaction, tables: Tables, limits: Limits) -> None:
    """The registered targets still lie where they lay. Raises TargetChanged, before a job would (step 10)."""
    for statement in transaction.plan.statements:
        name, expected = statement.target.name, statement.target.table_id
        metadata = open_target(statement.target, tables).state().metadata
        if metadata.table_id != expected:
            raise TargetChanged(target=name, expected=expected, found=metadata.table_id)
        require_memory(name, metadata, limits)


def _open(
    connection: sa.Connection,
    store: ControlStore,
    request: Request,
    sources: Sequence[SourceHead],
    targets: Sequence[TargetHead],
    settled: frozenset[str],
) -> Begun | Overdue:
    """Open a new transaction, all in this one (steps 4 to 7)."""
    resumed = resume(connection, store, request)
    if resumed is not None:
        return resumed
    found = [streams.find(connection, name) for name in request.streams]
    for stream, source in zip(found, sources, strict=True):
        if stream.uid != source.stream_uid:
            raise _SourceReplaced
        overdue = make_way(connection, store, stream, request.key)
        if overdue is not None:
            return Overdue(overdue.transaction, stream.name)
    refuse_late_jobs(connection, targets, store)
    windows = tuple(window_from(s, h.ends, store.clock()) for s, h in zip(found, sources, strict=True))
    silent = all(source.silent(window) for source, window in zip(sources, windows, strict=True))
    if request.writes and silent:
        return _commit_at_once(connection, store, request, found, windows, sources)
    require_numbers(connection, [target.inspected for target in targets], settled)
    return write_ahead(connection, store, request, windows, targets)


def make_way(
    connection: sa.Connection, store: ControlStore, stream: Stream, key: TransactionKey
) -> StoredTransaction | None:
    """The transaction that keeps the stream from being taken (step 4). None if it is free, or its holder was released
    just now.

    A submitted transaction without a lease, or one that `key` has taken over already, is returned. Raises StreamLocked.
    """
    held_by = streams.holder(connection, stream.uid)
    if held_by is None:
        return None
    held = transactions.by_id(connection, held_by)
    now = store.clock()
    if held.transaction.lease_until > now and held.transaction.superseded_by != key:
        raise locked(held.transaction, stream.name)
    if held.transaction.submitted:
        return held
    transactions.release(connection, held.id, at=now)
    streams.free(connection, held.id)
    return None


def write_ahead(
    connection: sa.Connection,
    store: ControlStore,
    request: Request,
    windows: tuple[StreamWindow, ...],
    targets: Sequence[TargetHead],
) -> Opened:
    """Store the transaction with its windows and plan, and hold their streams, but for a replay's (step 7)."""
    now = store.clock()
    serial = streams.draw_serial(connection, windows[0].stream_uid) if windows else 0
    plan = Plan(plan_statements(_lead(windows[0], serial), serial, targets, first=1) if windows else ())
    transaction = Transaction(
        key=request.key,
        state=TransactionState.OPEN,
        windows=windows,
        plan=plan,
        owner=request.owner,
        lease_until=now + request.limits.lease,
        submitted=False,
        job_deadline=None,
        opened_at=now,
    )
    transaction_id = store.new_id()
    transactions.insert(connection, transaction_id, transaction, serial)
    for window in windows:
        if not window.replayed:
            hold(connection, window, transaction_id, request.key)
    return Opened(transaction)


def _lead(window: StreamWindow, serial: int) -> str:
    """The name of the Delta transactions: a replay may run beside a later window, so it has names of its own."""
    return f"{window.stream_uid}/replay/{serial}" if window.replayed else window.stream_uid


def hold(connection: sa.Connection, window: StreamWindow, transaction_id: str, key: TransactionKey) -> None:
    """Lock the window's stream for its transaction. Raises InvalidArgument where the stream is named twice."""
    if not streams.hold(connection, window.stream_uid, transaction_id):
        problem = f"transaction {key} names the stream twice"
        raise InvalidArgument(argument="streams", value=window.stream_name, problem=problem)


def _commit_at_once(
    connection: sa.Connection,
    store: ControlStore,
    request: Request,
    locked: Sequence[Stream],
    windows: tuple[StreamWindow, ...],
    sources: Sequence[SourceHead],
) -> Delivered:
    """Nothing to read: the offsets move, the key is committed, no job is started (step 5)."""
    now = store.clock()
    times = {source.stream_uid: source.quiet_time for source in sources}
    result = CommitResult(
        key=request.key,
        windows=delivered(windows, at=now, end_times=times),
        serial=locked[0].serial,
        evidence=(),
        committed_at=now,
    )
    transaction = Transaction(
        key=request.key,
        state=TransactionState.COMMITTED,
        windows=windows,
        plan=Plan(()),
        owner=request.owner,
        lease_until=now,
        submitted=False,
        job_deadline=None,
        opened_at=now,
        result=result,
    )
    if all(window.empty for window in windows):
        forget_before = now - NOTHING_IS_REMEMBERED
        empty_windows.insert(connection, store.new_id(), transaction, locked[0].serial, forget_before=forget_before)
    else:
        transactions.insert(connection, store.new_id(), transaction, locked[0].serial)
    move_offsets(connection, request.key, windows, at=now, who=request.owner)
    count_deliveries(connection, windows)
    return Delivered(result, fresh=True)
