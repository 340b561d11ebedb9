"""The applications of jobs whose drivers run in a cluster."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

JOBS = "tidemark_job"


def upgrade() -> None:
    """Adds the column. Older jobs have none: their drivers ran beside their tasks."""
    op.add_column(JOBS, sa.Column("application", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drops the column. Applications are then found by their tags alone."""
    op.drop_column(JOBS, "application")
