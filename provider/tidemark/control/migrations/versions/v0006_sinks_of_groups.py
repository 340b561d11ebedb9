"""Which tables consumer groups of change streams write; and nothing is kept of change streams that were dropped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

LEFT_BEHIND = ("tidemark_partition_load", "tidemark_partition", "tidemark_capture_batch", "tidemark_watched_table")


def upgrade() -> None:
    """A new table; what change streams had that were dropped goes, as a drop takes it along from now on."""
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
    """Which tables groups write is forgotten until they write them again; what was removed stays so."""
    op.drop_table("tidemark_group_sink")
