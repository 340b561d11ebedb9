"""Capture batches in the store: written ahead by value, closed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.schema import capture_batches
from tidemark.model.change_streams import BatchState, CaptureBatch, CaptureResult, WatchedTable
from tidemark.model.codec import from_json, to_json

__all__ = ["StoredBatch", "close", "forget", "insert", "last_end", "lookup", "open_batch", "watch_lists"]

_of = capture_batches.c


@dataclass(frozen=True)
class StoredBatch:
    """A batch as it stands; `digest` of what came of it, None while it is open."""

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
    """The tables that each kept batch was opened for, newest batch first; read as far as they are asked for."""
    query = sa.select(_of.batch).where(_of.stream_uid == stream_uid).order_by(_of.number.desc())
    for text in connection.execute(query).scalars():
        yield from_json(CaptureBatch, text).stream.tables


def insert(connection: sa.Connection, batch: CaptureBatch) -> None:
    """Write the batch ahead of its capture."""
    connection.execute(
        capture_batches.insert().values(
            stream_uid=batch.stream.uid,
            number=batch.number,
            state=BatchState.OPEN.value,
            batch=to_json(batch),
            opened_at=batch.opened_at,
        )
    )


def close(connection: sa.Connection, stream_uid: str, result: CaptureResult, *, digest: str, at: datetime) -> bool:
    """The batch stands in the log, if it was open; True if it was so."""
    standing = (_of.stream_uid == stream_uid) & (_of.number == result.number) & (_of.state == BatchState.OPEN.value)
    values = {
        "state": BatchState.CAPTURED.value,
        "captured_at": at,
        "transactions": result.transactions,
        "records": result.records,
        "rows": result.rows,
        "published_until": result.published_until,
        "digest": digest,
    }
    return connection.execute(capture_batches.update().where(standing).values(values)).rowcount == 1


def last_end(connection: sa.Connection, stream_uid: str, at: datetime) -> datetime | None:
    """Where the last batch that ended at or before `at` ended; None where there was none, or it is forgotten."""
    ended = (_of.stream_uid == stream_uid) & (_of.published_until <= at)
    found: datetime | None = connection.execute(sa.select(sa.func.max(_of.published_until)).where(ended)).scalar_one()
    return found


def forget(connection: sa.Connection, stream_uid: str, *, before: datetime) -> int:
    """Remove captured batches that ended before this time; how many."""
    ended = (_of.stream_uid == stream_uid) & (_of.published_until < before)
    return connection.execute(capture_batches.delete().where(ended)).rowcount
