"""Backfills of many small objects in one job, each with its own number, position and result.

The steps are those of a backfill alone (`worker.backfill`). One copy that fails stops no other. A worker that died
loses nothing: the next job finds the copies that were written, and makes the others. A job that died fails each of its
objects, since nobody knows which copies it wrote.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from tidemark.errors import InvalidArgument, JobError, JobFailed, StoreError, TidemarkError, from_record
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import BACKFILL_OBJECTS, BackfilledObject, BackfillObjects
from tidemark.replication.model.replication import Actor
from tidemark.replication.store import object_writes
from tidemark.replication.worker.backfill_moves import (
    NOT_OURS,
    BackfillOutcome,
    Begun,
    begin_backfill,
    complete_backfill,
    fail_backfill,
)
from tidemark.streams.worker.repeating import Repeating
from tidemark.streams.worker.runtime import Runtime, report_of

__all__ = ["run_backfills"]

log = logging.getLogger(__name__)

LOOKS = 15.0  # seconds between two renewals of the leases
AT_ONCE = 50  # objects that are begun in one transaction


def run_backfills(
    runtime: Runtime,
    object_uids: Sequence[str],
    *,
    by: Actor,
    cancel: Callable[[], None],
    partitions: int = 1,
    key: TransactionKey | None = None,
    looks: float = LOOKS,
) -> Mapping[str, BackfillOutcome]:
    """Backfill each object as `run_backfill` does, all in one job; the outcome of each, in their order.

    An object that is stopped during the job is copied all the same, and is complete then. The job ends early only if
    other runs have all of its objects. A second run by the same task answers what was complete, and copies the others.
    Raises ObjectNotFound, ReplicationNotFound, InvalidArgument without a run, and JobError; each object of the job is
    FAILED then.
    """
    if not by.run:
        raise InvalidArgument(argument="by.run", value=by.run, problem="a backfill belongs to a run")
    deadline = runtime.deadline()
    begun = dict[str, Begun]()
    ended = dict[str, BackfillOutcome]()
    for uid, found in _begun(runtime, object_uids, by, partitions, deadline):
        if isinstance(found, Begun):
            begun[uid] = found
        else:
            ended[uid] = found
    if begun:
        ended |= _ran(runtime, begun, by, cancel, key=key, deadline=deadline, looks=looks)
    return {uid: ended[uid] for uid in object_uids}


def _begun(
    runtime: Runtime, object_uids: Sequence[str], by: Actor, partitions: int, deadline: datetime
) -> Iterator[tuple[str, Begun | BackfillOutcome]]:
    store, limits = runtime.store, runtime.limits
    for start in range(0, len(object_uids), AT_ONCE):
        these = object_uids[start : start + AT_ONCE]

        def begin(connection: sa.Connection, these: Sequence[str] = these) -> list[Begun | BackfillOutcome]:
            return [begin_backfill(connection, store, uid, by, partitions, limits, deadline=deadline) for uid in these]

        yield from zip(these, store.write(begin), strict=True)


def _ran(
    runtime: Runtime,
    begun: Mapping[str, Begun],
    by: Actor,
    cancel: Callable[[], None],
    *,
    key: TransactionKey | None,
    deadline: datetime,
    looks: float,
) -> dict[str, BackfillOutcome]:
    """The job, and what became of each of its objects. Raises JobError unless others have all of the objects."""
    request = BackfillObjects(tuple(one.request for one in begun.values()))
    spec = runtime.spec(BACKFILL_OBJECTS, request, key=key, deadline=deadline)
    kept = _AllKept(runtime, tuple(begun), by, cancel, looks)
    try:
        with kept:
            result = runtime.run(spec)
    except JobError as error:
        ours = [_failed(runtime, one, error, by, deadline, spent=False) for one in begun.values()]
        if any(one.error is not None for one in ours) and not kept.lost:
            raise
        return dict.fromkeys(begun, BackfillOutcome(reason=NOT_OURS))
    try:
        answers = {one.uid: one for one in report_of(BACKFILL_OBJECTS, result).objects}
    except TidemarkError as error:
        return {uid: _failed(runtime, one, error, by, deadline) for uid, one in begun.items()}
    return {
        uid: _ended(runtime, one, answers.get(uid, BackfilledObject(uid)), by, deadline) for uid, one in begun.items()
    }


def _ended(runtime: Runtime, begun: Begun, answer: BackfilledObject, by: Actor, deadline: datetime) -> BackfillOutcome:
    store, report = runtime.store, answer.report
    if report is None:
        error = from_record(answer.error) if answer.error else JobFailed(error="none", message="it has no result")
        return _failed(runtime, begun, error, by, deadline)
    try:
        return store.write(
            lambda connection: complete_backfill(connection, store, begun.write, report, by, deadline=deadline)
        )
    except StoreError:
        raise
    except TidemarkError as error:
        return BackfillOutcome(error=error)


def _failed(
    runtime: Runtime,
    begun: Begun,
    error: TidemarkError,
    by: Actor,
    deadline: datetime,
    *,
    spent: bool | None = None,
) -> BackfillOutcome:
    """The object keeps the error, unless it is another run's by now. `spent`: None where the error says it."""
    wrote_nothing = begun.wrote_nothing(error) if spent is None else spent
    ours = fail_backfill(runtime.store, begun.write, error, by, deadline=deadline, spent=wrote_nothing)
    return BackfillOutcome(error=error) if ours else BackfillOutcome(reason=NOT_OURS)


class _AllKept(Repeating):
    """While a job runs: the leases of its objects are renewed together. `lost`: none of them is this run's any more."""

    def __init__(
        self, runtime: Runtime, object_uids: Sequence[str], by: Actor, cancel: Callable[[], None], looks: float
    ) -> None:
        super().__init__(self._keep, seconds=looks, what="leases of the backfills")
        self.lost = False
        self._runtime = runtime
        self._uids = object_uids
        self._by = by
        self._cancel = cancel

    def _keep(self) -> bool:
        store = self._runtime.store
        until = store.clock() + self._runtime.limits.lease
        run, uids = self._by.run, self._uids
        ours = store.write(lambda connection: object_writes.renew_all(connection, uids, run=run, until=until))
        if ours:
            return True
        log.warning("Every backfill of the job was given up, or another run has it; the job is ended.")
        self.lost = True
        self._cancel()
        return False
