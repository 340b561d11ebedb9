"""Streams, their history, transactions with stored windows and statements, and the jobs that may be alive."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Creates every table, each before those that refer to it."""
    _create_store()
    _create_transaction()
    _create_job()
    _create_statement()
    _create_stream()
    _create_job_target()
    _create_offset_move()
    _create_window()


def downgrade() -> None:
    """Drops every table, and with them all offsets."""
    op.drop_table("tidemark_window")
    op.drop_table("tidemark_offset_move")
    op.drop_table("tidemark_job_target")
    op.drop_table("tidemark_stream")
    op.drop_table("tidemark_statement")
    op.drop_table("tidemark_job")
    op.drop_table("tidemark_transaction")
    op.drop_table("tidemark_store")


def _create_store() -> None:
    op.create_table(
        "tidemark_store",
        sa.Column("store_id", sa.String(length=36), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("store_id", name="pk_tidemark_store"),
    )


def _create_transaction() -> None:
    op.create_table(
        "tidemark_transaction",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("dag_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("map_index", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("lease_until", TIME, nullable=False),
        sa.Column("submitted", sa.Boolean(), nullable=False),
        sa.Column("job_deadline", TIME, nullable=True),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("closed_at", TIME, nullable=True),
        sa.Column("taken_by", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tidemark_transaction"),
    )
    op.create_index(
        "uq_tidemark_transaction_key",
        "tidemark_transaction",
        ["dag_id", "run_id", "task_id", "map_index"],
        unique=True,
        sqlite_where=sa.text("state != 'released'"),
        postgresql_where=sa.text("state != 'released'"),
    )


def _create_job() -> None:
    op.create_table(
        "tidemark_job",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("transaction_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("submitted_at", TIME, nullable=False),
        sa.Column("deadline", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["transaction_id"], ["tidemark_transaction.id"], name="fk_tidemark_job_transaction_id"),
        sa.PrimaryKeyConstraint("id", name="pk_tidemark_job"),
    )
    op.create_index("ix_tidemark_job_transaction_id", "tidemark_job", ["transaction_id"], unique=False)


def _create_statement() -> None:
    op.create_table(
        "tidemark_statement",
        sa.Column("transaction_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("planned_write", sa.Text(), nullable=False),
        sa.Column("target_name", sa.Text(), nullable=False),
        sa.Column("target_path", sa.Text(), nullable=False),
        sa.Column("target_table_id", sa.String(length=64), nullable=False),
        sa.Column("target_addressing", sa.String(length=16), nullable=False),
        sa.Column("base_version", sa.BigInteger(), nullable=False),
        sa.Column("app_id", sa.Text(), nullable=False),
        sa.Column("txn_version", sa.BigInteger(), nullable=False),
        sa.Column("fenced", sa.Boolean(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["transaction_id"], ["tidemark_transaction.id"], name="fk_tidemark_statement_transaction_id"
        ),
        sa.PrimaryKeyConstraint("transaction_id", "number", name="pk_tidemark_statement"),
    )


def _create_stream() -> None:
    op.create_table(
        "tidemark_stream",
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded_name", sa.Text(), nullable=False),
        sa.Column("source_name", sa.Text(), nullable=False),
        sa.Column("source_path", sa.Text(), nullable=False),
        sa.Column("source_table_id", sa.String(length=64), nullable=False),
        sa.Column("source_addressing", sa.String(length=16), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("offset_version", sa.BigInteger(), nullable=False),
        sa.Column("initial_rows_pending", sa.Boolean(), nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("anchor", TIME, nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("held_by", sa.String(length=36), nullable=True),
        sa.Column("dropped_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["held_by"], ["tidemark_transaction.id"], name="fk_tidemark_stream_held_by"),
        sa.PrimaryKeyConstraint("uid", name="pk_tidemark_stream"),
    )
    op.create_index(
        "uq_tidemark_stream_live_name",
        "tidemark_stream",
        ["folded_name"],
        unique=True,
        sqlite_where=sa.text("dropped_at IS NULL"),
        postgresql_where=sa.text("dropped_at IS NULL"),
    )


def _create_job_target() -> None:
    op.create_table(
        "tidemark_job_target",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("target_path", sa.Text(), nullable=False),
        sa.Column("target_table_id", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["tidemark_job.id"], name="fk_tidemark_job_target_job_id"),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_tidemark_job_target"),
    )
    op.create_index("ix_tidemark_job_target_target_path", "tidemark_job_target", ["target_path"], unique=False)


def _create_offset_move() -> None:
    op.create_table(
        "tidemark_offset_move",
        sa.Column("id", ROW_NUMBER, autoincrement=True, nullable=False),
        sa.Column("stream_uid", sa.String(length=36), nullable=False),
        sa.Column("from_version", sa.BigInteger(), nullable=False),
        sa.Column("to_version", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", TIME, nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["stream_uid"], ["tidemark_stream.uid"], name="fk_tidemark_offset_move_stream_uid"),
        sa.PrimaryKeyConstraint("id", name="pk_tidemark_offset_move"),
    )
    op.create_index("ix_tidemark_offset_move_stream_uid", "tidemark_offset_move", ["stream_uid"], unique=False)


def _create_window() -> None:
    op.create_table(
        "tidemark_window",
        sa.Column("transaction_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("stream_uid", sa.String(length=36), nullable=False),
        sa.Column("start_version", sa.BigInteger(), nullable=False),
        sa.Column("end_version", sa.BigInteger(), nullable=False),
        sa.Column("pinned", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["stream_uid"], ["tidemark_stream.uid"], name="fk_tidemark_window_stream_uid"),
        sa.ForeignKeyConstraint(
            ["transaction_id"], ["tidemark_transaction.id"], name="fk_tidemark_window_transaction_id"
        ),
        sa.PrimaryKeyConstraint("transaction_id", "position", name="pk_tidemark_window"),
    )
    op.create_index("ix_tidemark_window_stream_uid", "tidemark_window", ["stream_uid"], unique=False)
