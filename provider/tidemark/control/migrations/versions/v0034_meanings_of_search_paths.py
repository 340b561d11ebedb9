"""Search tables say what each of their paths means. Those without that cover nothing until they are built again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

SEARCHES = sa.table("tidemark_search", sa.column("kept_ids", sa.Text))


def upgrade() -> None:
    """The next upkeep of each search table covers all its files, even if its base has not changed since."""
    op.execute(SEARCHES.update().values(kept_ids="[]"))


def downgrade() -> None:
    """Nothing: an upkeep of the earlier release writes the ids again."""
