"""Jobs that were given to a driver: which of them may still be writing (PROTOCOL steps 6, 9, 18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.model.statements import Statement
from tidemark.streams.model.transaction_jobs import WRITE
from tidemark.streams.store.schema import job_targets, jobs

__all__ = [
    "StoredJob",
    "UnseenJob",
    "count_writes",
    "end",
    "find",
    "given_another_table",
    "insert",
    "keep_application",
    "may_be_alive",
    "unseen",
]


@dataclass(frozen=True)
class StoredJob:
    """A job with the transaction that it works for."""

    id: str
    transaction_id: str
    deadline: datetime


@dataclass(frozen=True)
class UnseenJob:
    """A writing job that nobody saw end. `host`: where its processes can be found; None if that is unknown.
    `application`: the id of its driver in a cluster, None if it is not known, or the driver is elsewhere.
    """

    id: str
    host: str | None
    deadline: datetime
    application: str | None = None


def insert(
    connection: sa.Connection,
    job_id: str,
    transaction_id: str,
    kind: str,
    statements: Sequence[Statement],
    *,
    at: datetime,
    deadline: datetime,
    host: str | None = None,
) -> None:
    """Write the job ahead of its start, with the table ids that it is given. `host`: the host that is to start it."""
    attempt = count_writes(connection, transaction_id) + 1
    connection.execute(
        jobs.insert().values(
            id=job_id,
            transaction_id=transaction_id,
            kind=kind,
            attempt=attempt,
            submitted_at=at,
            deadline=deadline,
            host=host,
        )
    )
    for statement in statements:
        connection.execute(
            job_targets.insert().values(
                job_id=job_id,
                number=statement.number,
                target_path=statement.target.path,
                target_table_id=statement.target.table_id,
            )
        )


def find(connection: sa.Connection, job_id: str) -> StoredJob | None:
    """The job of that id; None if it has no row."""
    query = sa.select(jobs.c.id, jobs.c.transaction_id, jobs.c.deadline).where(jobs.c.id == job_id)
    row = connection.execute(query).first()
    return None if row is None else StoredJob(row.id, row.transaction_id, row.deadline)


def keep_application(connection: sa.Connection, job_id: str, application: str) -> None:
    """The id of the job's driver in a cluster. A second call writes the same; nothing without a row of the job."""
    connection.execute(jobs.update().where(jobs.c.id == job_id).values(application=application))


def end(connection: sa.Connection, job_id: str, *, at: datetime, outcome: str) -> None:
    """The job can write no more. A second call keeps the first time."""
    connection.execute(
        jobs.update().where(jobs.c.id == job_id, jobs.c.ended_at.is_(None)).values(ended_at=at, outcome=outcome)
    )


def count_writes(connection: sa.Connection, transaction_id: str) -> int:
    """How many writing jobs the transaction has had."""
    query = sa.select(sa.func.count()).where(jobs.c.transaction_id == transaction_id, _writing())
    return int(connection.execute(query).scalar_one())


def may_be_alive(connection: sa.Connection, transaction_id: str, *, now: datetime) -> datetime | None:
    """Until when a writing job of the transaction may live; None: all have surely ended (step 18).

    A late fence is harmless, so fences do not count: what it shuts is already done or never used again.
    """
    query = sa.select(sa.func.max(jobs.c.deadline)).where(jobs.c.transaction_id == transaction_id, _alive(now))
    latest: datetime | None = connection.execute(query).scalar_one()
    return latest


def unseen(connection: sa.Connection, transaction_id: str) -> tuple[UnseenJob, ...]:
    """The transaction's writing jobs that are not stored as ended, by their deadlines.

    More than `may_be_alive`: a deadline alone is proof only with a fence behind it (V11).
    """
    query = (
        sa.select(jobs.c.id, jobs.c.host, jobs.c.deadline, jobs.c.application)
        .where(jobs.c.transaction_id == transaction_id, _writing(), jobs.c.ended_at.is_(None))
        .order_by(jobs.c.deadline, jobs.c.id)
    )
    return tuple(UnseenJob(row.id, row.host, row.deadline, row.application) for row in connection.execute(query))


def given_another_table(
    connection: sa.Connection, *, target_path: str, table_id: str, now: datetime
) -> StoredJob | None:
    """A job that may be alive and was given another table at this path (step 6, V11), or None."""
    query = (
        sa.select(jobs.c.id, jobs.c.transaction_id, jobs.c.deadline)
        .join(job_targets, job_targets.c.job_id == jobs.c.id)
        .where(job_targets.c.target_path == target_path, job_targets.c.target_table_id != table_id, _alive(now))
        .order_by(jobs.c.deadline.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else StoredJob(row.id, row.transaction_id, row.deadline)


def _writing() -> sa.ColumnElement[bool]:
    return jobs.c.kind == WRITE.name


def _alive(now: datetime) -> sa.ColumnElement[bool]:
    return _writing() & jobs.c.ended_at.is_(None) & (jobs.c.deadline > now)
