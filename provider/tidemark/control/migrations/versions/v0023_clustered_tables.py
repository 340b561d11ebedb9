"""Clustered tables and their reclusterings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TABLES, RECLUSTERINGS = "tidemark_clustered_table", "tidemark_recluster"
TIME = sa.DateTime(timezone=True)
LIVE = sa.text("ended_at IS NULL")


def upgrade() -> None:
    """Creates the tables, which are empty."""
    op.create_table(
        TABLES,
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("addressing", sa.String(16), nullable=False),
        sa.Column("cluster_key", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("goal", sa.Text(), nullable=False),
        sa.Column("suspended", sa.Text(), nullable=True),
        sa.Column("seen", sa.Text(), nullable=True),
        sa.Column("seen_at", TIME, nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("problem_at", TIME, nullable=True),
        sa.Column("problem_run", sa.Text(), nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("uid", name=op.f(f"pk_{TABLES}")),
    )
    op.create_index(f"uq_{TABLES}_live", TABLES, ["table_id"], unique=True, sqlite_where=LIVE, postgresql_where=LIVE)
    _create_reclusterings()
    op.create_index(f"uq_{RECLUSTERINGS}_run", RECLUSTERINGS, ["table_uid", "run"], unique=True)
    op.create_index(f"ix_{RECLUSTERINGS}_table_uid", RECLUSTERINGS, ["table_uid", "id"])


def _create_reclusterings() -> None:
    op.create_table(
        RECLUSTERINGS,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("table_uid", sa.String(36), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("moved_at", TIME, nullable=False),
        sa.Column("how", sa.String(16), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("base_version", sa.BigInteger(), nullable=False),
        sa.Column("planned_bytes", sa.BigInteger(), nullable=False),
        sa.Column("cube_bytes", sa.BigInteger(), nullable=False),
        sa.Column("depth_before", sa.Float(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("files_removed", sa.BigInteger(), nullable=True),
        sa.Column("files_added", sa.BigInteger(), nullable=True),
        sa.Column("depth_after", sa.Float(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["table_uid"], [f"{TABLES}.uid"], name=op.f(f"fk_{RECLUSTERINGS}_table_uid")),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{RECLUSTERINGS}")),
    )


def downgrade() -> None:
    """Drops the tables, and forgets what they have."""
    op.drop_table(RECLUSTERINGS)
    op.drop_table(TABLES)
