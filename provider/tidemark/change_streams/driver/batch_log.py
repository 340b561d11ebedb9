"""The log table of a change stream as capture writes it: made once, a batch appended once, and read back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.change_streams.driver.log_table import LOG_COLUMNS, LOG_DDL, META_TOKEN, TOKEN_COLUMN
from tidemark.change_streams.model.change_streams import CaptureBatch, CaptureResult, Partition, TableRange
from tidemark.changes.planning import source_schema
from tidemark.delivery.driver.exactly_once import CONFLICTS
from tidemark.errors import (
    BatchBarred,
    CaptureChanged,
    ChangeStreamRefused,
    DiscardedBatchCaptured,
    SerialReused,
    TableNotFound,
)
from tidemark.failpoints import failpoint
from tidemark.jobs.own_tables import make_table
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_paths import MARK, LogEntry, entries
from tidemark.model.codec import from_json, to_json, to_plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["append_batch", "bar_discarded", "find_batch", "meta_rows", "open_log"]

_STATS = ("record_type", "batch", "commit_timestamp", "record_sequence")
_PROPERTIES = {
    "delta.dataSkippingStatsColumns": ", ".join(_STATS),
}


def open_log(spark: SparkSession, batch: CaptureBatch, options: Mapping[str, str] | None = None) -> DeltaLog:
    """The stream's log table. It is created if it does not exist, even if another caller creates it at this moment.

    Raises ChangeStreamRefused for a table of other columns, NotADeltaTable.
    """
    path = batch.stream.log_path
    try:
        log = DeltaLog.open(path, options)
    except TableNotFound:
        log = make_table(spark, path, LOG_DDL, properties=_PROPERTIES, partitioned_by=(TOKEN_COLUMN,), options=options)
    found = {field.name for field in source_schema.fields(log.state().metadata)}
    if lacking := [name for name in LOG_COLUMNS if name not in found]:
        problem = f"the table at {log.uri} is not its log: it lacks the columns {', '.join(lacking)}"
        raise ChangeStreamRefused(stream=batch.stream.name, problem=problem)
    return log


def find_batch(spark: SparkSession, log: DeltaLog, batch: CaptureBatch) -> CaptureResult | None:
    """The log's result under the batch's number, with `found` set; None if the log has none.

    A store that was restored from an older backup opens batches again that the log already has, with other ranges. The
    ranges of the log count, and `taken` has them. Raises DiscardedBatchCaptured if the log has a batch that is
    discarded here; this check comes first. Raises BatchBarred if no batch of that number can ever enter the log. Raises
    CaptureChanged if the log's records of that number have expired. Raises SerialReused if the log does not say which
    batch had that number.
    """
    last = _newest(log, batch.stream.uid)
    if last is not None and last.number < batch.number:
        return None
    if last is None and log.earliest() == 0:  # all commits that there ever were have been looked at
        return None
    _require_none_discarded(log, batch)
    found = _found(spark, log, batch)
    if last is None and (found is None or found.taken is None):
        return found
    if found is None:
        raise _lacking(log, batch)
    if found.taken is None:  # of an earlier release
        if not any(entry.mark.get("digest") == _digest(batch) for entry in entries(log, batch.stream.uid)):
            raise _refused(batch, last)
        return found
    return replace(found, taken=None) if _ranges(found.taken) == _ranges(batch.ranges) else found


def bar_discarded(spark: SparkSession, log: DeltaLog, batch: CaptureBatch, attempt: str) -> None:
    """See to it that no batch which was discarded before this one can come into the log any more.

    The store discards a batch without stopping its capture, which may commit at any later time. The versions of the
    discarded batch are in this batch again. So a commit without rows first takes the numbers up, under the stream's
    application id. Delta skips a later commit with a number that is not higher. It refuses one of two commits at once,
    as both read the id's number. After that, the log gets no more batches of those numbers. A second run finds them
    taken up.

    Raises DiscardedBatchCaptured if one had come in before; then nothing of this batch may be written.
    """
    if not batch.discarded:
        return
    uid, last = batch.stream.uid, max(batch.discarded)
    newest = _newest(log, uid)
    if newest is None or newest.number < last:
        mark = {"attempt": attempt, "batch": last, "barrier": True}
        try:
            _append(spark.createDataFrame([], LOG_DDL), log, uid, last, mark)
        except CONFLICTS:
            newest = _newest(log, uid)
            if newest is None or newest.number < last:  # not a capture: somebody else's commit, and a retry does it
                raise
    _require_none_discarded(log, batch)


def append_batch(
    spark: SparkSession, log: DeltaLog, batch: CaptureBatch, attempt: str, data: DataFrame | None, result: CaptureResult
) -> CaptureResult:
    """One commit with the batch's rows and its own, and the result that the log has afterwards.

    `attempt` is a name that no other has: if another attempt came first, nothing is written, and its result is the
    answer. Raises as `find_batch`.
    """
    meta = meta_rows(spark, batch, result, with_active=batch.is_first or log.head() == 0)
    rows = meta if data is None else data.unionByName(meta)
    mark = {"attempt": attempt, "batch": batch.number, "digest": _digest(batch)}
    failpoint("capture.before")
    try:
        _append(rows, log, batch.stream.uid, batch.number, mark)
    except CONFLICTS:  # another attempt has won; if it was something else, the batch is not found
        found = find_batch(spark, log, batch)
        if found is None:
            raise
        return found
    failpoint("capture.written")
    if _newest(log, batch.stream.uid) == LogEntry(batch.number, mark):
        return result
    found = find_batch(spark, log, batch)  # Delta skips a number that it has, and does not say so
    if found is None:
        raise _refused(batch, None)
    return found


def meta_rows(spark: SparkSession, batch: CaptureBatch, result: CaptureResult, *, with_active: bool) -> DataFrame:
    """The batch's `window` row, which has its ranges, and a `partition` row for each partition that it opens. With the
    first batch (`with_active`), the partitions before it have rows, too.
    """
    partitions: Sequence[Partition] = (*(batch.active if with_active else ()), *result.opened)
    rows: list[dict[str, object]] = [
        {
            "record_type": "partition",
            "batch": partition.batch,
            "commit_timestamp": partition.start,
            "token": partition.token,
            "lo": partition.lo,
            "hi": partition.hi,
            "parents": list(partition.parents),
        }
        for partition in partitions
    ]
    window = {
        "record_type": "window",
        "batch": batch.number,
        "commit_timestamp": result.published_until,
        "result": to_json(replace(result, taken=batch.ranges)),
    }
    every = [{TOKEN_COLUMN: META_TOKEN, **row} for row in (*rows, window)]
    return spark.createDataFrame([tuple(row.get(name) for name in LOG_COLUMNS) for row in every], LOG_DDL)


def _append(rows: DataFrame, log: DeltaLog, uid: str, number: int, mark: Mapping[str, object]) -> None:
    writer = rows.write.format("delta").mode("append").option("userMetadata", json.dumps({MARK: mark}, sort_keys=True))
    writer.option("txnAppId", uid).option("txnVersion", number + 1).save(log.uri)


def _found(spark: SparkSession, log: DeltaLog, batch: CaptureBatch) -> CaptureResult | None:
    rows = spark.read.format("delta").load(log.uri)
    window = rows.where((F.col(TOKEN_COLUMN) == META_TOKEN) & (F.col("record_type") == "window"))
    for row in window.where(F.col("batch") == batch.number).select("result").limit(1).collect():
        return replace(from_json(CaptureResult, row["result"]), found=True)
    return None


def _lacking(log: DeltaLog, batch: CaptureBatch) -> CaptureChanged:
    """Why the log, which is further, does not have the batch: its number was barred, or its records have expired."""
    entry = next((one for one in entries(log, batch.stream.uid) if one.number <= batch.number), None)
    never_came = log.earliest() == 0 if entry is None else entry.is_barrier or entry.number < batch.number
    if never_came:
        return BatchBarred(number=batch.number, stream=batch.stream.name)
    problem = (
        "the log had that number, and its records have expired. The control store was restored from a backup that is "
        "older than the retention. Restore a newer one, or drop and recreate the change stream"
    )
    return CaptureChanged(number=batch.number, stream=batch.stream.name, problem=problem)


def _require_none_discarded(log: DeltaLog, batch: CaptureBatch) -> None:
    """Raises DiscardedBatchCaptured for the first of them that the log has."""
    there: list[int] = []
    for entry in entries(log, batch.stream.uid) if batch.discarded else ():
        if entry.number in batch.discarded and not entry.is_barrier:
            there.append(entry.number)
        if entry.number < min(batch.discarded):
            break
    if there:
        raise DiscardedBatchCaptured(number=min(there), stream=batch.stream.name)


def _newest(log: DeltaLog, uid: str) -> LogEntry | None:
    """The newest commit of capture; None if no commit that is kept is one."""
    return next(entries(log, uid), None)


def _digest(batch: CaptureBatch) -> str:
    """The digest that distinguishes a batch from another with its number."""
    text = json.dumps([batch.stream.uid, batch.number, to_plain(batch.floor), _ranges(batch.ranges)])
    return hashlib.sha256(text.encode()).hexdigest()


def _ranges(ranges: Sequence[TableRange]) -> list[tuple[str, int, int]]:
    return sorted((one.watched.table.table_id, one.start, one.end) for one in ranges)


def _refused(batch: CaptureBatch, last: LogEntry | None) -> SerialReused:
    uid, found = batch.stream.uid, None if last is None else last.number
    return SerialReused(target=batch.stream.log_path, app_id=uid, txn_version=batch.number + 1, found=found)
