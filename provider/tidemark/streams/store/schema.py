"""Streams, their transactions and jobs."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = [
    "catalog_tables",
    "job_targets",
    "jobs",
    "offset_moves",
    "statements",
    "stream_health",
    "streams",
    "target_numbers",
    "transactions",
    "windows",
]


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
    sa.Column("known_serial", sa.BigInteger),  # as it came into this store: another may have used it
)
sa.Index(
    "uq_tidemark_stream_live_name",
    streams.c.folded_name,
    unique=True,
    sqlite_where=streams.c.dropped_at.is_(None),
    postgresql_where=streams.c.dropped_at.is_(None),
)

sa.Index("ix_tidemark_stream_held_by", streams.c.held_by)

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
    sa.Column("stream_uid", sa.String(36), sa.ForeignKey(streams.c.uid), nullable=False),
    sa.Column("from_version", sa.BigInteger, nullable=False),
    sa.Column("to_version", sa.BigInteger, nullable=False),
    sa.Column("moved_at", UtcDateTime, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("run", sa.Text),
)

sa.Index("ix_tidemark_offset_move_stream_uid", offset_moves.c.stream_uid, offset_moves.c.id)  # the newest of a stream

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
    sa.Column("nothing_of", sa.String(36)),  # of windows that held nothing, whose streams: the rows are used again
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

sa.Index("ix_tidemark_transaction_nothing_of", transactions.c.nothing_of, transactions.c.closed_at)
sa.Index("ix_tidemark_transaction_closed_at", transactions.c.closed_at)

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
    sa.Column("host", sa.Text),  # where its processes can be found; None: nowhere
    sa.Column("application", sa.Text),  # of a driver in a cluster
)

job_targets = sa.Table(
    "tidemark_job_target",
    metadata,
    sa.Column("job_id", sa.String(36), sa.ForeignKey(jobs.c.id), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("target_path", sa.Text, nullable=False, index=True),
    sa.Column("target_table_id", sa.String(64), nullable=False),  # as the job was given it (step 6)
)

target_numbers = sa.Table(
    "tidemark_target_number",
    metadata,
    sa.Column("target_path", sa.Text, primary_key=True),
    sa.Column("target_table_id", sa.String(64), primary_key=True),
    sa.Column("stream_uid", sa.String(36), primary_key=True),  # as in Delta's entry; it need not be of this store
    sa.Column("serial", sa.BigInteger, nullable=False),  # the highest that a job was ordered with; it only grows
    sa.Column("version", sa.BigInteger, nullable=False),  # up to here the table's log was looked at
)
sa.Index("ix_tidemark_target_number_target_table_id", target_numbers.c.target_table_id)

catalog_tables = sa.Table(
    "tidemark_catalog_table",
    metadata,
    sa.Column("conn_id", sa.Text, primary_key=True),  # connections of one store may have catalogs of their own
    sa.Column("name", sa.Text, primary_key=True),  # with its catalog, as tasks write it
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("found_at", UtcDateTime, nullable=False),
)
