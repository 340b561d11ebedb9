"""Capture: a batch is written ahead, a job puts it into the log, and its result is closed into the store once."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import (
    BatchState,
    CaptureBatch,
    CaptureResult,
    ChangeStream,
    LeftTable,
    WatchedTable,
)
from tidemark.change_streams.model.jobs import CAPTURE_CHANGES
from tidemark.change_streams.planning.left_tables import MOST_LEFT, left_now
from tidemark.change_streams.planning.own_tables import OwnTables
from tidemark.change_streams.planning.waves import tiles
from tidemark.change_streams.store import capture_batches, change_streams, partitions
from tidemark.change_streams.worker.discovery import (
    Discovery,
    at_its_places,
    discover,
    said_to_follow,
    without_missing_tables,
)
from tidemark.change_streams.worker.sinks import own_tables
from tidemark.control.store import ControlStore
from tidemark.errors import BatchBarred, CaptureChanged, DiscardedBatchCaptured
from tidemark.model.codec import to_json
from tidemark.model.statements import TransactionKey
from tidemark.streams.planning.bounds import UNBOUNDED, Bound
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sources import Tables

__all__ = ["NewTables", "capture", "close_batch", "discard", "nothing", "open_batch"]

log = logging.getLogger(__name__)

ALLOWED_SKEW = timedelta(seconds=10)  # how late, by this clock, a commit may appear
SPLIT_ROWS = 1_000_000  # of a partition in a batch
MERGE_ROWS = SPLIT_ROWS // 8

_AHEAD = (
    "Change stream %s: commits of %s have times up to %s ahead of this clock. They are published as of %s, and keep"
    " their own times in raw_commit_timestamp. Set the clock of the table's writer, or the clock of this host."
)

_OLDER = (
    "Change stream %s: its log already has batch %d with other versions. The control store is older than the log, as"
    " after a restore from a backup. The log counts. Nothing was captured again, and the next capture continues"
    " from the log."
)

_FORGETS = (
    "Change stream %s forgets up to which version %d tables are captured that it watches no longer. If one comes"
    " back, its changes since the creation of the change stream are captured again."
)

NewTables = Callable[[ChangeStream, Sequence[WatchedTable]], Sequence[WatchedTable]]
"""Every table that FOR ALL takes in now besides those of the stream, as it would be watched anew; those that change
streams write themselves are left out, and those that have as many watchers as there may be. The second argument has the
tables that are no longer in their places. A table that has moved is watched in its new place as before.
"""


def nothing(stream: ChangeStream, lost: Sequence[WatchedTable]) -> Sequence[WatchedTable]:
    """No table is new."""
    return ()


def open_batch(
    store: ControlStore,
    name: str,
    *,
    tables: Tables,
    new_tables: NewTables = nothing,
    bounds: Bound = UNBOUNDED,
    allowed_skew: timedelta = ALLOWED_SKEW,
    split_rows: int = SPLIT_ROWS,
    merge_rows: int = MERGE_ROWS,
    run: str | None = None,
) -> CaptureBatch | None:
    """Write a batch ahead, or hand back the one that is open, unchanged, so that captures at once do the same.

    None if no table has anything new: then only the promise moves, that all before now less `allowed_skew` is
    published. After a batch was discarded, a batch is opened nevertheless, since it bars the discarded one from the
    log. With FOR ALL, tables of `new_tables` are taken up. Tables that are gone, or that groups of the stream write,
    are left. Tables that were renamed or moved are followed.
    `split_rows`, `merge_rows`: rows of a batch over which a partition is hot, and under which two neighbours together
    are quiet. `run`: the key of the task. Raises ChangeStreamNotFound, WatchedTableChanged.
    """
    while True:
        stream, waiting = store.read(lambda c: _standing(c, name))
        if waiting is not None:
            return waiting
        wanted = _as_all_is_now(stream, tables, new_tables) if stream.everything else stream
        started = store.clock()
        found = discover(wanted, tables, bounds, started=started, allowed_skew=allowed_skew)
        wanted = replace(wanted, tables=found.tables)

        def write(
            connection: sa.Connection,
            stream: ChangeStream = stream,
            wanted: ChangeStream = wanted,
            found: Discovery = found,
        ) -> tuple[bool, CaptureBatch | None]:
            now, waiting = _standing(connection, name)
            if waiting is not None or now != stream:
                return waiting is not None, waiting
            own = own_tables(connection, stream.uid)
            change_streams.note_run(connection, stream.uid, run)
            return True, _write_ahead(
                connection, *_not_its_own(wanted, found, own), split_rows, merge_rows, store.clock(), run
            )

        done, batch = store.write(write)
        if done:
            return batch


def close_batch(
    store: ControlStore, batch: CaptureBatch, result: CaptureResult, *, run: str | None = None
) -> ChangeStream:
    """The batch is in the log: its load, partitions and versions are kept, and the next batch may come.

    A discarded batch counts as well if its capture had reached the log before it could be barred. The batch that was
    opened after it is then discarded, as no attempt of that can enter the log. If this store was restored from an older
    backup, the log may have another batch under that number (`taken`). That batch counts, with its ranges: nothing of
    it is captured again, and nothing skipped.

    A second run with the same result changes nothing. Raises CaptureChanged (never opened, opened as another, closed
    with another result, ranges that do not cover all keys). Raises ChangeStreamNotFound for a stream that was dropped.
    """

    def close(connection: sa.Connection) -> ChangeStream:
        stream = change_streams.by_uid(connection, batch.stream.uid)
        stored = capture_batches.lookup(connection, stream.uid, batch.number)
        digest = _digest(result)
        if stored is None or stored.batch != batch or result.number != batch.number:
            raise _refused(batch, "it was not opened as it was captured")
        if stored.state in (BatchState.CAPTURED, BatchState.EXPIRED):
            if stored.digest != digest:
                raise _refused(batch, "it was closed already, with another result")
            return stream
        _require_whole(batch, result)
        later = capture_batches.open_batch(connection, stream.uid)
        if later is not None and later.number > batch.number:
            stream = discard(connection, later)
        capture_batches.close(connection, stream.uid, result, digest=digest, at=store.clock(), run=run)
        change_streams.note_run(connection, stream.uid, run)
        return _move_on(connection, stream, _as_taken(batch, result), result)

    return store.write(close)


def capture(
    runtime: Runtime,
    name: str,
    *,
    key: TransactionKey | None = None,
    new_tables: NewTables = nothing,
    bounds: Bound = UNBOUNDED,
    allowed_skew: timedelta = ALLOWED_SKEW,
    split_rows: int = SPLIT_ROWS,
    merge_rows: int = MERGE_ROWS,
) -> CaptureResult | None:
    """One batch by one job, or None if nothing is new and no job was needed. A second run continues with the batch that
    the first left open. A batch that the log bars is given up: the next run takes what it would have taken. Raises as
    `open_batch` and `close_batch`, JobError, and the errors of the job.
    """
    store = runtime.store
    batch = open_batch(
        store,
        name,
        tables=runtime.tables,
        new_tables=new_tables,
        bounds=bounds,
        allowed_skew=allowed_skew,
        split_rows=split_rows,
        merge_rows=merge_rows,
        run=None if key is None else str(key),
    )
    if batch is None:
        return None
    try:
        return _captured(runtime, batch, key, discarded=batch.discarded)
    except DiscardedBatchCaptured as error:
        number = int(error.facts["number"])
        late = store.read(lambda connection: capture_batches.lookup(connection, batch.stream.uid, number))
        if late is None:
            raise
        return _captured(runtime, late.batch, key, discarded=())  # it is found in the log, and needs no bars
    except BatchBarred:
        store.write(lambda connection: _give_up(connection, batch))
        raise


def discard(connection: sa.Connection, batch: CaptureBatch) -> ChangeStream:
    """Give up an open batch: its number is used up. Its tables stay where they were captured, so the next batch takes
    what this one would have taken. A capture of it may be under way: the next batch bars it from the log first.

    Raises CaptureChanged if it is not the open batch any more.
    """
    uid = batch.stream.uid
    gone = capture_batches.discard(connection, uid, batch.number)
    if not gone or not change_streams.skip_batch(connection, uid, number=batch.number):
        raise _refused(batch, "it is no longer open")
    return change_streams.by_uid(connection, uid)


def _captured(
    runtime: Runtime, batch: CaptureBatch, key: TransactionKey | None, *, discarded: tuple[int, ...]
) -> CaptureResult:
    asked = at_its_places(replace(batch, discarded=discarded), runtime.tables)
    result = runtime.run_job(CAPTURE_CHANGES, asked, key=key)
    close_batch(runtime.store, batch, result, run=None if key is None else str(key))
    if result.taken is not None:
        log.warning(_OLDER, batch.stream.name, batch.number)
    for table, by in result.ahead.items():
        log.warning(_AHEAD, batch.stream.name, table, by, batch.latest.isoformat())
    return result


def _give_up(connection: sa.Connection, batch: CaptureBatch) -> None:
    """Discard the batch, if it is open still."""
    if capture_batches.open_batch(connection, batch.stream.uid) == batch:
        discard(connection, batch)


def _as_taken(batch: CaptureBatch, result: CaptureResult) -> CaptureBatch:
    """The batch as the log has it."""
    return batch if result.taken is None else replace(batch, ranges=result.taken)


def _standing(connection: sa.Connection, name: str) -> tuple[ChangeStream, CaptureBatch | None]:
    stream = change_streams.find(connection, name)
    return stream, capture_batches.open_batch(connection, stream.uid)


def _as_all_is_now(stream: ChangeStream, tables: Tables, new_tables: NewTables) -> ChangeStream:
    """FOR ALL without the tables that are gone, and with those that came, as `new_tables` says it."""
    kept = without_missing_tables(stream, tables)
    lost = {one.table.table_id: one for one in stream.tables if one not in kept.tables}
    known = {one.table.table_id for one in kept.tables} | {one.table.path for one in kept.tables}
    found = [one for one in new_tables(kept, tuple(lost.values())) if not known & {one.table.table_id, one.table.path}]
    again = [said_to_follow(stream, lost[id_], one) for one in found if (id_ := one.table.table_id) in lost]
    new = [one for one in found if one.table.table_id not in lost]
    return replace(kept, tables=(*kept.tables, *again, *new))


def _not_its_own(stream: ChangeStream, found: Discovery, own: OwnTables) -> tuple[ChangeStream, Discovery]:
    """FOR ALL without what change streams write: a table may have become a sink since it was looked for."""
    if not stream.everything:
        return stream, found
    kept = tuple(one for one in stream.tables if own.why_not(one.table, everything=True) is None)
    ranges = tuple(one for one in found.ranges if one.watched in kept)
    return replace(stream, tables=kept), replace(found, ranges=ranges)


def _write_ahead(
    connection: sa.Connection,
    stream: ChangeStream,
    found: Discovery,
    split_rows: int,
    merge_rows: int,
    at: datetime,
    run: str | None,
) -> CaptureBatch | None:
    left = _left(connection, stream) if stream.everything else ()
    change_streams.watch(connection, stream.uid, stream.tables, everything=stream.everything)
    discarded = capture_batches.discarded(connection, stream.uid)
    if found.is_empty and not discarded:  # a late capture of those would come before what is promised here
        change_streams.publish(connection, stream.uid, batch=stream.next_batch, until=found.safe_until)
        return None
    batch = CaptureBatch(
        stream=stream,
        number=stream.next_batch,
        ranges=found.ranges,
        floor=stream.published_until,
        safe_until=found.safe_until,
        active=partitions.active(connection, stream.uid),
        split_rows=split_rows,
        merge_rows=merge_rows,
        opened_at=at,
        discarded=discarded,
        left=left,
    )
    capture_batches.insert(connection, batch, run=run)
    return batch


def _left(connection: sa.Connection, stream: ChangeStream) -> tuple[LeftTable, ...]:
    """The tables that are left when `stream` is stored, with a warning if there are too many to be kept."""
    watched = change_streams.by_uid(connection, stream.uid).tables
    left = left_now(capture_batches.known_to_newest(connection, stream.uid), watched, stream.tables)
    if len(left) > MOST_LEFT:
        log.warning(_FORGETS, stream.name, len(left) - MOST_LEFT)
    return left[-MOST_LEFT:]


def _move_on(
    connection: sa.Connection, stream: ChangeStream, batch: CaptureBatch, result: CaptureResult
) -> ChangeStream:
    """All that the batch changes, besides its own row. Tables that are not watched any more are left out. ALL takes in
    the tables of a batch that another state of the store had opened.
    """
    if not change_streams.take_next_batch(
        connection, stream.uid, captured=batch.number, following=stream.next_batch, until=result.published_until
    ) or not partitions.close(connection, stream.uid, result.closed):
        raise _refused(batch, "the change stream is not where it was when the batch was opened")
    partitions.insert(connection, stream.uid, result.opened)
    partitions.keep(connection, stream.uid, result.kept)
    partitions.add_load(connection, stream.uid, result.load)
    ends = {one.watched.table.table_id: one.end for one in batch.ranges}
    watched = tuple(
        replace(one, captured=max(one.captured, ends.get(one.table.table_id, one.captured)))
        for one in (*stream.tables, *_unknown(stream, batch, result))
    )
    change_streams.watch(connection, stream.uid, watched, everything=stream.everything)
    return change_streams.by_uid(connection, stream.uid)


def _unknown(stream: ChangeStream, batch: CaptureBatch, result: CaptureResult) -> tuple[WatchedTable, ...]:
    if result.taken is None or not stream.everything:
        return ()
    known = {one.table.table_id for one in stream.tables}
    return tuple(one.watched for one in batch.ranges if one.watched.table.table_id not in known)


def _require_whole(batch: CaptureBatch, result: CaptureResult) -> None:
    """Raises CaptureChanged for a result whose partitions are not those of the batch, or leave keys out."""
    closed = {one.token for one in result.closed}
    going_on = [one for one in batch.active if one.token not in closed]
    if not closed <= {one.token for one in batch.active} or not tiles((*going_on, *result.opened)):
        raise _refused(batch, "its partitions do not cover every key once")
    boundary = result.published_until
    edges = (*(one.end for one in result.closed), *(one.start for one in result.opened))
    if boundary <= batch.floor or any(edge != boundary for edge in edges):
        raise _refused(
            batch, f"it publishes up to {boundary.isoformat()}, and partitions change elsewhere, or not after"
        )
    if not {one.token for one in result.load} <= {one.token for one in batch.active}:
        raise _refused(batch, "it has records of partitions that were not active")


def _digest(result: CaptureResult) -> str:
    """Digest of what readers can see: two attempts that found the same records answer the same."""
    rows: dict[str, int] = {}
    for one in result.load:
        rows[one.token] = rows.get(one.token, 0) + one.rows
    said = (
        result.number,
        result.published_until,
        (result.transactions, result.records, result.rows),
        rows,
        sorted((one.token, one.lo, one.hi, one.end) for one in result.closed),
        sorted((one.token, one.lo, one.hi, one.parents, one.start) for one in result.opened),
    )
    return hashlib.sha256(to_json(said).encode()).hexdigest()


def _refused(batch: CaptureBatch, problem: str) -> CaptureChanged:
    return CaptureChanged(number=batch.number, stream=batch.stream.name, problem=problem)
