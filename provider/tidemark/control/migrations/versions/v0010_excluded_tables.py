"""The excluded tables of a source, so that they are still excluded after a rename."""

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
    """Adds the column. The next discovery fills it."""
    op.add_column(TABLE, sa.Column(COLUMN, sa.Text(), nullable=True))


def downgrade() -> None:
    """Drops the column. Excluded tables are known by their names alone."""
    op.drop_column(TABLE, COLUMN)
