"""Runs of jobs whose event logs are kept, with predicted and measured seconds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TABLE = "tidemark_job_run"
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the table, which is empty."""
    op.create_table(
        TABLE,
        sa.Column("application", sa.String(255), nullable=False),
        sa.Column("dag_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("task_digest", sa.String(64), nullable=False),
        sa.Column("ended_at", TIME, nullable=False),
        sa.Column("factor", sa.Integer(), nullable=True),
        sa.Column("executors", sa.Integer(), nullable=True),
        sa.Column("peak", sa.Integer(), nullable=True),
        sa.Column("predicted", sa.Float(), nullable=True),
        sa.Column("predicted_from", sa.String(255), nullable=True),
        sa.Column("measured", sa.Float(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("application", name=op.f(f"pk_{TABLE}")),
    )
    op.create_index(f"ix_{TABLE}_task_digest_ended_at", TABLE, ["task_digest", "ended_at"])
    op.create_index(f"ix_{TABLE}_ended_at", TABLE, ["ended_at"])


def downgrade() -> None:
    """Drops the table. Predictions begin again with the next run that is not accelerated."""
    op.drop_table(TABLE)
