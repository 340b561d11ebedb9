"""Old transactions and moves of offsets, dropped in small steps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.control.history import Cursor, Step, drop_by_number, next_of
from tidemark.delivery.model.transactions import TransactionState
from tidemark.streams.store.schema import job_targets, jobs, offset_moves, statements, transactions, windows

__all__ = ["drop_offset_moves", "drop_transactions"]


def drop_transactions(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Transactions that have ended, with their windows, statements and jobs."""
    of = transactions.c
    ended = (of.state != TransactionState.OPEN.value) & (of.closed_at < before)
    found = next_of(connection, sa.select(of.closed_at, of.id).where(ended), (of.closed_at, of.id), after, most)
    ids = [row.id for row in found]
    going = list(connection.execute(sa.select(of.id).where(of.id.in_(ids), ~_may_be_asked_of(before))).scalars())
    theirs = sa.select(jobs.c.id).where(jobs.c.transaction_id.in_(going))
    connection.execute(job_targets.delete().where(job_targets.c.job_id.in_(theirs)))
    for table in (jobs, statements, windows):
        connection.execute(table.delete().where(table.c.transaction_id.in_(going)))
    connection.execute(transactions.delete().where(of.id.in_(going)))
    return Step(len(going), (found[-1].closed_at, found[-1].id) if len(found) == most else None)


def _may_be_asked_of(before: datetime) -> sa.ColumnElement[bool]:
    """A job of it may be alive, or it is the newest that took from one of its streams."""
    of = transactions.c
    alive = sa.exists().where(jobs.c.transaction_id == of.id, jobs.c.ended_at.is_(None), jobs.c.deadline >= before)
    later, newer = windows.alias("later"), transactions.alias("newer")
    follows = (
        sa.select(newer.c.id)
        .where(
            later.c.stream_uid == windows.c.stream_uid,
            later.c.transaction_id == newer.c.id,
            newer.c.state != TransactionState.RELEASED.value,
            newer.c.closed_at > of.closed_at,
        )
        .correlate(windows, transactions)
        .exists()
    )
    newest = sa.select(windows.c.position).where(windows.c.transaction_id == of.id, ~follows)
    return alive | ((of.state != TransactionState.RELEASED.value) & newest.correlate(transactions).exists())


def drop_offset_moves(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Moves of offsets by runs that later moves have followed."""
    return drop_by_number(connection, offset_moves, offset_moves.c.stream_uid, before, after, most)
