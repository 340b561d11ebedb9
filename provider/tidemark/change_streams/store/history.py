"""Old chunks and batches of change streams, dropped in small steps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import ChunkState
from tidemark.change_streams.store import capture_batches, change_streams
from tidemark.change_streams.store.old_batches import forget_old, read_by_all
from tidemark.change_streams.store.schema import change_streams as change_stream_rows
from tidemark.change_streams.store.schema import chunks
from tidemark.control.history import Cursor, Step, cursor_of, next_of

__all__ = ["drop_batches", "drop_chunks"]


def drop_chunks(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Of change streams whose log does not expire, which drops more. Their numbers are drawn from the partition."""
    of = chunks.c
    old = (of.state == ChunkState.COMMITTED.value) & (of.committed_at < before)
    order = (of.committed_at, of.group_uid, of.token, of.number)
    found = next_of(connection, sa.select(*order).where(old), order, after, most)
    for row in found:
        same = (of.group_uid == row.group_uid) & (of.token == row.token) & (of.number == row.number)
        connection.execute(chunks.delete().where(same))
    return Step(len(found), cursor_of(found, most))


def drop_batches(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Drop old batches of change streams whose log does not expire, one stream at a time. They are older than the
    retention, and every group has read them. The newest batch whose records the log has stays: by it, an expiry knows
    that something is due.
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
    change_streams.expire(connection, uid, cut)  # nobody begins there any more, whatever becomes of the retention
    dropped = forget_old(connection, stream, cut).batches
    return Step(dropped, after or ("",)) if dropped else Step(0, (uid,))
