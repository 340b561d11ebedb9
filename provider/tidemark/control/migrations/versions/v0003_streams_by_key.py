"""Streams that compare by key: the columns that identify a row."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column. Existing streams identify rows by row id."""
    op.add_column("tidemark_stream", sa.Column("key_columns", sa.Text))


def downgrade() -> None:
    """Drops the column. Streams by key become streams by row id, which their tables may not have: drop them first."""
    op.drop_column("tidemark_stream", "key_columns")
