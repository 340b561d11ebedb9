"""A transaction that is not yet submitted takes further streams and statements: the interactive form (step 7)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.control import streams as stored_streams
from tidemark.control import transactions
from tidemark.control.store import ControlStore
from tidemark.control.transactions import StoredTransaction
from tidemark.errors import InvalidArgument, StreamLocked, SubmitRefused, TransactionNotFound
from tidemark.model.streams import StreamWindow
from tidemark.model.transactions import PlannedWrite, Transaction, TransactionKey, TransactionState
from tidemark.planning.bounds import UNBOUNDED, Bound
from tidemark.transactions.begin import hold, make_way, refuse_late_jobs
from tidemark.transactions.limits import DEFAULT_LIMITS, Limits
from tidemark.transactions.sources import SourceHead, Tables, look_at_sources, open_table, window_from
from tidemark.transactions.targets import TargetHead, look_at_targets, plan_statements

__all__ = ["extend"]


def extend(
    store: ControlStore,
    key: TransactionKey,
    *,
    streams: Sequence[str] = (),
    writes: Sequence[PlannedWrite] = (),
    tables: Tables = open_table,
    bound: Bound = UNBOUNDED,
    read_at: datetime | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Transaction:
    """Pin further streams (those already pinned keep their window) and register further statements, in order.

    `read_at`: what views take for the present (R37), now if nothing is given.

    The first stream ever pinned is the lead; statements need one. Not repeatable: a second run registers the
    statements again. Raises what begin raises, and SubmitRefused once the transaction was submitted or ended.
    """
    known = store.read(lambda connection: _extensible(connection, key)).transaction
    held = {window.stream_name.casefold() for window in known.windows}
    added = tuple(name for name in streams if name.casefold() not in held)
    sources = look_at_sources(store, added, tables, bound)
    targets = look_at_targets(writes, tables, limits)

    def add(connection: sa.Connection) -> Transaction:
        stored = _extensible(connection, key)
        lead = _add_streams(connection, store, stored, added, sources, read_at or store.clock())
        _add_statements(connection, store, lead, targets)
        until = store.clock() + limits.lease
        transactions.renew_lease(connection, stored.id, holder=None, until=until)
        return transactions.by_id(connection, stored.id).transaction

    return store.write(add)


def _extensible(connection: sa.Connection, key: TransactionKey) -> StoredTransaction:
    stored = transactions.current(connection, key)
    if stored is None:
        raise TransactionNotFound(key=str(key))
    if stored.transaction.state is not TransactionState.OPEN or stored.transaction.submitted:
        raise SubmitRefused(key=str(key), problem="its plan is closed: it was submitted or has ended")
    return stored


def _add_streams(
    connection: sa.Connection,
    store: ControlStore,
    stored: StoredTransaction,
    added: Sequence[str],
    sources: Sequence[SourceHead],
    read_at: datetime,
) -> StoredTransaction:
    fresh: list[StreamWindow] = []
    for name, source in zip(added, sources, strict=True):
        stream = stored_streams.find(connection, name)
        in_the_way = make_way(connection, store, stream, stored.transaction.key)
        if in_the_way is not None or stream.uid != source.stream_uid:
            holder = str(in_the_way.transaction.key) if in_the_way else "another user"
            raise StreamLocked(stream=name, holder=holder, until=store.clock())
        fresh.append(window_from(stream, source.ends, read_at))
        hold(connection, fresh[-1], stored.id, stored.transaction.key)
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
