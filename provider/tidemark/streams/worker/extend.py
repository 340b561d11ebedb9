"""A transaction that is not yet submitted takes further streams and statements: the interactive form (step 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Transaction, TransactionState
from tidemark.errors import InvalidArgument, SubmitRefused, TransactionNotFound
from tidemark.model.statements import PlannedWrite, TransactionKey
from tidemark.model.streams import Stream
from tidemark.streams.planning.bounds import UNBOUNDED, Bound
from tidemark.streams.planning.names import require_own
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.store import transactions
from tidemark.streams.store.transactions import StoredTransaction
from tidemark.streams.worker.begin import Overdue, hold, make_way
from tidemark.streams.worker.late_jobs import refuse_late_jobs
from tidemark.streams.worker.lease import LeaseKept
from tidemark.streams.worker.limits import Limits
from tidemark.streams.worker.older_store import require_known
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sources import SourceHead, Tables, look_at_sources, window_from
from tidemark.streams.worker.takeover import takeover
from tidemark.streams.worker.targets import TargetHead, look_at_targets, plan_statements

__all__ = ["extend"]


@dataclass(frozen=True)
class _Further:
    """The arguments of an extension."""

    key: TransactionKey
    streams: tuple[str, ...]
    writes: tuple[PlannedWrite, ...]
    bound: Bound
    read_at: datetime | None
    limits: Limits


class _SourceReplaced(Exception):
    """A stream was replaced between the look at its source and the transaction: look again."""


def extend(
    runtime: Runtime,
    key: TransactionKey,
    *,
    streams: Sequence[str] = (),
    writes: Sequence[PlannedWrite] = (),
    sources: Tables | None = None,
    bound: Bound = UNBOUNDED,
    read_at: datetime | None = None,
) -> Transaction:
    """Pin further streams (those already pinned keep their window) and register further statements, in order.

    `read_at`: what views take for the present (R37), now if nothing is given. `sources`: how the streams' tables are
    opened, if not as all tables. A stream that a submitted transaction without a lease holds is taken as in `begin`:
    that one is finished first (step 4).

    The first stream ever pinned is the lead; statements need one. Not repeatable: a second run registers the
    statements again. Raises what begin raises, and SubmitRefused once the transaction was submitted or ended.
    """
    require_own(streams)
    store, tables, limits = runtime.store, runtime.tables, runtime.limits
    further = _Further(key, tuple(streams), tuple(writes), bound, read_at, limits)
    while isinstance(step := _step(store, further, tables, sources or tables), Overdue):
        own = store.read(lambda connection: _extensible(connection, key))
        with LeaseKept(store, own.id, None, limits):
            takeover(runtime, step.held.key, by=key, owner=own.transaction.owner)
    return step


def _step(store: ControlStore, further: _Further, tables: Tables, sources: Tables) -> Transaction | Overdue:
    known = store.read(lambda connection: _extensible(connection, further.key)).transaction
    held = {window.stream_name.casefold() for window in known.windows}
    added = tuple(name for name in further.streams if name.casefold() not in held)
    while True:
        heads = look_at_sources(store, added, sources, further.bound, to_read=True)
        targets = look_at_targets(store, further.writes, tables, further.limits)
        require_known(store, [target.inspected for target in targets], tables)
        try:
            return store.write(
                lambda connection: _add(connection, store, further, added, heads, targets)  # noqa: B023 - runs now
            )
        except _SourceReplaced:
            continue


def _add(
    connection: sa.Connection,
    store: ControlStore,
    further: _Further,
    added: Sequence[str],
    heads: Sequence[SourceHead],
    targets: Sequence[TargetHead],
) -> Transaction | Overdue:
    """All in this transaction: streams, statements, a longer lease; or the transaction that keeps a stream from being
    taken.
    """
    stored = _extensible(connection, further.key)
    found = [stored_streams.find(connection, name) for name in added]
    for stream, head in zip(found, heads, strict=True):
        if stream.uid != head.stream_uid:
            raise _SourceReplaced
        in_the_way = make_way(connection, store, stream, further.key)
        if in_the_way is not None:
            return Overdue(in_the_way.transaction, stream.name)
    lead = _add_streams(connection, stored, found, heads, further.read_at or store.clock())
    _add_statements(connection, store, lead, targets)
    until = store.clock() + further.limits.lease
    transactions.renew_lease(connection, stored.id, holder=None, until=until)
    return transactions.by_id(connection, stored.id).transaction


def _extensible(connection: sa.Connection, key: TransactionKey) -> StoredTransaction:
    stored = transactions.current(connection, key)
    if stored is None:
        raise TransactionNotFound(key=str(key))
    if stored.transaction.state is not TransactionState.OPEN or stored.transaction.submitted:
        raise SubmitRefused(key=str(key), problem="its plan is closed: it was submitted or has ended")
    return stored


def _add_streams(
    connection: sa.Connection,
    stored: StoredTransaction,
    added: Sequence[Stream],
    heads: Sequence[SourceHead],
    read_at: datetime,
) -> StoredTransaction:
    fresh = [window_from(stream, head.ends, read_at) for stream, head in zip(added, heads, strict=True)]
    for window in fresh:
        hold(connection, window, stored.id, stored.transaction.key)
    transactions.add_windows(connection, stored.id, fresh, first=len(stored.transaction.windows))
    if fresh and not stored.transaction.windows:
        serial = stored_streams.draw_serial(connection, fresh[0].stream_uid)
        transactions.set_serial(connection, stored.id, serial)
    return transactions.by_id(connection, stored.id)


def _add_statements(
    connection: sa.Connection, store: ControlStore, stored: StoredTransaction, targets: Sequence[TargetHead]
) -> None:
    if not targets:
        return
    if not stored.transaction.windows:
        raise InvalidArgument(argument="streams", value=(), problem="a statement needs a lead stream")
    refuse_late_jobs(connection, targets, store)
    first = len(stored.transaction.plan.statements) + 1
    transactions.add_statements(
        connection, stored.id, plan_statements(stored.lead, stored.serial, targets, first=first)
    )
