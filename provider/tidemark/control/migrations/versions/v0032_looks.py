"""Looks at the logs of objects: when each had its turn, and when its logs answered last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

LOOKS = "tidemark_look"


def upgrade() -> None:
    """Creates the table, which is empty: no object has been looked at."""
    op.create_table(
        LOOKS,
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("turn_at", sa.DateTime(timezone=True)),
        sa.Column("looked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("kind", "uid", name=op.f(f"pk_{LOOKS}")),
    )


def downgrade() -> None:
    """Drops it. The order of looks is forgotten."""
    op.drop_table(LOOKS)
