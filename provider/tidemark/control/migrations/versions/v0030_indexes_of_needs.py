"""Indexes by which the overview finds what needs attention, without a walk over what does not."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

OBJECTS, PARTITIONS = "tidemark_object", "tidemark_group_partition"
LIVE, FAILED = f"ix_{OBJECTS}_live", f"ix_{PARTITIONS}_failed"


def upgrade() -> None:
    """Creates the indexes."""
    failed = sa.text("failed_run IS NOT NULL")
    op.create_index(LIVE, OBJECTS, ["ended_at", "kind", "severity", "state"])
    op.create_index(FAILED, PARTITIONS, ["group_uid", "token"], sqlite_where=failed, postgresql_where=failed)


def downgrade() -> None:
    """Drops the indexes."""
    op.drop_index(FAILED, PARTITIONS)
    op.drop_index(LIVE, OBJECTS)
