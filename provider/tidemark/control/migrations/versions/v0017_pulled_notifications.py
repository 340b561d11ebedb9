"""The time when a run of a pipe last took notifications."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

TABLE, COLUMN = "tidemark_pipe", "pulled_at"


def upgrade() -> None:
    """Adds the column. It is empty until the next run takes notifications."""
    op.add_column(TABLE, sa.Column(COLUMN, sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drops the column."""
    op.drop_column(TABLE, COLUMN)
