"""The log table of a change stream as capture writes it: made once, a batch appended once, and read back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tidemark.engine.change_streams.log_table import LOG_COLUMNS, LOG_DDL, META_TOKEN, TOKEN_COLUMN
from tidemark.engine.writes.exactly_once import CONFLICTS
from tidemark.errors import ChangeStreamRefused, SerialReused, TableNotFound
from tidemark.kill_points import reach
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.change_streams import CaptureBatch, CaptureResult, Partition
from tidemark.model.codec import from_json, to_json, to_plain
from tidemark.planning import source_schema
from tidemark.planning.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["append_batch", "find_batch", "meta_rows", "open_log"]

_MARK = "tidemark_capture"
_STATS = ("record_type", "batch", "commit_timestamp", "record_sequence")
_PROPERTIES = {
    "delta.dataSkippingStatsColumns": ", ".join(_STATS),
}


def open_log(spark: SparkSession, batch: CaptureBatch, options: Mapping[str, str] | None = None) -> DeltaLog:
    """The stream's log table, made where it is not there, also where another does so at this moment.

    Raises ChangeStreamRefused for a table of other columns, NotADeltaTable.
    """
    path = batch.stream.log_path
    try:
        log = DeltaLog.open(path, options)
    except TableNotFound:
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in _PROPERTIES.items())
        try:
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {path_name(path)} ({LOG_DDL}) USING delta PARTITIONED BY ({TOKEN_COLUMN}) "
                f"TBLPROPERTIES ({listed})"
            )
        except PySparkException:
            DeltaLog.open(path, options)  # another made it; if not, this says so
        log = DeltaLog.open(path, options)
    found = {field.name for field in source_schema.fields(log.state().metadata)}
    if lacking := [name for name in LOG_COLUMNS if name not in found]:
        problem = f"the table at {log.uri} is not its log: it lacks the columns {', '.join(lacking)}"
        raise ChangeStreamRefused(stream=batch.stream.name, problem=problem)
    return log


def find_batch(spark: SparkSession, log: DeltaLog, batch: CaptureBatch) -> CaptureResult | None:
    """What the batch has put into the log, with `found` set; None if it is not there.

    Raises SerialReused if its number stands there for another batch, or for none.
    """
    last, mark = _last_batch(log, batch.stream.uid)
    if last is not None and last < batch.number:
        return None
    if last == batch.number and mark.get("digest") != _digest(batch):
        raise _reused(batch, last)
    found = _found(spark, log, batch)
    if found is None and last is not None:
        raise _reused(batch, last)
    return found


def append_batch(
    spark: SparkSession, log: DeltaLog, batch: CaptureBatch, attempt: str, data: DataFrame | None, result: CaptureResult
) -> CaptureResult:
    """One commit with the batch's rows and its own, and the result that the log has afterwards.

    `attempt` is a name that no other has: if another attempt came first, nothing is written, and its result is the
    answer. Raises SerialReused.
    """
    meta = meta_rows(spark, batch, result, with_active=batch.number == 0 or log.head() == 0)
    rows = meta if data is None else data.unionByName(meta)
    mark = {"attempt": attempt, "batch": batch.number, "digest": _digest(batch)}
    writer = rows.write.format("delta").mode("append").option("userMetadata", json.dumps({_MARK: mark}, sort_keys=True))
    writer = writer.option("txnAppId", batch.stream.uid).option("txnVersion", batch.number + 1)
    reach("capture.before")
    try:
        writer.save(log.uri)
    except CONFLICTS:  # another attempt has won; if it was something else, the batch is not found
        found = find_batch(spark, log, batch)
        if found is None:
            raise
        return found
    reach("capture.written")
    if _last_batch(log, batch.stream.uid) == (batch.number, mark):
        return result
    found = find_batch(spark, log, batch)  # Delta skips a number that it has, and does not say so
    if found is None:
        raise _reused(batch, None)
    return found


def meta_rows(spark: SparkSession, batch: CaptureBatch, result: CaptureResult, *, with_active: bool) -> DataFrame:
    """The batch's `window` row, and a `partition` row for each that it opens; with the first batch those before it."""
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
        "result": to_json(result),
    }
    every = [{TOKEN_COLUMN: META_TOKEN, **row} for row in (*rows, window)]
    return spark.createDataFrame([tuple(row.get(name) for name in LOG_COLUMNS) for row in every], LOG_DDL)


def _found(spark: SparkSession, log: DeltaLog, batch: CaptureBatch) -> CaptureResult | None:
    rows = spark.read.format("delta").load(log.uri)
    window = rows.where((F.col(TOKEN_COLUMN) == META_TOKEN) & (F.col("record_type") == "window"))
    for row in window.where(F.col("batch") == batch.number).select("result").limit(1).collect():
        return replace(from_json(CaptureResult, row["result"]), found=True)
    return None


def _last_batch(log: DeltaLog, uid: str) -> tuple[int | None, Mapping[str, object]]:
    """Number and mark of the newest batch in the log; None if no commit that is kept has one."""
    for version in range(log.head(), log.earliest() - 1, -1):
        for commit in log.commits(version - 1, version):
            if uid in commit.transactions:
                return commit.transactions[uid] - 1, _mark_in(commit.user_metadata)
    return None, {}


def _digest(batch: CaptureBatch) -> str:
    """What tells a batch from another with its number."""
    ranges = sorted([taken.watched.table.table_id, taken.start, taken.end] for taken in batch.ranges)
    text = json.dumps([batch.stream.uid, batch.number, to_plain(batch.floor), ranges])
    return hashlib.sha256(text.encode()).hexdigest()


def _mark_in(user_metadata: str | None) -> Mapping[str, object]:
    try:
        said = json.loads(user_metadata or "null")
    except ValueError:
        return {}
    mark = said.get(_MARK) if isinstance(said, dict) else None
    return mark if isinstance(mark, dict) else {}


def _reused(batch: CaptureBatch, last: int | None) -> SerialReused:
    return SerialReused(target=batch.stream.log_path, app_id=batch.stream.uid, txn_version=batch.number + 1, found=last)
