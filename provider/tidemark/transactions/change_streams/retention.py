"""What is older than the retention: first no reader counts on it, then the log loses it, then the store forgets it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.control import capture_batches, change_streams, chunks, consumer_groups, group_partitions, partitions
from tidemark.control.store import ControlStore

__all__ = ["Forgotten", "forget", "trim_before"]


@dataclass(frozen=True)
class Forgotten:
    """How many rows of the store went."""

    partitions: int
    group_partitions: int
    chunks: int
    batches: int


def trim_before(store: ControlStore, name: str) -> datetime:
    """The time before which records may be taken out of the log. It is written ahead: from now on no plan hands out
    what lies before it, and no group starts there. A second run may go further. Raises ChangeStreamNotFound.
    """

    def move(connection: sa.Connection) -> datetime:
        stream = change_streams.find(connection, name)
        until = min(store.clock() - stream.options.retention, stream.published_until)
        until = max(until, stream.trimmed_until or stream.created_at)
        change_streams.trim(connection, stream.uid, until)
        return until

    return store.write(move)


def forget(store: ControlStore, name: str) -> Forgotten:
    """Remove from the store what lies before `trim_before` and before the low watermark of every group: batches, their
    load, partitions that ended, and what groups noted of them. A group that lags holds all that back, so that nothing
    it lost goes unnoticed. A second run changes nothing. Raises ChangeStreamNotFound.
    """

    def work(connection: sa.Connection) -> Forgotten:
        stream = change_streams.find(connection, name)
        groups = consumer_groups.of_stream(connection, stream.uid)
        lowest = [group_partitions.low_watermark(connection, group.uid) for group in groups]
        done = min([stream.trimmed_until or stream.created_at, *(at for at in lowest if at is not None)])
        before = capture_batches.last_end(connection, stream.uid, done)  # who starts amid a batch needs its load
        if before is None:
            return Forgotten(0, 0, 0, 0)
        gone_chunks = sum(chunks.forget(connection, group.uid, before=before) for group in groups)
        gone_rows = sum(group_partitions.forget(connection, stream.uid, group.uid, before=before) for group in groups)
        return Forgotten(
            partitions=partitions.forget(connection, stream.uid, before=before),
            group_partitions=gone_rows,
            chunks=gone_chunks,
            batches=capture_batches.forget(connection, stream.uid, before=before),
        )

    return store.write(work)
