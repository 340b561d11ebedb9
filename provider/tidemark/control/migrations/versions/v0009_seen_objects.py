"""The last observation of a replicated object, its hidden columns, and its warnings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLE = "tidemark_replicated_object"
COLUMNS = ("seen", "held", "notices")


def upgrade() -> None:
    """Adds the columns. The next discovery fills them; until then nothing is compared."""
    for name in COLUMNS:
        op.add_column(TABLE, sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    """Drops the columns and their observations."""
    with op.batch_alter_table(TABLE) as table:
        for name in reversed(COLUMNS):
            table.drop_column(name)
