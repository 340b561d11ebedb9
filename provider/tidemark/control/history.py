"""History that nothing needs any more, dropped in small steps.

What safety needs stays whatever its age: streams with their serials and places, the numbers ordered for each target,
open transactions with all that belongs to them, jobs that may be alive, the newest transaction of each stream with its
evidence, the newest entry of each history, and every act by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from tidemark.control import capture_batches, change_streams
from tidemark.control.change_stream_history import forget_old, read_by_all
from tidemark.control.schema import change_streams as change_stream_rows
from tidemark.control.schema import (
    chunks,
    job_targets,
    jobs,
    object_writes,
    offset_moves,
    replication_moves,
    statements,
    stores,
    transactions,
    windows,
)
from tidemark.model.change_streams import ChunkState
from tidemark.model.transactions import TransactionState

__all__ = ["KINDS", "Place", "Step", "claim", "drop_step"]

Place = tuple[datetime | int | str, ...]


@dataclass(frozen=True)
class Step:
    """What one step did: `dropped` things of its kind, all before `place`; `place` None: there are no more."""

    dropped: int
    place: Place | None


def claim(connection: sa.Connection, *, now: datetime, every: timedelta) -> bool:
    """Whether the caller is the one to drop history now; then no other is for as long as `every`."""
    due = stores.c.pruned_at.is_(None) | (stores.c.pruned_at <= now - every)
    return connection.execute(stores.update().where(due).values(pruned_at=now)).rowcount == 1


def drop_step(connection: sa.Connection, kind: str, *, before: datetime, after: Place | None, most: int) -> Step:
    """Look at the `most` next things of `kind` that ended before that time, from `after` on, and drop what may go.

    A second run finds nothing of what the first has dropped.
    """
    return KINDS[kind](connection, before, after, most)


def _transactions(connection: sa.Connection, before: datetime, after: Place | None, most: int) -> Step:
    of = transactions.c
    ended = (of.state != TransactionState.OPEN.value) & (of.closed_at < before)
    found = _next(connection, sa.select(of.closed_at, of.id).where(ended), (of.closed_at, of.id), after, most)
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


def _offset_moves(connection: sa.Connection, before: datetime, after: Place | None, most: int) -> Step:
    return _by_number(connection, offset_moves, offset_moves.c.stream_uid, before, after, most)


def _replication_moves(connection: sa.Connection, before: datetime, after: Place | None, most: int) -> Step:
    return _by_number(connection, replication_moves, replication_moves.c.replication_uid, before, after, most)


def _object_writes(connection: sa.Connection, before: datetime, after: Place | None, most: int) -> Step:
    """Those that a later one of their kind has come over; the numbers are drawn from the object."""
    of, newer = object_writes.c, object_writes.alias("newer")
    over = (newer.c.object_uid == of.object_uid) & (newer.c.number > of.number)
    followed = sa.exists().where(over, newer.c.kind == of.kind, newer.c.state == "done")
    old = (of.state != "open") & (of.closed_at < before) & (of.deadline < before)
    query = sa.select(of.closed_at, of.object_uid, of.number).where(old)
    found = _next(connection, query, (of.closed_at, of.object_uid, of.number), after, most)
    dropped = 0
    for row in found:
        own = (of.object_uid == row.object_uid) & (of.number == row.number)
        dropped += connection.execute(object_writes.delete().where(own, followed)).rowcount
    return Step(dropped, _place(found, most))


def _chunks(connection: sa.Connection, before: datetime, after: Place | None, most: int) -> Step:
    """Of change streams whose log is not trimmed, which drops more. Their numbers are drawn from the partition."""
    of = chunks.c
    old = (of.state == ChunkState.COMMITTED.value) & (of.committed_at < before)
    order = (of.committed_at, of.group_uid, of.token, of.number)
    found = _next(connection, sa.select(*order).where(old), order, after, most)
    for row in found:
        same = (of.group_uid == row.group_uid) & (of.token == row.token) & (of.number == row.number)
        connection.execute(chunks.delete().where(same))
    return Step(len(found), _place(found, most))


def _batches(connection: sa.Connection, before: datetime, after: Place | None, most: int) -> Step:
    """Of change streams whose log is not trimmed: those older than the retention that every group has read, but for the
    newest whose records the log has, by which a trim knows that there is something to do. One stream at a time.
    """
    of = change_stream_rows.c
    alive = sa.select(of.uid).where(of.dropped_at.is_(None)).order_by(of.uid).limit(1)
    uid = connection.execute(alive if after is None else alive.where(of.uid > after[0])).scalar_one_or_none()
    if uid is None:
        return Step(0, None)
    stream = change_streams.by_uid(connection, uid)
    done = read_by_all(connection, stream, min(before, stream.published_until - stream.options.retention))
    ends = [] if done is None else capture_batches.oldest_ends(connection, uid, most + 1, until=done)
    if done is None or not ends:
        return Step(0, (uid,))
    stays = capture_batches.last_with_records(connection, uid, done) or done
    cut = min(ends[-1], stays)
    change_streams.trim(connection, uid, cut)  # nobody begins there any more, whatever becomes of the retention
    dropped = forget_old(connection, stream, cut).batches
    return Step(dropped, after or ("",)) if dropped else Step(0, (uid,))


KINDS: dict[str, Callable[[sa.Connection, datetime, Place | None, int], Step]] = {
    "transactions": _transactions,
    "offset moves": _offset_moves,
    "chunks of groups": _chunks,
    "batches of change streams": _batches,
    "writes of replications": _object_writes,
    "moves of replications": _replication_moves,
}


def _by_number(
    connection: sa.Connection,
    table: sa.Table,
    owner: sa.Column[str],
    before: datetime,
    after: Place | None,
    most: int,
) -> Step:
    """Histories numbered as they were written: looked through from the oldest on, as far as that is old enough."""
    of, newer = table.c, table.alias("newer")
    found = _next(connection, sa.select(of.id, of.moved_at), (of.id,), after, most)
    ids = [row.id for row in found if row.moved_at < before]
    followed = sa.exists().where(newer.c[owner.name] == owner, newer.c.id > of.id, newer.c.run.is_not(None))
    going = table.delete().where(of.id.in_(ids), of.run.is_not(None), followed)
    return Step(connection.execute(going).rowcount, (ids[-1],) if len(ids) == most else None)


def _place(found: Sequence[sa.Row[Any]], most: int) -> Place | None:
    return tuple(found[-1]) if len(found) == most else None


def _next(
    connection: sa.Connection,
    query: sa.Select[tuple[object, ...]],
    order: tuple[sa.ColumnElement[object], ...],
    after: Place | None,
    most: int,
) -> list[sa.Row[Any]]:
    if after is not None:
        values = (sa.literal(value, column.type) for value, column in zip(after, order, strict=True))
        query = query.where(sa.tuple_(*order) > sa.tuple_(*values))
    return list(connection.execute(query.order_by(*order).limit(most)))
