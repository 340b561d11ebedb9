"""The errors that replications and their objects have met."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TABLE = "tidemark_replication_error"
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Creates the table, which is empty: errors of before are in the states of replications and objects."""
    op.create_table(
        TABLE,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("replication_uid", sa.String(36), nullable=False),
        sa.Column("object_uid", sa.String(36), nullable=True),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("first_seen_at", TIME, nullable=False),
        sa.Column("last_seen_at", TIME, nullable=False),
        sa.Column("occurrences", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["replication_uid"], ["tidemark_replication.uid"], name=op.f(f"fk_{TABLE}_replication_uid")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{TABLE}")),
    )
    op.create_index(f"uq_{TABLE}_fingerprint", TABLE, ["replication_uid", "fingerprint"], unique=True)
    op.create_index(f"ix_{TABLE}_last_seen_at", TABLE, ["last_seen_at"])


def downgrade() -> None:
    """Drops the table, and forgets what it has."""
    op.drop_table(TABLE)
