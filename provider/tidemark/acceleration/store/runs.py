"""Runs of jobs in the store: kept once, and read newest first."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from tidemark.acceleration.model.estimates import JobRun
from tidemark.acceleration.store.schema import job_runs

__all__ = ["keep_run", "newest_runs", "plain_run_before"]

_of = job_runs.c


def keep_run(connection: sa.Connection, run: JobRun) -> bool:
    """Keep the run; False if a run of that application is kept already, which stays as it is."""
    if connection.execute(sa.select(_of.application).where(_of.application == run.application)).first() is not None:
        return False
    digest = _digest(run.dag_id, run.task_id, run.kind)
    connection.execute(job_runs.insert().values(**asdict(run), task_digest=digest))
    return True


def newest_runs(connection: sa.Connection, *, most: int, accelerated: bool = False) -> tuple[JobRun, ...]:
    """The newest runs, newest first; `accelerated`: only those with a scale factor."""
    query = sa.select(job_runs).order_by(_of.ended_at.desc(), _of.application).limit(most)
    if accelerated:
        query = query.where(_of.factor.is_not(None))
    return tuple(_run(row) for row in connection.execute(query).mappings())


def plain_run_before(connection: sa.Connection, *, dag_id: str, task_id: str, kind: str) -> JobRun | None:
    """The newest run of that task and kind of job that was not accelerated; None if none is kept."""
    same = (_of.task_digest == _digest(dag_id, task_id, kind), _of.factor.is_(None))
    query = sa.select(job_runs).where(*same).order_by(_of.ended_at.desc(), _of.application).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else _run(row)


def _digest(dag_id: str, task_id: str, kind: str) -> str:
    return hashlib.sha256("\0".join((dag_id, task_id, kind)).encode()).hexdigest()


def _run(row: sa.RowMapping) -> JobRun:
    values: dict[str, Any] = {name: value for name, value in row.items() if name != "task_digest"}
    return JobRun(**values)
