"""Replications of databases: definitions, objects, writes to their targets, and the history of their states."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates four tables. No other is changed."""
    _definitions()
    _objects()
    _writes()
    _moves()


def _definitions() -> None:
    op.create_table(
        "tidemark_replication",
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("source_conn_id", sa.Text(), nullable=False),
        sa.Column("selection", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("event_log", sa.Text(), nullable=False),
        sa.Column("slot", sa.Text(), nullable=False),
        sa.Column("publication", sa.Text(), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("captured", sa.Text()),
        sa.Column("captured_at", TIME),
        sa.Column("batches", sa.BigInteger(), nullable=False),
        sa.Column("system_id", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("attempt", sa.String(36)),
        sa.Column("attempt_until", TIME),
        sa.Column("lag_bytes", sa.BigInteger(), nullable=False),
        sa.Column("dropping_at", TIME),
        sa.Column("dropped_at", TIME),
        sa.PrimaryKeyConstraint("uid", name="pk_tidemark_replication"),
    )
    op.create_index(
        "uq_tidemark_replication_live_name",
        "tidemark_replication",
        ["folded_name"],
        unique=True,
        sqlite_where=sa.text("dropped_at IS NULL"),
        postgresql_where=sa.text("dropped_at IS NULL"),
    )


def _objects() -> None:
    op.create_table(
        "tidemark_replicated_object",
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("replication_uid", sa.String(36), nullable=False),
        sa.Column("schema_name", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.Column("captured_columns", sa.Text()),
        sa.Column("source_keys", sa.Text(), nullable=False),
        sa.Column("excluded", sa.Text(), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("snapshot", sa.Text()),
        sa.Column("applied", sa.Text()),
        sa.Column("applied_at", TIME),
        sa.Column("changed_until", sa.Text()),
        sa.Column("writes", sa.BigInteger(), nullable=False),
        sa.Column("expected_rows", sa.BigInteger(), nullable=False),
        sa.Column("progress", sa.Text()),
        sa.Column("flagged", sa.Text()),
        sa.Column("gone", sa.Boolean(), nullable=False),
        sa.Column("selected", sa.Boolean(), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("uid", name="pk_tidemark_replicated_object"),
        sa.ForeignKeyConstraint(
            ["replication_uid"], ["tidemark_replication.uid"], name="fk_tidemark_replicated_object_replication_uid"
        ),
    )
    op.create_index(
        "uq_tidemark_replicated_object_name",
        "tidemark_replicated_object",
        ["replication_uid", "schema_name", "table_name"],
        unique=True,
    )


def _writes() -> None:
    op.create_table(
        "tidemark_object_write",
        sa.Column("object_uid", sa.String(36), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("start_position", sa.Text()),
        sa.Column("end_position", sa.Text()),
        sa.Column("as_of", TIME),
        sa.Column("run", sa.Text()),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("lease_until", TIME, nullable=False),
        sa.Column("deadline", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("closed_at", TIME),
        sa.Column("report", sa.Text()),
        sa.PrimaryKeyConstraint("object_uid", "number", name="pk_tidemark_object_write"),
        sa.ForeignKeyConstraint(
            ["object_uid"], ["tidemark_replicated_object.uid"], name="fk_tidemark_object_write_object_uid"
        ),
    )


def _moves() -> None:
    op.create_table(
        "tidemark_replication_move",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("replication_uid", sa.String(36), nullable=False),
        sa.Column("object_uid", sa.String(36)),
        sa.Column("act", sa.String(32), nullable=False),
        sa.Column("from_state", sa.String(32), nullable=False),
        sa.Column("to_state", sa.String(32), nullable=False),
        sa.Column("position", sa.Text()),
        sa.Column("moved_at", TIME, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("run", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_tidemark_replication_move"),
        sa.ForeignKeyConstraint(
            ["replication_uid"], ["tidemark_replication.uid"], name="fk_tidemark_replication_move_replication_uid"
        ),
    )
    op.create_index("ix_tidemark_replication_move_replication_uid", "tidemark_replication_move", ["replication_uid"])


def downgrade() -> None:
    """Drops replications and their positions. Event logs, targets and slots are kept."""
    for table in (
        "tidemark_replication_move",
        "tidemark_object_write",
        "tidemark_replicated_object",
        "tidemark_replication",
    ):
        op.drop_table(table)
