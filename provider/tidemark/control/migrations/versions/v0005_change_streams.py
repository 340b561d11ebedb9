"""Change streams: definitions, capture batches, partitions, consumer groups and their chunks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates nine tables. Those of streams are not changed."""
    _definitions()
    _batches()
    _partitions()
    _groups()
    _progress()
    _chunks()


def _definitions() -> None:
    op.create_table(
        "tidemark_change_stream",
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded_name", sa.Text(), nullable=False),
        sa.Column("everything", sa.Boolean(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("log_path", sa.Text(), nullable=False),
        sa.Column("published_until", TIME, nullable=False),
        sa.Column("next_batch", sa.BigInteger(), nullable=False),
        sa.Column("trimmed_until", TIME),
        sa.Column("dropped_at", TIME),
        sa.PrimaryKeyConstraint("uid", name="pk_tidemark_change_stream"),
    )
    op.create_index(
        "uq_tidemark_change_stream_live_name",
        "tidemark_change_stream",
        ["folded_name"],
        unique=True,
        sqlite_where=sa.text("dropped_at IS NULL"),
        postgresql_where=sa.text("dropped_at IS NULL"),
    )
    op.create_table(
        "tidemark_watched_table",
        sa.Column("stream_uid", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("table_path", sa.Text(), nullable=False),
        sa.Column("watched", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("stream_uid", "number", name="pk_tidemark_watched_table"),
        sa.ForeignKeyConstraint(
            ["stream_uid"], ["tidemark_change_stream.uid"], name="fk_tidemark_watched_table_stream_uid"
        ),
    )
    op.create_index("ix_tidemark_watched_table_table_path", "tidemark_watched_table", ["table_path"])


def _batches() -> None:
    op.create_table(
        "tidemark_capture_batch",
        sa.Column("stream_uid", sa.String(36), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("batch", sa.Text(), nullable=False),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("captured_at", TIME),
        sa.Column("transactions", sa.BigInteger()),
        sa.Column("records", sa.BigInteger()),
        sa.Column("rows", sa.BigInteger()),
        sa.Column("published_until", TIME),
        sa.Column("digest", sa.String(64)),
        sa.PrimaryKeyConstraint("stream_uid", "number", name="pk_tidemark_capture_batch"),
        sa.ForeignKeyConstraint(
            ["stream_uid"], ["tidemark_change_stream.uid"], name="fk_tidemark_capture_batch_stream_uid"
        ),
    )


def _partitions() -> None:
    op.create_table(
        "tidemark_partition",
        sa.Column("stream_uid", sa.String(36), nullable=False),
        sa.Column("token", sa.String(128), nullable=False),
        sa.Column("lo", sa.Integer(), nullable=False),
        sa.Column("hi", sa.Integer(), nullable=False),
        sa.Column("parents", sa.Text(), nullable=False),
        sa.Column("start_at", TIME, nullable=False),
        sa.Column("end_at", TIME),
        sa.Column("batch", sa.BigInteger(), nullable=False),
        sa.Column("hot", sa.Integer(), nullable=False),
        sa.Column("quiet", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("stream_uid", "token", name="pk_tidemark_partition"),
        sa.ForeignKeyConstraint(
            ["stream_uid"], ["tidemark_change_stream.uid"], name="fk_tidemark_partition_stream_uid"
        ),
    )
    op.create_index("ix_tidemark_partition_start", "tidemark_partition", ["stream_uid", "start_at"])
    op.create_index("ix_tidemark_partition_end", "tidemark_partition", ["stream_uid", "end_at"])
    op.create_table(
        "tidemark_partition_load",
        sa.Column("stream_uid", sa.String(36), nullable=False),
        sa.Column("token", sa.String(128), nullable=False),
        sa.Column("start_at", TIME, nullable=False),
        sa.Column("start_sequence", sa.String(32), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("stream_uid", "token", "start_at", "start_sequence", name="pk_tidemark_partition_load"),
        sa.ForeignKeyConstraint(
            ["stream_uid"], ["tidemark_change_stream.uid"], name="fk_tidemark_partition_load_stream_uid"
        ),
    )


def _groups() -> None:
    op.create_table(
        "tidemark_consumer_group",
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("stream_uid", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded_name", sa.Text(), nullable=False),
        sa.Column("start_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("dropped_at", TIME),
        sa.PrimaryKeyConstraint("uid", name="pk_tidemark_consumer_group"),
        sa.ForeignKeyConstraint(
            ["stream_uid"], ["tidemark_change_stream.uid"], name="fk_tidemark_consumer_group_stream_uid"
        ),
    )
    op.create_index(
        "uq_tidemark_consumer_group_live_name",
        "tidemark_consumer_group",
        ["stream_uid", "folded_name"],
        unique=True,
        sqlite_where=sa.text("dropped_at IS NULL"),
        postgresql_where=sa.text("dropped_at IS NULL"),
    )
    op.create_table(
        "tidemark_backfill",
        sa.Column("group_uid", sa.String(36), nullable=False),
        sa.Column("source_id", sa.String(64), nullable=False),
        sa.Column("target_id", sa.String(64), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("holds", sa.Boolean(), nullable=False),
        sa.Column("rows", sa.BigInteger()),
        sa.Column("done_at", TIME),
        sa.PrimaryKeyConstraint("group_uid", "source_id", name="pk_tidemark_backfill"),
        sa.ForeignKeyConstraint(["group_uid"], ["tidemark_consumer_group.uid"], name="fk_tidemark_backfill_group_uid"),
    )


def _progress() -> None:
    op.create_table(
        "tidemark_group_partition",
        sa.Column("group_uid", sa.String(36), nullable=False),
        sa.Column("token", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("watermark_at", TIME, nullable=False),
        sa.Column("watermark_sequence", sa.String(32), nullable=False),
        sa.Column("chunks", sa.BigInteger(), nullable=False),
        sa.Column("failed_run", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("group_uid", "token", name="pk_tidemark_group_partition"),
        sa.ForeignKeyConstraint(
            ["group_uid"], ["tidemark_consumer_group.uid"], name="fk_tidemark_group_partition_group_uid"
        ),
    )
    op.create_index(
        "ix_tidemark_group_partition_state", "tidemark_group_partition", ["group_uid", "state", "watermark_at"]
    )


def _chunks() -> None:
    op.create_table(
        "tidemark_chunk",
        sa.Column("group_uid", sa.String(36), nullable=False),
        sa.Column("token", sa.String(128), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("start_at", TIME, nullable=False),
        sa.Column("start_sequence", sa.String(32), nullable=False),
        sa.Column("end_at", TIME, nullable=False),
        sa.Column("end_sequence", sa.String(32), nullable=False),
        sa.Column("expected", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("rows", sa.BigInteger()),
        sa.Column("facts", sa.Text()),
        sa.Column("run", sa.Text()),
        sa.Column("written_at", TIME),
        sa.Column("committed_at", TIME),
        sa.PrimaryKeyConstraint("group_uid", "token", "number", name="pk_tidemark_chunk"),
        sa.ForeignKeyConstraint(["group_uid"], ["tidemark_consumer_group.uid"], name="fk_tidemark_chunk_group_uid"),
    )
    op.create_index("ix_tidemark_chunk_state", "tidemark_chunk", ["group_uid", "state"])


def downgrade() -> None:
    """Drops change streams and the positions of their readers. Their logs are kept."""
    for table in (
        "tidemark_chunk",
        "tidemark_group_partition",
        "tidemark_backfill",
        "tidemark_consumer_group",
        "tidemark_partition_load",
        "tidemark_partition",
        "tidemark_capture_batch",
        "tidemark_watched_table",
        "tidemark_change_stream",
    ):
        op.drop_table(table)
