"""Records of a change stream expire: the column, the state of a batch and its JSON have that word."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

STREAM = "tidemark_change_stream"
BATCH = "tidemark_capture_batch"


def upgrade() -> None:
    """A batch that was written ahead has its change stream by value, so its JSON changes with the column."""
    _rename("trimmed", "expired")


def downgrade() -> None:
    """The words of the release before."""
    _rename("expired", "trimmed")


def _rename(old: str, new: str) -> None:
    op.execute(f"ALTER TABLE {STREAM} RENAME COLUMN {old}_until TO {new}_until")
    state, batch = sa.column("state", sa.String), sa.column("batch", sa.Text)
    rows = sa.table(BATCH, state, batch)
    op.execute(rows.update().where(state == old).values(state=new))
    field = f'"{old}_until":'  # a quote inside of a value is escaped in JSON, so only the field's name matches
    changed = sa.func.replace(batch, field, f'"{new}_until":')
    op.execute(rows.update().where(batch.like(f"%{field}%")).values(batch=changed))
