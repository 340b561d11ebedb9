"""Stages, file formats and pipes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
TABLES = ("tidemark_file_format", "tidemark_stage", "tidemark_pipe")


def upgrade() -> None:
    """Creates the tables, which are empty."""
    _create("tidemark_file_format", sa.Column("format", sa.Text(), nullable=False))
    _create(
        "tidemark_stage",
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=True),
        sa.Column("format_name", sa.Text(), nullable=True),
    )
    _create(
        "tidemark_pipe",
        sa.Column("copy_statement", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("auto_ingest", sa.Boolean(), nullable=False),
        sa.Column("notification_channel", sa.Text(), nullable=True),
        of_state=(
            sa.Column("paused_at", TIME, nullable=True),
            sa.Column("stalled", sa.String(32), nullable=True),
            sa.Column("problem", sa.Text(), nullable=True),
            sa.Column("problem_at", TIME, nullable=True),
            sa.Column("problem_run", sa.Text(), nullable=True),
            sa.Column("last_run_at", TIME, nullable=True),
        ),
    )


def downgrade() -> None:
    """Drops the tables. The queues of pipes stay in the lake."""
    for table in reversed(TABLES):
        op.drop_table(table)


def _create(table: str, *columns: sa.Column[object], of_state: tuple[sa.Column[object], ...] = ()) -> None:
    op.create_table(
        table,
        sa.Column("uid", sa.String(36), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded_name", sa.Text(), nullable=False),
        *columns,
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        *of_state,
        sa.Column("ended_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("uid", name=op.f(f"pk_{table}")),
    )
    op.create_index(
        f"uq_{table}_live_name",
        table,
        ["folded_name"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
