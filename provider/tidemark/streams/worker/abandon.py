"""Abandon, by the user: a window that can never be finished is given up, and its streams continue behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import Transaction
from tidemark.errors import StorageRefused, StorageUnreachable, SubmitRefused, TransactionNotFound
from tidemark.model.statements import TransactionKey
from tidemark.streams.planning.names import require_own
from tidemark.streams.worker.offsets import move_offsets
from tidemark.streams.worker.rollback import release
from tidemark.streams.worker.sources import Tables, open_table
from tidemark.streams.worker.streams import open_transaction
from tidemark.streams.worker.takeover import locked
from tidemark.streams.worker.unwritten import Before, Remains, look_before, remains_of, require_unchanged
from tidemark.streams.worker.versions import require_jobs_ended

__all__ = ["Abandoned", "abandon"]

_AWAY = (StorageRefused, StorageUnreachable)  # a target there may be away for good


@dataclass(frozen=True)
class Abandoned:
    """The transaction that was given up, and which of its targets have its windows."""

    transaction: Transaction
    remains: Remains


def abandon(store: ControlStore, name: str, *, who: str, why: str, tables: Tables = open_table) -> Abandoned:
    """Give up the open transaction of a stream, which has written some of its windows, or may have (PROTOCOL step 22).

    1. Every job has surely ended, or is past its deadline. 2. The targets' logs say which of them have the windows.
    3. In one write the offsets of all its streams move to the ends of their windows, and the transaction is released.
    Targets without the windows never get them; those with them never get them twice. The history of each stream says
    who did it, why, and which target has what.

    If no target has any of it and every job is known to have ended, no offset moves. The next run takes the windows. A
    second run raises TransactionNotFound. Raises StreamLocked while the lease lasts, JobsMayBeAlive, and StreamOfAView.
    Raises SubmitRefused if the transaction changed in between. The same if no target has any of it, and nobody saw a
    job end. A release shuts that job out and loses nothing.
    """
    require_own([name])
    key = open_transaction(store, name).key
    before = store.read(lambda connection: _left(connection, store, name, key))
    transaction = before.stored.transaction
    alone = replace(before, unseen=())  # all of them are past their deadlines
    found = remains_of(alone, transaction.superseded_by, store.store_id, tables, or_else=_AWAY)
    if found is None and before.unseen:
        problem = f"no target has any of it, so nothing need be lost: `airflow tidemark streams release {name}`"
        raise SubmitRefused(key=str(key), problem=problem)
    remains = found or Remains(without=tuple(one.target.name for one in transaction.plan.statements))
    reason = f"abandoned: {why} ({remains})"

    def move(connection: sa.Connection) -> None:
        _left(connection, store, name, key)
        require_unchanged(connection, before)
        if found is not None:
            move_offsets(connection, key, transaction.windows, at=store.clock(), who=who, why=reason)
        release(connection, store, before.stored)

    store.write(move)
    return Abandoned(transaction, remains)


def _left(connection: sa.Connection, store: ControlStore, name: str, key: TransactionKey) -> Before:
    """The open transaction of the key, which nobody works on."""
    before = look_before(connection, key)
    if before is None:
        raise TransactionNotFound(key=str(key))
    if before.stored.transaction.lease_until > store.clock():
        raise locked(before.stored.transaction, name)
    require_jobs_ended(connection, before.stored, store.clock())
    return before
