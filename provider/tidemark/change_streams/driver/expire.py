"""Retention of a change stream's log: batches that are older leave it, and the log says up to where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from tidemark.change_streams.driver.log_rows import LogRows
from tidemark.change_streams.driver.log_table import EXPIRED_TOKEN, EXPIRED_TYPES, LOG_COLUMNS, LOG_DDL, TOKEN_COLUMN
from tidemark.change_streams.model.change_streams import EPOCH, MICROSECOND, ChangeStream
from tidemark.change_streams.model.jobs import ExpiredRows
from tidemark.delivery.driver.exactly_once import CONFLICTS
from tidemark.errors import TableNotFound
from tidemark.failpoints import failpoint
from tidemark.jobs.own_tables import require_no_lost_commits
from tidemark.lake.delta_log import DeltaLog
from tidemark.sql.statements import path_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["expire_change_log"]

_ATTEMPTS = 5


def expire_change_log(
    spark: SparkSession,
    stream: ChangeStream,
    *,
    now: datetime,
    only_writer: bool = False,
    options: Mapping[str, str] | None = None,
    go_on: Callable[[], None] = lambda: None,
) -> ExpiredRows:
    """Remove the rows of all batches that lie before `now` less the stream's retention, and are so wholly unreadable.

    Partitions stay, and the newest batch's window, by which a late retry of its capture knows it. First the log says
    what goes, so that no reader takes a gap for quiet. Captures may append during the removal; VACUUM deletes the
    files. `go_on` raises when the job is to stop. A second run removes what the first has left. A log that does not
    exist has nothing to remove. Raises CommitsMayBeLost if a capture's commit could be lost by these. `only_writer`:
    whether nothing is captured while it runs.
    """
    try:
        uri = DeltaLog.open(stream.log_path, options).uri
    except TableNotFound:
        return ExpiredRows(None)
    require_no_lost_commits(spark, uri, only_writer=only_writer)
    log = LogRows.pinned(spark, uri, options)
    go_on()
    found = log.batches_until(now - stream.options.retention)
    if found is None:
        return ExpiredRows(log.expired_until())
    batch, until = found
    if (log.expired_until() or EPOCH) < until:
        _mark(spark, uri, batch, until)
    failpoint("expire.marked")
    go_on()
    return ExpiredRows(until, _remove(spark, uri, batch, until, log.newest_batch()))


def _mark(spark: SparkSession, uri: str, batch: int, until: datetime) -> None:
    mark = {TOKEN_COLUMN: EXPIRED_TOKEN, "record_type": "expired", "batch": batch, "commit_timestamp": until}
    row = tuple(mark.get(name) for name in LOG_COLUMNS)
    spark.createDataFrame([row], LOG_DDL).write.format("delta").mode("append").save(uri)


def _remove(spark: SparkSession, uri: str, batch: int, until: datetime, newest: int) -> int:
    """How many rows went. SQL, as Delta's API does not say that."""
    earlier = f"timestamp_micros({(until - EPOCH) // MICROSECOND})"
    statement = (
        f"DELETE FROM {path_name(uri)} WHERE (record_type = 'data' AND batch <= {batch}) "
        f"OR (record_type = 'window' AND batch <= {batch} AND batch < {newest}) "
        f"OR (record_type IN {EXPIRED_TYPES} AND commit_timestamp < {earlier})"
    )
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            (row,) = spark.sql(statement).collect()
            return int(row["num_affected_rows"])
        except CONFLICTS:  # somebody compacts the log, say; of ours nothing was committed
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")
