"""Search optimization of tables, and the commits of its upkeep. The rows of search paths are in tables of the lake."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = ["searches", "upkeeps"]

searches = sa.Table(
    "tidemark_search",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("table_name", sa.Text, nullable=False),
    sa.Column("table_path", sa.Text, nullable=False),
    sa.Column("table_id", sa.String(64), nullable=False),
    sa.Column("addressing", sa.String(16), nullable=False),
    sa.Column("location", sa.Text, nullable=False),
    sa.Column("paths", sa.Text, nullable=False),  # JSON of the SearchPaths
    sa.Column("next_id", sa.Integer, nullable=False),  # of a path
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("kept_version", sa.BigInteger),  # of the base, after the last upkeep
    sa.Column("kept_ids", sa.Text, nullable=False),  # JSON of the ids of paths that it covers
    sa.Column("kept_at", UtcDateTime),
    sa.Column("files", sa.BigInteger, nullable=False),  # of the base that are covered
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("problem", sa.Text),
    sa.Column("problem_at", UtcDateTime),
    sa.Column("problem_run", sa.Text),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("kept_run", sa.Text),  # key of the task whose upkeep ended at `kept_at`
)
sa.Index(
    "uq_tidemark_search_live_path",
    searches.c.table_path,
    unique=True,
    sqlite_where=searches.c.ended_at.is_(None),
    postgresql_where=searches.c.ended_at.is_(None),
)

upkeeps = sa.Table(
    "tidemark_search_upkeep",
    metadata,
    sa.Column("search_uid", sa.String(36), sa.ForeignKey("tidemark_search.uid"), primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),  # of the search table
    sa.Column("run", sa.Text, nullable=False),  # the run that has read it from the log
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("base_version", sa.BigInteger, nullable=False),
    sa.Column("files", sa.BigInteger, nullable=False),
    sa.Column("read_bytes", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("written_bytes", sa.BigInteger, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("rebuilt", sa.Boolean, nullable=False),
)
