"""The store's rows of old batches of a change stream, with load, partitions and chunks; dropped when read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import ChangeStream
from tidemark.change_streams.store import capture_batches, chunks, consumer_groups, group_partitions, partitions

__all__ = ["Forgotten", "forget_old", "read_by_all"]


@dataclass(frozen=True)
class Forgotten:
    """How many rows of the store went."""

    partitions: int
    group_partitions: int
    chunks: int
    batches: int


def read_by_all(connection: sa.Connection, stream: ChangeStream, until: datetime) -> datetime | None:
    """The end of the last batch before `until` and the low watermark of every group; None if there is none. A group
    that lags holds all that back, so that nothing it lost goes unnoticed.
    """
    groups = consumer_groups.of_stream(connection, stream.uid)
    lowest = [group_partitions.low_watermark(connection, group.uid) for group in groups]
    done = min([until, *(at for at in lowest if at is not None)])
    return capture_batches.last_end(connection, stream.uid, done)  # who starts amid a batch needs its load


def forget_old(connection: sa.Connection, stream: ChangeStream, before: datetime) -> Forgotten:
    """Remove batches that ended before that time, their load, partitions that ended, and what groups noted of them. A
    second run changes nothing.
    """
    groups = consumer_groups.of_stream(connection, stream.uid)
    gone_chunks = sum(chunks.forget(connection, group.uid, before=before) for group in groups)
    gone_rows = sum(group_partitions.forget(connection, stream.uid, group.uid, before=before) for group in groups)
    return Forgotten(
        partitions=partitions.forget(connection, stream.uid, before=before),
        group_partitions=gone_rows,
        chunks=gone_chunks,
        batches=capture_batches.forget(connection, stream.uid, before=before),
    )
