"""The tables of the control store, once. Migrations lead to exactly this (tests/control/test_migrations.py)."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

__all__ = [
    "UtcDateTime",
    "backfills",
    "capture_batches",
    "change_streams",
    "chunks",
    "consumer_groups",
    "group_partitions",
    "group_sinks",
    "job_targets",
    "jobs",
    "metadata",
    "offset_moves",
    "partition_load",
    "partitions",
    "statements",
    "stores",
    "stream_health",
    "streams",
    "transactions",
    "watched_tables",
    "windows",
]

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time, kept in UTC; a naive one is refused. Microseconds survive on every store."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone cannot be stored: {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Stores without zones hand back naive UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


stores = sa.Table(
    "tidemark_store",
    metadata,
    sa.Column("store_id", sa.String(36), primary_key=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
)

streams = sa.Table(
    "tidemark_stream",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded_name", sa.Text, nullable=False),  # names differ in more than case (R12)
    sa.Column("source_name", sa.Text, nullable=False),
    sa.Column("source_path", sa.Text, nullable=False),
    sa.Column("source_table_id", sa.String(64), nullable=False),
    sa.Column("source_addressing", sa.String(16), nullable=False),
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("offset_version", sa.BigInteger, nullable=False),
    sa.Column("initial_rows_pending", sa.Boolean, nullable=False),
    sa.Column("serial", sa.BigInteger, nullable=False),  # only grows (PROTOCOL step 7)
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("anchor", UtcDateTime, nullable=False),
    sa.Column("comment", sa.Text),
    sa.Column(
        "held_by", sa.String(36), sa.ForeignKey("tidemark_transaction.id")
    ),  # the open transaction; one at most by construction (I9)
    sa.Column("dropped_at", UtcDateTime),  # a dropped stream keeps its history; its uid is never used again
    sa.Column("view_query", sa.Text),  # JSON of the ViewQuery; NULL: the source is a table
    sa.Column("view_bases", sa.Text),  # JSON of the BaseOffsets of a view; offset_version is their sum
    sa.Column("key_columns", sa.Text),  # JSON of the columns that identify a row; NULL: its row id does
    sa.Column("rebased_from", sa.String(36)),  # uid of the stream that went on as this one; NULL: it was created
)
sa.Index(
    "uq_tidemark_stream_live_name",
    streams.c.folded_name,
    unique=True,
    sqlite_where=streams.c.dropped_at.is_(None),
    postgresql_where=streams.c.dropped_at.is_(None),
)

stream_health = sa.Table(
    "tidemark_stream_health",
    metadata,
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(streams.c.uid), primary_key=True),
    sa.Column("consumptions", sa.BigInteger, nullable=False),  # committed; those of empty windows among them
    sa.Column("empty_windows", sa.BigInteger, nullable=False),
    sa.Column("rows_delivered", sa.BigInteger, nullable=False),
    sa.Column("rows_quarantined", sa.BigInteger, nullable=False),
    sa.Column("failures", sa.BigInteger, nullable=False),  # attempts that failed, in all
    sa.Column("failures_in_row", sa.BigInteger, nullable=False),  # since the last commit
    sa.Column("failing_since", UtcDateTime),  # the first of them
    sa.Column("last_failed_at", UtcDateTime),
    sa.Column("last_error_type", sa.Text),
    sa.Column("last_error", sa.Text),
    sa.Column("last_failed_run", sa.Text),
)

offset_moves = sa.Table(
    "tidemark_offset_move",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(streams.c.uid), nullable=False, index=True),
    sa.Column("from_version", sa.BigInteger, nullable=False),
    sa.Column("to_version", sa.BigInteger, nullable=False),
    sa.Column("moved_at", UtcDateTime, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("run", sa.Text),
)

transactions = sa.Table(
    "tidemark_transaction",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("dag_id", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("task_id", sa.Text, nullable=False),
    sa.Column("map_index", sa.Integer, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("serial", sa.BigInteger, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("lease_until", UtcDateTime, nullable=False),
    sa.Column("submitted", sa.Boolean, nullable=False),
    sa.Column("job_deadline", UtcDateTime),  # the latest of all jobs
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("closed_at", UtcDateTime),
    sa.Column("taken_by", sa.Text),  # JSON of the key that took it over (step 4)
    sa.Column("result", sa.Text),  # JSON of the CommitResult
)
sa.Index(
    "uq_tidemark_transaction_key",
    transactions.c.dag_id,
    transactions.c.run_id,
    transactions.c.task_id,
    transactions.c.map_index,
    unique=True,
    sqlite_where=transactions.c.state != "released",
    postgresql_where=transactions.c.state != "released",
)

windows = sa.Table(
    "tidemark_window",
    metadata,
    sa.Column("transaction_id", sa.String(36), sa.ForeignKey(transactions.c.id), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),  # 0 is the lead stream
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(streams.c.uid), nullable=False, index=True),
    sa.Column("start_version", sa.BigInteger, nullable=False),
    sa.Column("end_version", sa.BigInteger, nullable=False),
    sa.Column("pinned", sa.Text, nullable=False),  # JSON of the StreamWindow: by value
)

statements = sa.Table(
    "tidemark_statement",
    metadata,
    sa.Column("transaction_id", sa.String(36), sa.ForeignKey(transactions.c.id), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("planned_write", sa.Text, nullable=False),  # JSON of the PlannedWrite
    sa.Column("target_name", sa.Text, nullable=False),
    sa.Column("target_path", sa.Text, nullable=False),
    sa.Column("target_table_id", sa.String(64), nullable=False),
    sa.Column("target_addressing", sa.String(16), nullable=False),
    sa.Column("base_version", sa.BigInteger, nullable=False),
    sa.Column("app_id", sa.Text, nullable=False),
    sa.Column("txn_version", sa.BigInteger, nullable=False),
    sa.Column("fenced", sa.Boolean, nullable=False),  # a job met a fence: a new version is due (step 19)
    sa.Column("evidence", sa.Text),  # JSON of the Evidence for this txn_version
)

jobs = sa.Table(
    "tidemark_job",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("transaction_id", sa.String(36), sa.ForeignKey(transactions.c.id), nullable=False, index=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("submitted_at", UtcDateTime, nullable=False),
    sa.Column("deadline", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),  # None: it may be alive until its deadline (step 18)
    sa.Column("outcome", sa.Text),
)

job_targets = sa.Table(
    "tidemark_job_target",
    metadata,
    sa.Column("job_id", sa.String(36), sa.ForeignKey(jobs.c.id), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("target_path", sa.Text, nullable=False, index=True),
    sa.Column("target_table_id", sa.String(64), nullable=False),  # as the job was given it (step 6)
)


change_streams = sa.Table(
    "tidemark_change_stream",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded_name", sa.Text, nullable=False),
    sa.Column("everything", sa.Boolean, nullable=False),  # FOR ALL
    sa.Column("options", sa.Text, nullable=False),  # JSON of the ChangeStreamOptions
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("log_path", sa.Text, nullable=False),
    sa.Column("published_until", UtcDateTime, nullable=False),  # exclusive; only grows
    sa.Column("next_batch", sa.BigInteger, nullable=False),
    sa.Column("trimmed_until", UtcDateTime),  # the log may lack records before it; only grows
    sa.Column("dropped_at", UtcDateTime),
)
sa.Index(
    "uq_tidemark_change_stream_live_name",
    change_streams.c.folded_name,
    unique=True,
    sqlite_where=change_streams.c.dropped_at.is_(None),
    postgresql_where=change_streams.c.dropped_at.is_(None),
)

watched_tables = sa.Table(
    "tidemark_watched_table",
    metadata,
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(change_streams.c.uid), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),  # as they were named
    sa.Column("table_path", sa.Text, nullable=False, index=True),
    sa.Column("watched", sa.Text, nullable=False),  # JSON of the WatchedTable
)

capture_batches = sa.Table(
    "tidemark_capture_batch",
    metadata,
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(change_streams.c.uid), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("batch", sa.Text, nullable=False),  # JSON of the CaptureBatch: by value
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("captured_at", UtcDateTime),
    sa.Column("transactions", sa.BigInteger),
    sa.Column("records", sa.BigInteger),
    sa.Column("rows", sa.BigInteger),
    sa.Column("published_until", UtcDateTime),
    sa.Column("digest", sa.String(64)),  # of the CaptureResult: a second answer must be the same
)

partitions = sa.Table(
    "tidemark_partition",
    metadata,
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(change_streams.c.uid), primary_key=True),
    sa.Column("token", sa.String(128), primary_key=True),
    sa.Column("lo", sa.Integer, nullable=False),
    sa.Column("hi", sa.Integer, nullable=False),
    sa.Column("parents", sa.Text, nullable=False),  # JSON of their tokens
    sa.Column("start_at", UtcDateTime, nullable=False),
    sa.Column("end_at", UtcDateTime),  # NULL: it is active
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Column("hot", sa.Integer, nullable=False),
    sa.Column("quiet", sa.Integer, nullable=False),
)
sa.Index("ix_tidemark_partition_start", partitions.c.stream_uid, partitions.c.start_at)  # the children of a boundary
sa.Index("ix_tidemark_partition_end", partitions.c.stream_uid, partitions.c.end_at)

partition_load = sa.Table(
    "tidemark_partition_load",
    metadata,
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(change_streams.c.uid), primary_key=True),
    sa.Column("token", sa.String(128), primary_key=True),
    sa.Column("start_at", UtcDateTime, primary_key=True),
    sa.Column("start_sequence", sa.String(32), primary_key=True),
    sa.Column("rows", sa.BigInteger, nullable=False),
)

consumer_groups = sa.Table(
    "tidemark_consumer_group",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(change_streams.c.uid), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded_name", sa.Text, nullable=False),
    sa.Column("start_at", UtcDateTime, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("paused", sa.Boolean, nullable=False),
    sa.Column("dropped_at", UtcDateTime),  # also of one that was reset: a new uid, so that sinks know it as another
)
sa.Index(
    "uq_tidemark_consumer_group_live_name",
    consumer_groups.c.stream_uid,
    consumer_groups.c.folded_name,
    unique=True,
    sqlite_where=consumer_groups.c.dropped_at.is_(None),
    postgresql_where=consumer_groups.c.dropped_at.is_(None),
)

backfills = sa.Table(
    "tidemark_backfill",
    metadata,
    sa.Column("group_uid", sa.String(36), sa.ForeignKey(consumer_groups.c.uid), primary_key=True),
    sa.Column("source_id", sa.String(64), primary_key=True),
    sa.Column("target_id", sa.String(64), nullable=False),
    sa.Column("version", sa.BigInteger, nullable=False),  # of the source; -1: before its first
    sa.Column("holds", sa.Boolean, nullable=False),  # the group had read nothing: it waits until this is done
    sa.Column("rows", sa.BigInteger),
    sa.Column("done_at", UtcDateTime),
)

group_partitions = sa.Table(
    "tidemark_group_partition",
    metadata,
    sa.Column("group_uid", sa.String(36), sa.ForeignKey(consumer_groups.c.uid), primary_key=True),
    sa.Column("token", sa.String(128), primary_key=True),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("watermark_at", UtcDateTime, nullable=False),
    sa.Column("watermark_sequence", sa.String(32), nullable=False),
    sa.Column("chunks", sa.BigInteger, nullable=False),
    sa.Column("failed_run", sa.Text),
    sa.Column("error", sa.Text),
)
sa.Index(
    "ix_tidemark_group_partition_state",
    group_partitions.c.group_uid,
    group_partitions.c.state,
    group_partitions.c.watermark_at,
)

group_sinks = sa.Table(
    "tidemark_group_sink",
    metadata,
    sa.Column("group_uid", sa.String(36), sa.ForeignKey(consumer_groups.c.uid), primary_key=True),
    sa.Column("table_path", sa.Text, primary_key=True),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("since", UtcDateTime, nullable=False),
)

chunks = sa.Table(
    "tidemark_chunk",
    metadata,
    sa.Column("group_uid", sa.String(36), sa.ForeignKey(consumer_groups.c.uid), primary_key=True),
    sa.Column("token", sa.String(128), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("start_at", UtcDateTime, nullable=False),
    sa.Column("start_sequence", sa.String(32), nullable=False),
    sa.Column("end_at", UtcDateTime, nullable=False),
    sa.Column("end_sequence", sa.String(32), nullable=False),
    sa.Column("expected", sa.BigInteger, nullable=False),
    sa.Column("last", sa.Boolean, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("rows", sa.BigInteger),
    sa.Column("facts", sa.Text),
    sa.Column("run", sa.Text),  # key of the task that wrote it ahead
    sa.Column("written_at", UtcDateTime),
    sa.Column("committed_at", UtcDateTime),
)
sa.Index("ix_tidemark_chunk_state", chunks.c.group_uid, chunks.c.state)
