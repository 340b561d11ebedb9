"""Samples: figures of runs for the history of an object, and indexes by which histories find their newest rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

SAMPLES = "tidemark_sample"
CHUNKS = "ix_tidemark_chunk_group_committed_at"
BACKFILLS = "ix_tidemark_object_write_backfill"


def upgrade() -> None:
    """Creates the table, which is empty, and both indexes."""
    op.create_table(
        SAMPLES,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("moved_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("run", sa.Text()),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{SAMPLES}")),
    )
    op.create_index(f"ix_{SAMPLES}_uid", SAMPLES, ["uid", "kind", "id"])
    op.create_index(CHUNKS, "tidemark_chunk", ["group_uid", "committed_at"])
    backfill = sa.text("kind = 'backfill'")
    op.create_index(BACKFILLS, "tidemark_object_write", ["opened_at"], sqlite_where=backfill, postgresql_where=backfill)


def downgrade() -> None:
    """Drops them, and forgets the samples."""
    op.drop_index(BACKFILLS, "tidemark_object_write")
    op.drop_index(CHUNKS, "tidemark_chunk")
    op.drop_table(SAMPLES)
