"""Retention of an event log: what every target has, and nobody will ask for again, need not be kept for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa

from tidemark.errors import ReplicationRefused
from tidemark.model.statements import TransactionKey
from tidemark.replication.model.jobs import EXPIRE_EVENTS, ExpireEvents
from tidemark.replication.planning.retention import needed_from
from tidemark.replication.store import object_writes, replicated_objects, replications
from tidemark.streams.worker.runtime import Runtime

__all__ = ["EventsExpired", "expire_events"]


@dataclass(frozen=True)
class EventsExpired:
    """`events` that were read `before` then have left the event log; `held` are as old and needed yet, by
    `schema.table`.
    """

    before: datetime
    events: int
    held: Mapping[str, int] = field(default_factory=dict)


def expire_events(
    runtime: Runtime, name: str, *, keep: timedelta, only_writer: bool = False, key: TransactionKey | None = None
) -> EventsExpired:
    """Delete the events older than `keep` from the event log, by a job if anything was captured. Events that a target
    or event files do not have stay, and so do those of an object that is being copied. In any state of the
    replication.

    The decision holds for any duration of the job. Positions of targets only grow, and a copy that begins later is as
    of a later position than any deleted event. Killed anywhere, a second run does what is left. `only_writer`: nothing
    is captured while it runs. Raises ReplicationNotFound, ReplicationRefused (being dropped), EventLogChanged,
    CommitsMayBeLost, JobError.
    """
    before = runtime.store.clock() - keep

    def decide(connection: sa.Connection) -> tuple[ExpireEvents, Mapping[str, str]]:
        found = replications.find(connection, name)
        replication = found.replication
        if found.dropping:
            raise ReplicationRefused(replication=replication.name, problem="it is being dropped.")
        objects = [one.object for one in replicated_objects.of_replication(connection, replication.uid)]
        copied = [(one, object_writes.is_copied(connection, one.uid)) for one in objects]
        request = ExpireEvents(
            replication_uid=replication.uid,
            stream=replication.name,
            event_log=replication.event_log,
            batches=replication.batches,
            before=before,
            needed=needed_from(copied),
            only_writer=only_writer,
        )
        return request, {one.source_id: one.name.text for one in objects}

    request, names = runtime.store.read(decide)
    if request.batches < 2:  # the newest batch stays
        return EventsExpired(before, 0)
    report = runtime.run_job(EXPIRE_EVENTS, request, key=key)
    return EventsExpired(before, report.events, {names.get(one, one): count for one, count in report.held.items()})
