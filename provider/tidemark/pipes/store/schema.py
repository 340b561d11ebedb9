"""Stages, file formats and pipes. The files of a pipe are in its queue, a table of the lake."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = ["file_formats", "pipes", "stages"]


def _name_columns() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column("uid", sa.String(36), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),  # as it was written
        sa.Column("folded_name", sa.Text, nullable=False),  # unquoted parts in upper case
    )


def _one_live_name(table: sa.Table) -> None:
    sa.Index(
        f"uq_{table.name}_live_name",
        table.c.folded_name,
        unique=True,
        sqlite_where=table.c.ended_at.is_(None),
        postgresql_where=table.c.ended_at.is_(None),
    )


file_formats = sa.Table(
    "tidemark_file_format",
    metadata,
    *_name_columns(),
    sa.Column("format", sa.Text, nullable=False),  # JSON of the FileFormat
    sa.Column("comment", sa.Text),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
)
_one_live_name(file_formats)

stages = sa.Table(
    "tidemark_stage",
    metadata,
    *_name_columns(),
    sa.Column("location", sa.Text, nullable=False),
    sa.Column("format", sa.Text),  # JSON of its own FileFormat
    sa.Column("format_name", sa.Text),  # of a named one
    sa.Column("comment", sa.Text),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
)
_one_live_name(stages)

pipes = sa.Table(
    "tidemark_pipe",
    metadata,
    *_name_columns(),
    sa.Column("copy_statement", sa.Text, nullable=False),
    sa.Column("queue", sa.Text, nullable=False),
    sa.Column("auto_ingest", sa.Boolean, nullable=False),
    sa.Column("notification_channel", sa.Text),
    sa.Column("comment", sa.Text),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("paused_at", UtcDateTime),
    sa.Column("stalled", sa.String(32)),
    sa.Column("problem", sa.Text),
    sa.Column("problem_at", UtcDateTime),
    sa.Column("problem_run", sa.Text),
    sa.Column("last_run_at", UtcDateTime),
    sa.Column("pulled_at", UtcDateTime),
    sa.Column("ended_at", UtcDateTime),  # a dropped pipe keeps its queue; its uid is never used again
    sa.Column("last_run", sa.Text),  # who ran it at `last_run_at`: key of a task, or a name
)
_one_live_name(pipes)
