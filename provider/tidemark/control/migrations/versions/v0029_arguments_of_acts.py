"""The arguments of acts, and the requests for refreshes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

ACTS = "tidemark_act"
VIEWS = "tidemark_kept_view"


def upgrade() -> None:
    """Adds the columns. Older acts have no arguments, and no view has a request."""
    op.add_column(ACTS, sa.Column("arguments", sa.Text(), nullable=True))
    op.add_column(VIEWS, sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drops the columns. Requests that no run has taken are forgotten."""
    op.drop_column(VIEWS, "asked_at")
    op.drop_column(ACTS, "arguments")
