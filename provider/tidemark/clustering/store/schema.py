"""Clustered tables, and the ledger of their reclusterings."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = ["clustered_tables", "reclusterings"]

clustered_tables = sa.Table(
    "tidemark_clustered_table",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("addressing", sa.String(16), nullable=False),
    sa.Column("cluster_key", sa.Text, nullable=False),  # JSON of the columns
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("goal", sa.Text, nullable=False),  # JSON of the Goal
    sa.Column("suspended", sa.Text),  # the reason
    sa.Column("seen", sa.Text),  # JSON of the Seen
    sa.Column("seen_at", UtcDateTime),
    sa.Column("problem", sa.Text),
    sa.Column("problem_at", UtcDateTime),
    sa.Column("problem_run", sa.Text),
    sa.Column("ended_at", UtcDateTime),
)
sa.Index(
    "uq_tidemark_clustered_table_live",
    clustered_tables.c.table_id,
    unique=True,
    sqlite_where=clustered_tables.c.ended_at.is_(None),
    postgresql_where=clustered_tables.c.ended_at.is_(None),
)

reclusterings = sa.Table(
    "tidemark_recluster",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("uid", sa.String(36), nullable=False),
    sa.Column("table_uid", sa.String(36), sa.ForeignKey(clustered_tables.c.uid), nullable=False),
    sa.Column("run", sa.Text, nullable=False),
    sa.Column("moved_at", UtcDateTime, nullable=False),  # planned
    sa.Column("how", sa.String(16), nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("base_version", sa.BigInteger, nullable=False),
    sa.Column("planned_bytes", sa.BigInteger, nullable=False),
    sa.Column("cube_bytes", sa.BigInteger, nullable=False),
    sa.Column("depth_before", sa.Float, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("bytes", sa.BigInteger),
    sa.Column("files_removed", sa.BigInteger),
    sa.Column("files_added", sa.BigInteger),
    sa.Column("depth_after", sa.Float),
    sa.Column("seconds", sa.Float),
    sa.Column("version", sa.BigInteger),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("error", sa.Text),
)
sa.Index("uq_tidemark_recluster_run", reclusterings.c.table_uid, reclusterings.c.run, unique=True)
sa.Index("ix_tidemark_recluster_table_uid", reclusterings.c.table_uid, reclusterings.c.id)  # the newest of a table
