"""The host on which a job was started, where a later attempt can find out that the job has ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Jobs of before have no host: they count as alive until their deadlines, as they did."""
    op.add_column("tidemark_job", sa.Column("host", sa.Text))


def downgrade() -> None:
    """Forgets the hosts."""
    op.drop_column("tidemark_job", "host")
