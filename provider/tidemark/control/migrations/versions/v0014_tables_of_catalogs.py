"""Tables that only a catalog of Spark knows, with the path at which a job found them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TABLE = "tidemark_catalog_table"


def upgrade() -> None:
    """Creates the table. The next task that writes such a table fills it."""
    op.create_table(
        TABLE,
        sa.Column("conn_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("table_id", sa.String(64), nullable=False),
        sa.Column("found_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("conn_id", "name", name=op.f(f"pk_{TABLE}")),
    )


def downgrade() -> None:
    """Drops the table. Each run asks the catalog again."""
    op.drop_table(TABLE)
