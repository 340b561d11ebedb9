"""The event log of a replication: one Delta table, append-only, a row for each event, partitioned by `object`.

A batch is one commit, so it is stored once or not at all. The replication's capture is its Delta application, and the
batch's number its version. Events of an object are in the order of (position, sequence). Two objects may share an
`object` (`a_b`.`c` and `a`.`b_c`), so `object_id` identifies an event's object. Events that belong to no object have
`object` '_replication'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from tidemark.changes.planning import source_schema
from tidemark.delivery.driver.exactly_once import CONFLICTS
from tidemark.errors import EventLogChanged, TableNotFound
from tidemark.failpoints import failpoint
from tidemark.jobs.own_tables import make_table
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.event_logs import EventBatch, batches, capture_app_id, restored_behind
from tidemark.replication.driver.log_forms import LogForm, form_of_kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemark.replication.model.jobs import ApplyEvents, CaptureEvents, ExpireEvents, WriteEventFiles

    _Request = CaptureEvents | ApplyEvents | ExpireEvents | WriteEventFiles

__all__ = [
    "NO_OBJECT",
    "OBJECT_COLUMN",
    "append_events",
    "event_columns",
    "event_ddl",
    "newest_batch",
    "open_event_log",
    "require_whole",
    "widths",
]

OBJECT_COLUMN = "object"
NO_OBJECT = "_replication"

_COLUMNS = {
    "stream_name": "string",
    "read_method": "string",  # by the kind of source
    OBJECT_COLUMN: "string",  # `schema_table` as it was registered
    "schema_key": "string",  # sha1 of the ordered (name, unified type, key); null without an object
    "uuid": "string",  # of version 5, so a second reading of the source's log gives it again
    "read_timestamp": "timestamp",
    "source_timestamp": "timestamp",  # of the commit; null for a message outside a transaction
    "sort_keys": "array<string>",  # source timestamp in milliseconds, the place by the kind of source, sequence
    "source_metadata": "",  # by the kind of source; schema and table: the names that the source had then
    "payload": "string",  # JSON object: column → canonical text or null; SCHEMA: a TableSchema; MESSAGE: its text
    # ours
    "object_id": "string",  # the table's identity in the source (an OID)
    "position": "string",  # LogPosition.commit
    "sequence": "bigint",  # from 1 within the transaction, over all objects
    "change": "string",  # INSERT, UPDATE, DELETE, UPDATE-DELETE, UPDATE-INSERT, TRUNCATE, SCHEMA, HEARTBEAT, MESSAGE
    "key": "string",  # JSON array of the key's canonical texts, in the order of the columns; null without a key
    "old_key": "string",  # the INSERT half of a moved key: the key that the row had
    "unchanged": "array<string>",  # columns that are not in the payload, as they stayed what they were; null: none
    "problem": "string",  # null, or `toasted_key`: the key is not in the source's log
    "batch": "bigint",
}

_STATS = ("position", "sequence", "change", "batch", "object_id")
_PROPERTIES = {"delta.dataSkippingStatsColumns": ", ".join(_STATS)}


def event_columns(form: LogForm) -> dict[str, str]:
    """Name → type of the event log's columns, for a kind of source."""
    return {**_COLUMNS, "source_metadata": form.metadata_ddl}


def event_ddl(form: LogForm) -> str:
    """The columns of the event log, as DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in event_columns(form).items())


def open_event_log(spark: SparkSession, request: CaptureEvents, options: Mapping[str, str] | None = None) -> DeltaLog:
    """The replication's event log, made if it does not exist, even if another does so at this moment.

    Raises EventLogChanged for a table of other columns, or if it is gone though batches were written to it;
    NotADeltaTable.
    """
    try:
        log = DeltaLog.open(request.event_log, options)
    except TableNotFound as error:
        if request.batches:
            raise _gone(request) from error
        log = make_table(
            spark,
            request.event_log,
            event_ddl(form_of_kind(request.kind)),
            properties=_PROPERTIES,
            partitioned_by=(OBJECT_COLUMN,),
            options=options,
        )
    found = {field.name for field in source_schema.fields(log.state().metadata)}
    if lacking := [name for name in _COLUMNS if name not in found]:
        problem = f"is another table: it lacks the columns {', '.join(lacking)}"
        raise EventLogChanged(event_log=log.uri, replication=request.stream, problem=problem)
    return log


def newest_batch(spark: SparkSession, log: DeltaLog, app_id: str, request: _Request) -> EventBatch | None:
    """The newest batch of the log; None if none was written, or the commits with the batches are cleaned up.

    Raises EventLogChanged if batches that the store knows are missing.
    """
    found = next(batches(log, app_id), None)
    number = 0 if found is None else found.number
    if number < request.batches and (found is not None or log.earliest() == 0):
        problem = f"has batches up to {number} only, of {request.batches}: it was restored, or is another table"
        raise EventLogChanged(event_log=log.uri, replication=request.stream, problem=problem)
    version = restored_behind(log, app_id)
    if version is not None and not _has_events_of(spark, log, number):
        problem = f"was restored to a time before batch {number}. Restore it to version {version}, or a later one"
        raise EventLogChanged(event_log=log.uri, replication=request.stream, problem=problem)
    return found


def require_whole(
    spark: SparkSession,
    store_id: str,
    request: ApplyEvents | ExpireEvents | WriteEventFiles,
    options: Mapping[str, str] | None = None,
) -> DeltaLog:
    """For a reader: the log. Raises EventLogChanged if it is gone, or batches that the store knows are."""
    try:
        log = DeltaLog.open(request.event_log, options)
    except TableNotFound as error:
        raise _gone(request) from error
    newest_batch(spark, log, capture_app_id(store_id, request.replication_uid), request)
    return log


def widths(log: DeltaLog, app_id: str) -> tuple[int, int]:
    """The widths for `fitted` before the log is read: of all its events, as a file may have them in any company."""
    newest = next(batches(log, app_id), None)
    return (0, 0) if newest is None else (newest.widest, newest.mean)


def append_events(
    log: DeltaLog, app_id: str, request: CaptureEvents, batch: EventBatch, events: DataFrame
) -> EventBatch:
    """One commit with the batch's events, and the newest batch that the log has afterwards. This is the given batch, or
    that of another capture which came first; then nothing was written. Raises EventLogChanged.
    """
    failpoint("events.before")
    writer = events.write.format("delta").mode("append").option("userMetadata", batch.to_text())
    try:
        writer.option("txnAppId", app_id).option("txnVersion", batch.number).save(log.uri)
    except CONFLICTS:
        found = next(batches(log, app_id), None)
        if found is None or found.number < batch.number:  # not a capture: somebody else's commit, and a retry does it
            raise
        return found
    failpoint("events.written")
    found = next(batches(log, app_id), None)
    if found is None or found.number < batch.number:  # Delta skips a number that it has, and does not say so
        problem = f"knows of a batch {batch.number} and has none: it was restored"
        raise EventLogChanged(event_log=log.uri, replication=request.stream, problem=problem)
    return found


def _gone(request: _Request) -> EventLogChanged:
    problem = f"is gone, with {request.batches} batches"
    return EventLogChanged(event_log=request.event_log, replication=request.stream, problem=problem)


def _has_events_of(spark: SparkSession, log: DeltaLog, number: int) -> bool:
    return not spark.read.format("delta").load(log.uri).where(F.col("batch") == number).isEmpty()
