"""Writes to targets of replicated objects: numbered, written ahead, closed once. They are backfills and apply jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from tidemark.control.objects import portions
from tidemark.replication.model.replication import LogPosition
from tidemark.replication.store.schema import object_writes, replicated_objects

__all__ = [
    "ObjectWrite",
    "WriteKind",
    "WriteState",
    "begin_job",
    "close",
    "end_job",
    "heard_of",
    "insert",
    "is_copied",
    "left_over",
    "lookup",
    "may_be_alive",
    "newest",
    "open_one",
    "renew",
    "renew_all",
    "reopen",
    "unsettled",
]

_of = object_writes.c


class WriteKind(StrEnum):
    """The kind of a write."""

    BACKFILL = "backfill"
    APPLY = "apply"


class WriteState(StrEnum):
    """The state of a write."""

    OPEN = "open"  # written ahead; its job may run
    DONE = "done"  # its answer is stored
    FAILED = "failed"  # a backfill that ended with an error before it wrote: the target is unchanged
    GIVEN_UP = "given_up"  # a backfill comes over what it does or did to the target, or else it is taken up again


@dataclass(frozen=True)
class ObjectWrite:
    """One write; [start, end) of an apply. `run`: whose it is. `deadline`: of its newest job. `report`: JSON."""

    object_uid: str
    number: int
    kind: WriteKind
    opened_at: datetime
    lease_until: datetime
    deadline: datetime
    run: str | None
    start: LogPosition | None = None
    end: LogPosition | None = None
    as_of: datetime | None = None
    ended_at: datetime | None = None
    state: WriteState = WriteState.OPEN
    report: str | None = None


def lookup(connection: sa.Connection, object_uid: str, number: int) -> ObjectWrite | None:
    """The write of that number, or None: a question, not a failure."""
    query = sa.select(object_writes).where(_of.object_uid == object_uid, _of.number == number)
    row = connection.execute(query).mappings().first()
    return None if row is None else _write(row)


def open_one(connection: sa.Connection, object_uid: str) -> ObjectWrite | None:
    """The one write that is written ahead and not closed, or None."""
    query = sa.select(object_writes).where(_of.object_uid == object_uid, _of.state == WriteState.OPEN.value)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _write(row)


def is_copied(connection: sa.Connection, object_uid: str) -> bool:
    """Whether a backfill of the object is open: it may be at work, or has not answered."""
    write = open_one(connection, object_uid)
    return write is not None and write.kind is WriteKind.BACKFILL


def newest(connection: sa.Connection, object_uid: str, kind: WriteKind) -> ObjectWrite | None:
    """The write of that kind with the highest number, or None."""
    of_kind = sa.select(object_writes).where(_of.object_uid == object_uid, _of.kind == kind.value)
    row = connection.execute(of_kind.order_by(_of.number.desc()).limit(1)).mappings().first()
    return None if row is None else _write(row)


def left_over(connection: sa.Connection, object_uid: str) -> ObjectWrite | None:
    """The apply that was given up for a backfill which never wrote: nothing came over what it did. Else None."""
    may_have_written = sa.select(object_writes).where(
        _of.object_uid == object_uid, _of.state != WriteState.FAILED.value
    )
    row = connection.execute(may_have_written.order_by(_of.number.desc()).limit(1)).mappings().first()
    write = None if row is None else _write(row)
    given_up = write is not None and (write.kind, write.state) == (WriteKind.APPLY, WriteState.GIVEN_UP)
    return write if given_up else None


def unsettled(connection: sa.Connection, replication_uid: str) -> frozenset[str]:
    """Uids of the replication's objects with a write that is open, or one that was given up and may be taken up."""
    query = (
        sa.select(_of.object_uid)
        .join(replicated_objects, replicated_objects.c.uid == _of.object_uid)
        .where(replicated_objects.c.replication_uid == replication_uid)
        .where(_of.state.in_((WriteState.OPEN.value, WriteState.GIVEN_UP.value)))
    )
    return frozenset(connection.execute(query).scalars())


def heard_of(connection: sa.Connection, replication_uid: str, *, now: datetime) -> tuple[ObjectWrite, ...]:
    """Writes of the replication's objects whose leases last, also those that have ended since."""
    query = (
        sa.select(object_writes)
        .join(replicated_objects, replicated_objects.c.uid == _of.object_uid)
        .where(replicated_objects.c.replication_uid == replication_uid, _of.lease_until > now)
    )
    return tuple(_write(row) for row in connection.execute(query).mappings())


def insert(connection: sa.Connection, write: ObjectWrite) -> None:
    """Write it ahead of its job; its number must be new, and no other open."""
    connection.execute(
        object_writes.insert().values(
            object_uid=write.object_uid,
            number=write.number,
            kind=write.kind.value,
            state=write.state.value,
            start_position=write.start,
            end_position=write.end,
            as_of=write.as_of,
            run=write.run,
            opened_at=write.opened_at,
            lease_until=write.lease_until,
            deadline=write.deadline,
        )
    )


def close(
    connection: sa.Connection, write: ObjectWrite, to: WriteState, *, at: datetime, report: str | None = None
) -> bool:
    """End an open write; True if it was open."""
    standing = (
        (_of.object_uid == write.object_uid) & (_of.number == write.number) & (_of.state == WriteState.OPEN.value)
    )
    values = {"state": to.value, "closed_at": at, "report": report}
    return connection.execute(object_writes.update().where(standing).values(values)).rowcount == 1


def reopen(connection: sa.Connection, write: ObjectWrite) -> None:
    """A write that was given up continues, under its number and with its bounds."""
    given_up = _same(write) & (_of.state == WriteState.GIVEN_UP.value)
    connection.execute(object_writes.update().where(given_up).values(state=WriteState.OPEN.value, closed_at=None))


def begin_job(
    connection: sa.Connection, write: ObjectWrite, *, run: str | None, lease_until: datetime, deadline: datetime
) -> None:
    """A job for the open write is begun by this run."""
    values = {"run": run, "lease_until": lease_until, "deadline": deadline, "ended_at": None}
    connection.execute(object_writes.update().where(_same(write)).values(values))


def end_job(connection: sa.Connection, write: ObjectWrite, *, deadline: datetime, at: datetime) -> bool:
    """Its job of that deadline can write no more; True unless another was begun after it."""
    newest = _same(write) & (_of.deadline == deadline)
    return connection.execute(object_writes.update().where(newest).values(ended_at=at)).rowcount == 1


def renew(connection: sa.Connection, write: ObjectWrite, *, run: str | None, until: datetime) -> bool:
    """The worker of that run lives; True while the write is open and this run's."""
    standing = _same(write) & (_of.state == WriteState.OPEN.value) & (_of.run == run)
    return connection.execute(object_writes.update().where(standing).values(lease_until=until)).rowcount == 1


def renew_all(
    connection: sa.Connection, object_uids: Sequence[str], *, run: str | None, until: datetime
) -> frozenset[str]:
    """As `renew`, for the open backfills of many objects; the uids of those that are still this run's."""
    mine = (_of.state == WriteState.OPEN.value) & (_of.kind == WriteKind.BACKFILL.value) & (_of.run == run)
    found: set[str] = set()
    for some in portions(object_uids):
        these = mine & _of.object_uid.in_(some)
        connection.execute(object_writes.update().where(these).values(lease_until=until))
        found.update(connection.execute(sa.select(_of.object_uid).where(these)).scalars())
    return frozenset(found)


def may_be_alive(connection: sa.Connection, replication_uid: str, *, now: datetime) -> datetime | None:
    """Until when a job of the replication's objects may write; None: all have surely ended."""
    query = (
        sa.select(sa.func.max(_of.deadline))
        .join(replicated_objects, replicated_objects.c.uid == _of.object_uid)
        .where(replicated_objects.c.replication_uid == replication_uid, _of.ended_at.is_(None), _of.deadline > now)
    )
    latest: datetime | None = connection.execute(query).scalar_one()
    return latest


def _same(write: ObjectWrite) -> sa.ColumnElement[bool]:
    return (_of.object_uid == write.object_uid) & (_of.number == write.number)


def _write(row: Mapping[str, Any] | sa.RowMapping) -> ObjectWrite:
    return ObjectWrite(
        object_uid=row["object_uid"],
        number=row["number"],
        kind=WriteKind(row["kind"]),
        opened_at=row["opened_at"],
        lease_until=row["lease_until"],
        deadline=row["deadline"],
        run=row["run"],
        start=row["start_position"],
        end=row["end_position"],
        as_of=row["as_of"],
        ended_at=row["ended_at"],
        state=WriteState(row["state"]),
        report=row["report"],
    )
