"""The tasks that captured change streams, read chunks, ran pipes, and kept search paths."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

ADDED = (
    ("tidemark_change_stream", "last_run"),
    ("tidemark_capture_batch", "run"),
    ("tidemark_group_partition", "failed_task"),
    ("tidemark_chunk", "task"),
    ("tidemark_pipe", "last_run"),
    ("tidemark_search", "kept_run"),
)


def upgrade() -> None:
    """Adds the columns. Earlier work has none: its tasks were not kept."""
    for table, name in ADDED:
        op.add_column(table, sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    """Drops the columns."""
    for table, name in ADDED:
        op.drop_column(table, name)
