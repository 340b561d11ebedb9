"""Streams on views: the query, and the stream's offset in each base table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns. Existing streams are on tables, so they have neither."""
    op.add_column("tidemark_stream", sa.Column("view_query", sa.Text))
    op.add_column("tidemark_stream", sa.Column("view_bases", sa.Text))


def downgrade() -> None:
    """Drops the columns. Streams on views lose their offsets."""
    op.drop_column("tidemark_stream", "view_bases")
    op.drop_column("tidemark_stream", "view_query")
