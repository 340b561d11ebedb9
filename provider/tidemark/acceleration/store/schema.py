"""Runs of jobs on Spark whose event logs are kept."""

from __future__ import annotations

import sqlalchemy as sa

from tidemark.control.schema import UtcDateTime, metadata

__all__ = ["job_runs"]

job_runs = sa.Table(
    "tidemark_job_run",
    metadata,
    sa.Column("application", sa.String(255), primary_key=True),
    sa.Column("dag_id", sa.Text, nullable=False),
    sa.Column("task_id", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("kind", sa.String(64), nullable=False),
    sa.Column("task_digest", sa.String(64), nullable=False),  # of DAG, task and kind
    sa.Column("ended_at", UtcDateTime, nullable=False),
    sa.Column("factor", sa.Integer),  # NULL: not accelerated
    sa.Column("executors", sa.Integer),
    sa.Column("peak", sa.Integer),
    sa.Column("predicted", sa.Float),  # seconds
    sa.Column("predicted_from", sa.String(255)),
    sa.Column("measured", sa.Float),  # seconds
    sa.Column("note", sa.Text, nullable=False),
)
sa.Index("ix_tidemark_job_run_task_digest_ended_at", job_runs.c.task_digest, job_runs.c.ended_at)
sa.Index("ix_tidemark_job_run_ended_at", job_runs.c.ended_at)
