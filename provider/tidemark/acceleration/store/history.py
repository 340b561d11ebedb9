"""Old runs of jobs, dropped in small steps."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from tidemark.acceleration.store.schema import job_runs
from tidemark.control.history import Cursor, Step, step_from_the_start

__all__ = ["drop_runs"]


def drop_runs(connection: sa.Connection, before: datetime, after: Cursor | None, most: int) -> Step:
    """Drop runs that ended before then, except the newest of each task and kind. A second run finds none."""
    newer = job_runs.alias("newer")
    followed = sa.exists().where(newer.c.task_digest == job_runs.c.task_digest, newer.c.ended_at > job_runs.c.ended_at)
    old = (
        sa.select(job_runs.c.application)
        .where(job_runs.c.ended_at < before, followed)
        .order_by(job_runs.c.ended_at)
        .limit(most)
    )
    going = list(connection.execute(old).scalars())
    if going:
        connection.execute(job_runs.delete().where(job_runs.c.application.in_(going)))
    return step_from_the_start(len(going), most)
