"""The tables that consumer groups of change streams write. Nothing is kept of dropped change streams."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

LEFT_BEHIND = ("tidemark_partition_load", "tidemark_partition", "tidemark_capture_batch", "tidemark_watched_table")


def upgrade() -> None:
    """Creates a table, and deletes rows of dropped change streams. From now on a drop deletes them itself."""
    op.create_table(
        "tidemark_group_sink",
        sa.Column("group_uid", sa.String(36), nullable=False),
        sa.Column("table_path", sa.Text(), nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("group_uid", "table_path", name="pk_tidemark_group_sink"),
        sa.ForeignKeyConstraint(
            ["group_uid"], ["tidemark_consumer_group.uid"], name="fk_tidemark_group_sink_group_uid"
        ),
    )
    for table in LEFT_BEHIND:
        op.execute(
            f"DELETE FROM {table} WHERE stream_uid IN"
            " (SELECT uid FROM tidemark_change_stream WHERE dropped_at IS NOT NULL)"
        )


def downgrade() -> None:
    """Drops the table. Groups register their tables at the next write; deleted rows are not restored."""
    op.drop_table("tidemark_group_sink")
