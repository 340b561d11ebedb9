"""Data older than the retention: first no reader counts on it, then the log loses it, then the store forgets it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.model.jobs import EXPIRE_CHANGE_LOG, ExpireChangeLog
from tidemark.change_streams.store import capture_batches, change_streams
from tidemark.change_streams.store.old_batches import Forgotten, forget_old, read_by_all
from tidemark.change_streams.worker.definitions import get_change_stream
from tidemark.control.store import ControlStore
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.runtime import Runtime

__all__ = ["Forgotten", "LogExpired", "expire", "expire_before", "forget"]


@dataclass(frozen=True)
class LogExpired:
    """`until`: records before it are read by nobody any more; `rows`: how many rows the log lost."""

    until: datetime
    rows: int
    forgotten: Forgotten


def expire(runtime: Runtime, name: str, *, only_writer: bool = False, key: TransactionKey | None = None) -> LogExpired:
    """Remove data older than the retention from the log, by a job if it has any, and from the store.

    Batches go as a whole, when all of them is older. Killed anywhere, a second run does what is left. A consumer group
    that has not read all of it finds PartitionExpired. The store keeps the group's partitions until it is reset or
    dropped. `only_writer`: nothing is captured while it runs. Raises ChangeStreamNotFound, CommitsMayBeLost, JobError,
    and the errors of the job.
    """
    store = runtime.store
    until = expire_before(store, name)
    stream = get_change_stream(store, name)
    rows = 0
    if store.read(lambda connection: capture_batches.has_records_until(connection, stream.uid, until)):
        due = ExpireChangeLog(replace(stream, expired_until=until), only_writer)
        rows = runtime.run_job(EXPIRE_CHANGE_LOG, due, key=key).rows
        store.write(lambda connection: capture_batches.mark_expired(connection, stream.uid, until))
    return LogExpired(until, rows, forget(store, name))


def expire_before(store: ControlStore, name: str) -> datetime:
    """The time before which records may be taken out of the log. It is written ahead: from now on no plan hands out
    records before it, and no group starts there. A second run may go further. Raises ChangeStreamNotFound.
    """

    def move(connection: sa.Connection) -> datetime:
        stream = change_streams.find(connection, name)
        until = min(store.clock() - stream.options.retention, stream.published_until)
        until = max(until, stream.expired_until or stream.created_at)
        change_streams.expire(connection, stream.uid, until)
        return until

    return store.write(move)


def forget(store: ControlStore, name: str) -> Forgotten:
    """Remove rows before `expire_before` and before the low watermark of every group from the store. They are batches,
    their load, partitions that ended, and what groups noted of them. A group that lags holds all that back, so that
    nothing it lost goes unnoticed. A second run changes nothing. Raises ChangeStreamNotFound.
    """

    def work(connection: sa.Connection) -> Forgotten:
        stream = change_streams.find(connection, name)
        before = read_by_all(connection, stream, stream.expired_until or stream.created_at)
        return Forgotten(0, 0, 0, 0) if before is None else forget_old(connection, stream, before)

    return store.write(work)
