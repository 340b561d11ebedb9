"""The seconds of each refresh of a view alone, by which the next one is chosen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

REFRESHES = "tidemark_view_refresh"


def upgrade() -> None:
    """Adds the column. Of earlier refreshes the seconds of the write are not known."""
    op.add_column(REFRESHES, sa.Column("write_seconds", sa.Float(), nullable=True))


def downgrade() -> None:
    """Drops the column."""
    op.drop_column(REFRESHES, "write_seconds")
