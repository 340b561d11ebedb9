"""Tables that have channels, so that lists and pages show them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLE = "tidemark_landing_table"


def upgrade() -> None:
    """Creates the table. The next task that opens or keeps channels fills it."""
    op.create_table(
        TABLE,
        sa.Column("uid", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("registered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("uid", name=op.f(f"pk_{TABLE}")),
    )


def downgrade() -> None:
    """Drops the table. Channels are in the logs of their tables."""
    op.drop_table(TABLE)
