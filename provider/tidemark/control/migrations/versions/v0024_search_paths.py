"""Search optimization of tables, and the commits of its upkeep."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

SEARCHES, UPKEEPS = "tidemark_search", "tidemark_search_upkeep"
TIME = sa.DateTime(timezone=True)
LIVE = sa.text("ended_at IS NULL")


def upgrade() -> None:
    """Creates the tables, which are empty."""
    _create_searches()
    op.create_index(
        f"uq_{SEARCHES}_live_path", SEARCHES, ["table_path"], unique=True, sqlite_where=LIVE, postgresql_where=LIVE
    )
    op.create_table(
        UPKEEPS,
        sa.Column("search_uid", sa.String(36), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("base_version", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("read_bytes", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("written_bytes", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("rebuilt", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["search_uid"], [f"{SEARCHES}.uid"], name=op.f(f"fk_{UPKEEPS}_search_uid")),
        sa.PrimaryKeyConstraint("search_uid", "version", name=op.f(f"pk_{UPKEEPS}")),
    )


def _create_searches() -> None:
    op.create_table(
        SEARCHES,
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("table_path", sa.Text(), nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("addressing", sa.String(16), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("paths", sa.Text(), nullable=False),
        sa.Column("next_id", sa.Integer(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("kept_version", sa.BigInteger(), nullable=True),
        sa.Column("kept_ids", sa.Text(), nullable=False),
        sa.Column("kept_at", TIME, nullable=True),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("problem_at", TIME, nullable=True),
        sa.Column("problem_run", sa.Text(), nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("uid", name=op.f(f"pk_{SEARCHES}")),
    )


def downgrade() -> None:
    """Drops the tables, and forgets which tables have search paths. Their rows stay in the lake."""
    op.drop_table(UPKEEPS)
    op.drop_table(SEARCHES)
