"""The acts of persons on objects, with their reasons."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

ACTS = "tidemark_act"


def upgrade() -> None:
    """Creates the table, which is empty."""
    op.create_table(
        ACTS,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("act", sa.String(32), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revision", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{ACTS}")),
    )
    op.create_index(f"ix_{ACTS}_uid", ACTS, ["kind", "uid", "id"])


def downgrade() -> None:
    """Drops the table, and forgets the reasons that it has."""
    op.drop_table(ACTS)
