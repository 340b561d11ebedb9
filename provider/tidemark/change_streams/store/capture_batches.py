"""Capture batches in the store: written ahead by value, closed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import (
    BatchState,
    CaptureBatch,
    CaptureResult,
    LeftTable,
    WatchedTable,
)
from tidemark.change_streams.store.schema import capture_batches
from tidemark.model.codec import from_json, to_json

__all__ = [
    "StoredBatch",
    "captured_up_to",
    "close",
    "discard",
    "discarded",
    "forget",
    "forget_stream",
    "has_records_until",
    "insert",
    "known_to_newest",
    "last_end",
    "lookup",
    "mark_expired",
    "open_batch",
    "watch_lists",
]

_of = capture_batches.c


@dataclass(frozen=True)
class StoredBatch:
    """A batch as it stands; `digest` of what came of it, None unless it is captured."""

    batch: CaptureBatch
    state: BatchState
    digest: str | None


def lookup(connection: sa.Connection, stream_uid: str, number: int) -> StoredBatch | None:
    """The batch of that number, or None: a question, not a failure."""
    query = sa.select(_of.batch, _of.state, _of.digest).where(_of.stream_uid == stream_uid, _of.number == number)
    row = connection.execute(query).first()
    return None if row is None else StoredBatch(from_json(CaptureBatch, row[0]), BatchState(row[1]), row[2])


def open_batch(connection: sa.Connection, stream_uid: str) -> CaptureBatch | None:
    """The one batch that is written ahead and not captured, or None."""
    query = sa.select(_of.batch).where(_of.stream_uid == stream_uid, _of.state == BatchState.OPEN.value)
    text = connection.execute(query).scalar_one_or_none()
    return None if text is None else from_json(CaptureBatch, text)


def watch_lists(connection: sa.Connection, stream_uid: str) -> Iterator[tuple[WatchedTable, ...]]:
    """The tables that each kept batch was opened for, newest batch first; only those that are asked for are read."""
    query = sa.select(_of.batch).where(_of.stream_uid == stream_uid).order_by(_of.number.desc())
    for text in connection.execute(query).scalars():
        yield from_json(CaptureBatch, text).stream.tables


def captured_up_to(connection: sa.Connection, stream_uid: str, table_id: str) -> int | None:
    """The version up to which a table is captured, by the newest kept batch that knows it; None if none does."""
    of_table = _of.batch.contains(to_json(table_id), autoescape=True)
    query = sa.select(_of.batch, _of.state).where(_of.stream_uid == stream_uid, of_table)
    one_by_one = {"stream_results": True, "max_row_buffer": 1}  # the first nearly always answers, and each is large
    for text, state in connection.execute(query.order_by(_of.number.desc()), execution_options=one_by_one):
        for one in _known(from_json(CaptureBatch, text), BatchState(state)):
            if one.table_id == table_id:
                return one.captured
    return None


def known_to_newest(connection: sa.Connection, stream_uid: str) -> tuple[LeftTable, ...]:
    """Every table that the newest batch knows, watched or left, as if it were left after that batch."""
    query = sa.select(_of.batch, _of.state).where(_of.stream_uid == stream_uid)
    row = connection.execute(query.order_by(_of.number.desc()).limit(1)).first()
    return () if row is None else _known(from_json(CaptureBatch, row[0]), BatchState(row[1]))


def _known(batch: CaptureBatch, state: BatchState) -> tuple[LeftTable, ...]:
    places = {one.table_id: one.captured for one in batch.left}
    places |= {one.table.table_id: one.captured for one in batch.stream.tables}
    if state in (BatchState.CAPTURED, BatchState.EXPIRED):
        for one in batch.ranges:
            table_id = one.watched.table.table_id
            places[table_id] = max(one.end, places.get(table_id, one.end))
    return tuple(LeftTable(table_id, captured) for table_id, captured in places.items())


def insert(connection: sa.Connection, batch: CaptureBatch, *, run: str | None = None) -> None:
    """Write the batch ahead of its capture. `run`: the key of the task."""
    connection.execute(
        capture_batches.insert().values(
            stream_uid=batch.stream.uid,
            number=batch.number,
            state=BatchState.OPEN.value,
            batch=to_json(batch),
            opened_at=batch.opened_at,
            run=run,
        )
    )


def close(
    connection: sa.Connection,
    stream_uid: str,
    result: CaptureResult,
    *,
    digest: str,
    at: datetime,
    run: str | None = None,
) -> bool:
    """Store that the log has the batch, if that was not known yet; True if it was so. `run`: the key of the task that
    captured it; None leaves that of the task that wrote it ahead.
    """
    unknown = _of.state.in_([BatchState.OPEN.value, BatchState.DISCARDED.value])
    standing = (_of.stream_uid == stream_uid) & (_of.number == result.number) & unknown
    values = {
        "state": BatchState.CAPTURED.value,
        "captured_at": at,
        "transactions": result.transactions,
        "records": result.records,
        "rows": result.rows,
        "published_until": result.published_until,
        "digest": digest,
        **({} if run is None else {"run": run}),
    }
    return connection.execute(capture_batches.update().where(standing).values(values)).rowcount == 1


def discard(connection: sa.Connection, stream_uid: str, number: int) -> bool:
    """Give the batch up, if it is open; True if it was so. It stays as history, and no other has its number."""
    standing = (_of.stream_uid == stream_uid) & (_of.number == number) & (_of.state == BatchState.OPEN.value)
    return (
        connection.execute(capture_batches.update().where(standing).values(state=BatchState.DISCARDED.value)).rowcount
        == 1
    )


def discarded(connection: sa.Connection, stream_uid: str) -> tuple[int, ...]:
    """The numbers that were given up since the last batch that was captured, ascending."""
    of_stream = _of.stream_uid == stream_uid
    captured = sa.select(sa.func.max(_of.number)).where(of_stream, _of.published_until.is_not(None))
    last = connection.execute(captured).scalar_one()
    given_up = sa.select(_of.number).where(of_stream, _of.state == BatchState.DISCARDED.value)
    later = given_up if last is None else given_up.where(_of.number > last)
    return tuple(connection.execute(later.order_by(_of.number)).scalars())


def has_records_until(connection: sa.Connection, stream_uid: str, until: datetime) -> bool:
    """Whether the log has records of a batch that ended at or before this time."""
    with_records = (_of.state == BatchState.CAPTURED.value) & (_of.rows > 0)
    ended = (_of.stream_uid == stream_uid) & (_of.published_until <= until)
    return connection.execute(sa.select(_of.number).where(ended, with_records).limit(1)).first() is not None


def mark_expired(connection: sa.Connection, stream_uid: str, until: datetime) -> int:
    """The records of batches that ended at or before this time have left the log; of how many that was news."""
    ended = (_of.stream_uid == stream_uid) & (_of.published_until <= until)
    news = capture_batches.update().where(ended, _of.state == BatchState.CAPTURED.value)
    return connection.execute(news.values(state=BatchState.EXPIRED.value)).rowcount


def oldest_ends(connection: sa.Connection, stream_uid: str, most: int, *, until: datetime) -> list[datetime]:
    """When the oldest batches that are kept ended, `most` of them, up to this time."""
    ended = (_of.stream_uid == stream_uid) & (_of.published_until <= until)
    query = sa.select(_of.published_until).where(ended).order_by(_of.published_until).limit(most)
    return list(connection.execute(query).scalars())


def last_with_records(connection: sa.Connection, stream_uid: str, until: datetime) -> datetime | None:
    """The end of the last batch whose records the log still has, at or before this time; None if there is none."""
    with_records = (_of.state == BatchState.CAPTURED.value) & (_of.rows > 0)
    ended = (_of.stream_uid == stream_uid) & (_of.published_until <= until)
    query = sa.select(sa.func.max(_of.published_until)).where(ended, with_records)
    found: datetime | None = connection.execute(query).scalar_one()
    return found


def last_end(connection: sa.Connection, stream_uid: str, at: datetime) -> datetime | None:
    """The end of the last batch that ended at or before `at`; None if there was none, or it is forgotten."""
    ended = (_of.stream_uid == stream_uid) & (_of.published_until <= at)
    found: datetime | None = connection.execute(sa.select(sa.func.max(_of.published_until)).where(ended)).scalar_one()
    return found


def forget(connection: sa.Connection, stream_uid: str, *, before: datetime) -> int:
    """Remove captured batches that ended before this time; how many. Discarded ones stay: they are few."""
    ended = (_of.stream_uid == stream_uid) & (_of.published_until < before)
    return connection.execute(capture_batches.delete().where(ended)).rowcount


def forget_stream(connection: sa.Connection, stream_uid: str) -> None:
    """Remove all of a change stream that is dropped."""
    connection.execute(capture_batches.delete().where(_of.stream_uid == stream_uid))
