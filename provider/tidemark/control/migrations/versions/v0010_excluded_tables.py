"""Which tables of a source are excluded, so that they stay so under another name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TABLE = "tidemark_replication"
COLUMN = "held_tables"


def upgrade() -> None:
    """The next look fills it."""
    op.add_column(TABLE, sa.Column(COLUMN, sa.Text(), nullable=True))


def downgrade() -> None:
    """Excluded tables are known by their names alone."""
    op.drop_column(TABLE, COLUMN)
