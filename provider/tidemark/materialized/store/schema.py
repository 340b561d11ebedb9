"""Kept queries and their refreshes. The rows of a query are in its kept table, a table of the lake."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = ["kept_views", "view_refreshes"]

kept_views = sa.Table(
    "tidemark_kept_view",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded_name", sa.Text, nullable=False),  # names differ in more than case
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("kept_name", sa.Text, nullable=False),
    sa.Column("kept_path", sa.Text, nullable=False),
    sa.Column("kept_table_id", sa.String(64), nullable=False),
    sa.Column("kept_addressing", sa.String(16), nullable=False),
    sa.Column("shape", sa.Text, nullable=False),  # JSON of the KeptShape
    sa.Column("stream", sa.Text, nullable=False),  # the name of the stream that pins its bases
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("target_lag", sa.Text),  # JSON of the TargetLag; NULL for a materialized view
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("initialize", sa.String(16), nullable=False),
    sa.Column("float_sums", sa.String(16), nullable=False),
    sa.Column("cluster_by", sa.Text, nullable=False),  # JSON of the columns
    sa.Column("comment", sa.Text),
    sa.Column("fresh_at", UtcDateTime),
    sa.Column("suspended", sa.Text),  # the reason
    sa.Column("kept_version", sa.BigInteger),  # of the kept table after the last refresh
    sa.Column("kept_rows", sa.BigInteger),
    sa.Column("groups", sa.BigInteger),  # rows of the kept table after its last compaction or whole refresh
    sa.Column("columns_read", sa.Text, nullable=False),  # JSON of path of a base → column → JSON of its type
    sa.Column("problem", sa.Text),
    sa.Column("problem_at", UtcDateTime),
    sa.Column("problem_run", sa.Text),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("asked_at", UtcDateTime),  # when a person asked for a refresh; NULL: no request is open
)
sa.Index(
    "uq_tidemark_kept_view_live_name",
    kept_views.c.folded_name,
    unique=True,
    sqlite_where=kept_views.c.ended_at.is_(None),
    postgresql_where=kept_views.c.ended_at.is_(None),
)

view_refreshes = sa.Table(
    "tidemark_view_refresh",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("view_uid", sa.String(36), sa.ForeignKey(kept_views.c.uid), nullable=False),
    sa.Column("run", sa.Text, nullable=False),  # the run that planned it
    sa.Column("moved_at", UtcDateTime, nullable=False),  # planned
    sa.Column("as_of", UtcDateTime, nullable=False),
    sa.Column("level", sa.Integer, nullable=False),
    sa.Column("ends", sa.Text, nullable=False),  # JSON of path → version, pinned for the whole wave
    sa.Column("asked", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("how", sa.String(16)),
    sa.Column("why", sa.Text),
    sa.Column("incremental_bytes", sa.BigInteger),
    sa.Column("full_bytes", sa.BigInteger),
    sa.Column("rows", sa.BigInteger),
    sa.Column("bytes", sa.BigInteger),
    sa.Column("seconds", sa.Float),
    sa.Column("write_seconds", sa.Float),
    sa.Column("versions", sa.Text),  # JSON of path → version of the bases
    sa.Column("kept_version", sa.BigInteger),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("error", sa.Text),
)
sa.Index("uq_tidemark_view_refresh_run", view_refreshes.c.view_uid, view_refreshes.c.run, unique=True)
sa.Index("ix_tidemark_view_refresh_run", view_refreshes.c.run)
sa.Index("ix_tidemark_view_refresh_view_uid", view_refreshes.c.view_uid, view_refreshes.c.id)  # the newest of a view
