"""Materialized views, dynamic tables and their refreshes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

VIEWS, REFRESHES = "tidemark_kept_view", "tidemark_view_refresh"
TIME = sa.DateTime(timezone=True)
LIVE = sa.text("ended_at IS NULL")


def upgrade() -> None:
    """Creates the tables, which are empty."""
    _create_views()
    op.create_index(
        f"uq_{VIEWS}_live_name", VIEWS, ["folded_name"], unique=True, sqlite_where=LIVE, postgresql_where=LIVE
    )
    _create_refreshes()
    op.create_index(f"uq_{REFRESHES}_run", REFRESHES, ["view_uid", "run"], unique=True)
    op.create_index(f"ix_{REFRESHES}_run", REFRESHES, ["run"])
    op.create_index(f"ix_{REFRESHES}_view_uid", REFRESHES, ["view_uid", "id"])


def _create_views() -> None:
    op.create_table(
        VIEWS,
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded_name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("kept_name", sa.Text(), nullable=False),
        sa.Column("kept_path", sa.Text(), nullable=False),
        sa.Column("kept_table_id", sa.String(64), nullable=False),
        sa.Column("kept_addressing", sa.String(16), nullable=False),
        sa.Column("shape", sa.Text(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("target_lag", sa.Text(), nullable=True),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("initialize", sa.String(16), nullable=False),
        sa.Column("float_sums", sa.String(16), nullable=False),
        sa.Column("cluster_by", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("fresh_at", TIME, nullable=True),
        sa.Column("suspended", sa.Text(), nullable=True),
        sa.Column("kept_version", sa.BigInteger(), nullable=True),
        sa.Column("kept_rows", sa.BigInteger(), nullable=True),
        sa.Column("groups", sa.BigInteger(), nullable=True),
        sa.Column("columns_read", sa.Text(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("problem_at", TIME, nullable=True),
        sa.Column("problem_run", sa.Text(), nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("uid", name=op.f(f"pk_{VIEWS}")),
    )


def _create_refreshes() -> None:
    op.create_table(
        REFRESHES,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("view_uid", sa.String(36), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("moved_at", TIME, nullable=False),
        sa.Column("as_of", TIME, nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("ends", sa.Text(), nullable=False),
        sa.Column("asked", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("how", sa.String(16), nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.Column("incremental_bytes", sa.BigInteger(), nullable=True),
        sa.Column("full_bytes", sa.BigInteger(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("versions", sa.Text(), nullable=True),
        sa.Column("kept_version", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["view_uid"], [f"{VIEWS}.uid"], name=op.f(f"fk_{REFRESHES}_view_uid")),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{REFRESHES}")),
    )


def downgrade() -> None:
    """Drops the tables, and forgets what they have."""
    op.drop_table(REFRESHES)
    op.drop_table(VIEWS)
