"""What the last look at a replicated object found, which of its columns are hidden, and what somebody should see."""

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
    """The next look fills them; until then nothing is compared."""
    for name in COLUMNS:
        op.add_column(TABLE, sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    """The looks are forgotten."""
    with op.batch_alter_table(TABLE) as table:
        for name in reversed(COLUMNS):
            table.drop_column(name)
