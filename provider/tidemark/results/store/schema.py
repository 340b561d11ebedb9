"""Stored answers of queries. Their rows are in Parquet files of the lake."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = ["cached_results"]

cached_results = sa.Table(
    "tidemark_cached_result",
    metadata,
    sa.Column("uid", sa.String(36), primary_key=True),
    sa.Column("result_key", sa.String(64), nullable=False),
    sa.Column("query_text", sa.Text, nullable=False),
    sa.Column("text_digest", sa.String(64), nullable=False),
    sa.Column("tables_read", sa.Text, nullable=False),  # JSON of the leaves
    sa.Column("settings", sa.Text, nullable=False),  # JSON of the settings that affect the answer
    sa.Column("written", sa.Text, nullable=False),  # JSON of the WrittenAnswer
    sa.Column("location", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),  # bytes of its files
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("last_used_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=False),
    sa.Column("latest_at", UtcDateTime, nullable=False),  # no use extends its life beyond
    sa.Column("ended_at", UtcDateTime),  # NULL: it may be reused
    sa.Column("ended_as", sa.String(16)),
    sa.Column("removed_at", UtcDateTime),  # its files are gone
)
sa.Index(
    "uq_tidemark_cached_result_live_key",
    cached_results.c.result_key,
    unique=True,
    sqlite_where=cached_results.c.ended_at.is_(None),
    postgresql_where=cached_results.c.ended_at.is_(None),
)
sa.Index("ix_tidemark_cached_result_text_digest", cached_results.c.text_digest)
