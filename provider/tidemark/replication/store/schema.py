"""Replications of databases: the state of each, its objects, the writes to their targets, and every move."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from tidemark.control.schema import UtcDateTime, metadata
from tidemark.replication.model.replication import LogPosition

__all__ = [
    "PositionText",
    "object_writes",
    "replicated_objects",
    "replication_errors",
    "replication_moves",
    "replications",
]


class PositionText(TypeDecorator[LogPosition]):
    """A position as `commit/sequence`. It is compared in Python, or for equality: databases differ in how they sort."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: LogPosition | None, dialect: Dialect) -> str | None:
        """The text."""
        return None if value is None else f"{value.commit}/{value.sequence}"

    def process_result_value(self, value: str | None, dialect: Dialect) -> LogPosition | None:
        """The stored position."""
        if value is None:
            return None
        commit, _, sequence = value.rpartition("/")
        return LogPosition(commit, int(sequence))


replications = sa.Table(
    "tidemark_replication",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded_name", sa.Text, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("source_conn_id", sa.Text, nullable=False),
    sa.Column("selection", sa.Text, nullable=False),  # JSON of the Selection
    sa.Column("options", sa.Text, nullable=False),  # JSON of the ReplicationOptions
    sa.Column("event_log", sa.Text, nullable=False),
    sa.Column("slot", sa.Text, nullable=False),
    sa.Column("publication", sa.Text, nullable=False),
    sa.Column("state", sa.String(32), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("captured", PositionText),  # exclusive; within one event log it only grows
    sa.Column("captured_at", UtcDateTime),  # what was committed by then is before it
    sa.Column("batches", sa.BigInteger, nullable=False),
    sa.Column("system_id", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("attempt", sa.String(36)),  # the capture that was begun last; NULL: its answer is stored
    sa.Column("attempt_until", UtcDateTime),  # its job has stopped itself by then
    sa.Column("lag_bytes", sa.BigInteger, nullable=False),
    sa.Column("dropping_at", UtcDateTime),  # from then on nothing begins
    sa.Column("dropped_at", UtcDateTime),
    sa.Column("held_tables", sa.Text),  # JSON of the HeldTables; NULL: none
    sa.Column("gtids", sa.Text),  # of all transactions before `captured`; NULL: not known
)
sa.Index(
    "uq_tidemark_replication_live_name",
    replications.c.folded_name,
    unique=True,
    sqlite_where=replications.c.dropped_at.is_(None),
    postgresql_where=replications.c.dropped_at.is_(None),
)

replicated_objects = sa.Table(
    "tidemark_replicated_object",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("replication_uid", sa.String(36), sa.ForeignKey(replications.c.uid), nullable=False),
    sa.Column("schema_name", sa.Text, nullable=False),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("source_id", sa.Text, nullable=False),
    sa.Column("columns", sa.Text, nullable=False),  # JSON of the TableSchema as of `applied`
    sa.Column("captured_columns", sa.Text),  # JSON of the newest that the event log has an event of
    sa.Column("source_keys", sa.Text, nullable=False),  # JSON of the names of columns, as the catalog has them now
    sa.Column("excluded", sa.Text, nullable=False),  # JSON of the names of columns
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("target", sa.Text, nullable=False),  # JSON of the TableRef
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("snapshot", PositionText),
    sa.Column("applied", PositionText),  # exclusive; within one event log it only grows
    sa.Column("applied_at", UtcDateTime),  # the target shows all that was committed by then
    sa.Column("changed_until", PositionText),  # no event at or behind it was captured
    sa.Column("writes", sa.BigInteger, nullable=False),  # numbers drawn; only grows
    sa.Column("expected_rows", sa.BigInteger, nullable=False),
    sa.Column("progress", sa.Text),  # JSON of the BackfillProgress
    sa.Column("needs_backfill", sa.Text),
    sa.Column("gone", sa.Boolean, nullable=False),
    sa.Column("selected", sa.Boolean, nullable=False),
    sa.Column("problem", sa.Text),
    sa.Column("seen", sa.Text),  # JSON of the SeenTable of the last look; NULL: of none
    sa.Column("held", sa.Text),  # JSON of the HeldColumns; NULL: none
    sa.Column("notices", sa.Text),  # JSON of the texts; NULL: none
)
sa.Index(
    "uq_tidemark_replicated_object_name",
    replicated_objects.c.replication_uid,
    replicated_objects.c.schema_name,
    replicated_objects.c.table_name,
    unique=True,
)

object_writes = sa.Table(
    "tidemark_object_write",
    metadata,
    sa.Column("object_uid", sa.String(36), sa.ForeignKey(replicated_objects.c.uid), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("start_position", PositionText),  # of an apply: [start, end)
    sa.Column("end_position", PositionText),
    sa.Column("as_of", UtcDateTime),  # all that was committed by then is before the end
    sa.Column("run", sa.Text),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("lease_until", UtcDateTime, nullable=False),  # a backfill's worker is silent longer: another may begin
    sa.Column("deadline", UtcDateTime, nullable=False),  # its job has stopped itself by then
    sa.Column("ended_at", UtcDateTime),  # its job can write no more
    sa.Column("closed_at", UtcDateTime),
    sa.Column("report", sa.Text),  # JSON of the BackfillReport or ApplyReport
)

sa.Index("ix_tidemark_object_write_closed_at", object_writes.c.closed_at)
sa.Index(
    "ix_tidemark_object_write_backfill",  # the newest, among many more applies
    object_writes.c.opened_at,
    sqlite_where=object_writes.c.kind == "backfill",
    postgresql_where=object_writes.c.kind == "backfill",
)

replication_moves = sa.Table(
    "tidemark_replication_move",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("replication_uid", sa.String(36), sa.ForeignKey(replications.c.uid), nullable=False, index=True),
    sa.Column("object_uid", sa.String(36)),  # NULL: of the whole replication
    sa.Column("act", sa.String(32), nullable=False),
    sa.Column("from_state", sa.String(32), nullable=False),
    sa.Column("to_state", sa.String(32), nullable=False),
    sa.Column("position", PositionText),
    sa.Column("moved_at", UtcDateTime, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("run", sa.Text),
)

replication_errors = sa.Table(
    "tidemark_replication_error",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("replication_uid", sa.String(36), sa.ForeignKey(replications.c.uid), nullable=False),
    sa.Column("object_uid", sa.String(36)),  # NULL: of the whole replication
    sa.Column("reason", sa.String(64), nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),  # of object, reason and message
    sa.Column("first_seen_at", UtcDateTime, nullable=False),
    sa.Column("last_seen_at", UtcDateTime, nullable=False),
    sa.Column("occurrences", sa.BigInteger, nullable=False),
    sa.Column("run", sa.Text),  # that met it last
)
sa.Index(
    "uq_tidemark_replication_error_fingerprint",
    replication_errors.c.replication_uid,
    replication_errors.c.fingerprint,
    unique=True,
)
sa.Index("ix_tidemark_replication_error_last_seen_at", replication_errors.c.last_seen_at)
