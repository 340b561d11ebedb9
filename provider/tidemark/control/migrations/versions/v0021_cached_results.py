"""Answers of queries that may be reused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

TABLE = "tidemark_cached_result"
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the table, which is empty."""
    op.create_table(
        TABLE,
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("result_key", sa.String(64), nullable=False),
        sa.Column("query_text", sa.Text(), nullable=False),
        sa.Column("text_digest", sa.String(64), nullable=False),
        sa.Column("tables_read", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("written", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("last_used_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("latest_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("ended_as", sa.String(16), nullable=True),
        sa.Column("removed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("uid", name=op.f(f"pk_{TABLE}")),
    )
    live = sa.text("ended_at IS NULL")
    op.create_index(
        f"uq_{TABLE}_live_key", TABLE, ["result_key"], unique=True, sqlite_where=live, postgresql_where=live
    )
    op.create_index(f"ix_{TABLE}_text_digest", TABLE, ["text_digest"])


def downgrade() -> None:
    """Drops the table. The next run of each query stores its answer again."""
    op.drop_table(TABLE)
