"""Change streams, consumer groups and chunks."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = [
    "backfills",
    "capture_batches",
    "change_streams",
    "chunks",
    "consumer_groups",
    "group_partitions",
    "group_sinks",
    "partition_load",
    "partitions",
    "watched_tables",
]

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
    sa.Column("expired_until", UtcDateTime),  # the log may lack records before it; only grows
    sa.Column("dropped_at", UtcDateTime),
    sa.Column("last_run", sa.Text),  # key of the task that captured last, if a task did
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
    sa.Column("run", sa.Text),  # key of the task that captured it, or wrote it ahead
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
    sa.Column("failed_task", sa.Text),  # key of the task that met the error
)
sa.Index(
    "ix_tidemark_group_partition_state",
    group_partitions.c.group_uid,
    group_partitions.c.state,
    group_partitions.c.watermark_at,
)
sa.Index(
    "ix_tidemark_group_partition_failed",
    group_partitions.c.group_uid,
    group_partitions.c.token,
    sqlite_where=group_partitions.c.failed_run.is_not(None),
    postgresql_where=group_partitions.c.failed_run.is_not(None),
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
    sa.Column("run", sa.Text),  # the DAG run that has it, `dag/run`
    sa.Column("written_at", UtcDateTime),
    sa.Column("committed_at", UtcDateTime),
    sa.Column("task", sa.Text),  # key of the task that took it up last
)
sa.Index("ix_tidemark_chunk_state", chunks.c.group_uid, chunks.c.state)
sa.Index("ix_tidemark_chunk_committed_at", chunks.c.committed_at)
sa.Index("ix_tidemark_chunk_group_committed_at", chunks.c.group_uid, chunks.c.committed_at)  # the newest of a group
