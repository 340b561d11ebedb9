"""Counts of a stream's consumptions and failures, and the successors of re-based streams."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Adds the columns. Counting begins with the next consumption; no stream was re-based yet."""
    op.add_column("tidemark_stream", sa.Column("rebased_from", sa.String(36)))
    op.create_table(
        "tidemark_stream_health",
        sa.Column("stream_uid", sa.String(36), nullable=False),
        sa.Column("consumptions", sa.BigInteger(), nullable=False),
        sa.Column("empty_windows", sa.BigInteger(), nullable=False),
        sa.Column("rows_delivered", sa.BigInteger(), nullable=False),
        sa.Column("rows_quarantined", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("failures_in_row", sa.BigInteger(), nullable=False),
        sa.Column("failing_since", TIME),
        sa.Column("last_failed_at", TIME),
        sa.Column("last_error_type", sa.Text()),
        sa.Column("last_error", sa.Text()),
        sa.Column("last_failed_run", sa.Text()),
        sa.PrimaryKeyConstraint("stream_uid", name="pk_tidemark_stream_health"),
        sa.ForeignKeyConstraint(["stream_uid"], ["tidemark_stream.uid"], name="fk_tidemark_stream_health_stream_uid"),
    )


def downgrade() -> None:
    """Drops the columns. Counts are lost, and the history of a re-based stream begins with its re-base."""
    op.drop_table("tidemark_stream_health")
    op.drop_column("tidemark_stream", "rebased_from")
