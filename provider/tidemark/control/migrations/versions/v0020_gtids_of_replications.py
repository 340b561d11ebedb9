"""The GTIDs of all transactions that a replication of a MySQL or MariaDB has captured."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

TABLE, COLUMN = "tidemark_replication", "gtids"


def upgrade() -> None:
    """Adds the column. It is empty until the next run of capture."""
    op.add_column(TABLE, sa.Column(COLUMN, sa.Text(), nullable=True))


def downgrade() -> None:
    """Drops the column."""
    op.drop_column(TABLE, COLUMN)
