"""A paused consumer group with a failed partition is paused among all objects. Earlier releases had it failing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

GROUPS = sa.table("tidemark_consumer_group", sa.column("uid", sa.String), sa.column("paused", sa.Boolean))
OBJECTS = sa.table(
    "tidemark_object",
    *(sa.column(name, sa.String) for name in ("kind", "uid", "state", "severity")),
    sa.column("ended_at", sa.DateTime),
)


def upgrade() -> None:
    """Without it the page would not resume such a group before the next move of the group."""
    of = OBJECTS.c
    failing = (of.kind == "consumer_group") & (of.state == "failing") & of.ended_at.is_(None)
    paused = of.uid.in_(sa.select(GROUPS.c.uid).where(GROUPS.c.paused))
    op.execute(OBJECTS.update().where(failing, paused).values(state="paused", severity="waiting"))


def downgrade() -> None:
    """Nothing: the next move of a group gives it the state that the earlier release knows."""
