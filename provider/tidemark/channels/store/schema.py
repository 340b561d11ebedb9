"""Landing tables: those with channels, as a task has last seen them. Their channels are in their own logs."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = ["landing_tables"]

landing_tables = sa.Table(
    "tidemark_landing_table",
    metadata,
    sa.Column("uid", sa.String(64), primary_key=True),  # the table's id
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("registered_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),  # since then the table has no channel
)
