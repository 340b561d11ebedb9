"""The status of a replication: its objects, how far behind they are, and alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.control.cursors import Listed, Part
from tidemark.control.object_kinds import Lag
from tidemark.control.store import ControlStore
from tidemark.replication.model.replication import (
    HeldTable,
    LogPosition,
    ObjectState,
    ReplicatedObject,
    Replication,
    ReplicationState,
    ReplicationTransition,
)
from tidemark.replication.planning.kept_out import kept_out_notices
from tidemark.replication.planning.lifecycle import applies, has_all, why_no_backfill, why_not_applied
from tidemark.replication.store import replicated_objects, replications, together
from tidemark.replication.store.replicated_objects import StoredObject
from tidemark.replication.store.replications import StoredReplication

__all__ = [
    "Alert",
    "DescribedPart",
    "ObjectStatus",
    "ReplicationStatus",
    "describe",
    "describe_all",
    "describe_object",
    "describe_part",
    "history",
    "table_lags",
]


@dataclass(frozen=True)
class Alert:
    """A finding that somebody should look at. `object_uid`: None for the replication as a whole. `error`: what a run
    met.
    """

    words: str
    error: str | None = None
    object_uid: str | None = None

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.words}." if self.error is None else f"{self.words}: {self.error}"


@dataclass(frozen=True)
class ObjectStatus:
    """`lag_seconds`: how old the state of the source is that the target shows; None until it shows one.

    `behind`: events were captured, or may have been, that are not applied. `notices`: what the last look at the
    source asks somebody to look at, in words.
    """

    object: ReplicatedObject
    lag_seconds: float | None
    behind: bool
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplicationStatus:
    """`lag_seconds`: how long ago was captured what was committed then; None before the start. `lag_bytes`: of the
    source's log behind the last capture when it ended. `raised`: the alerts, worst first; what the source itself says
    of its slot is not among them. `last_runs`: the run that moved each object last, by its uid; by None the one that
    moved the replication itself. `open_runs`: the run that writes each object, or failed to and left its write open.
    """

    replication: Replication
    objects: tuple[ObjectStatus, ...]
    lag_seconds: float | None
    lag_bytes: int
    raised: tuple[Alert, ...]
    last_runs: Mapping[str | None, str]
    open_runs: Mapping[str, str]

    @property
    def alerts(self) -> tuple[str, ...]:
        """The texts of the alerts, worst first."""
        return tuple(alert.text for alert in self.raised)

    @property
    def selected(self) -> tuple[ObjectStatus, ...]:
        """The objects that the selection names now."""
        return tuple(one for one in self.objects if one.object.selected)

    @property
    def names(self) -> Mapping[str, str]:
        """The objects' names, by their uids."""
        return {one.object.uid: one.object.name.text for one in self.objects}

    @property
    def to_backfill(self) -> Mapping[str, str]:
        """Why selected objects get no changes until they are backfilled, if nobody has requested that backfill yet; by
        name.
        """
        requested = (ObjectState.PENDING, ObjectState.ACTIVE)
        waiting = (one.object for one in self.selected if one.object.state not in requested)
        return {one.name.text: one.needs_backfill for one in waiting if one.needs_backfill is not None}

    @property
    def failed(self) -> Mapping[str, str]:
        """The error of the last backfill or apply of selected objects, until one succeeds; by name."""
        if not applies(self.replication.state):
            return {}
        failing = (one.object for one in self.selected if _failed(one.object))
        return {one.name.text: one.problem or "its backfill failed" for one in failing}

    @property
    def behind(self) -> int:
        """How many of the selected ones are behind."""
        return sum(one.behind for one in self.selected)

    @property
    def backfills(self) -> Mapping[str, int]:
        """How many objects are in each state of a backfill that there is, by its name."""
        return dict(sorted(Counter(one.object.state.value for one in self.objects).items()))


def _failed(one: ReplicatedObject) -> bool:
    can_go_on = one.state is not ObjectState.STOPPED and why_not_applied(one) is None
    is_tried_again = one.state is ObjectState.FAILED and why_no_backfill(one) is None
    return is_tried_again or (can_go_on and one.problem is not None)


def describe(store: ControlStore, name: str) -> ReplicationStatus:
    """As the store knows it, by its clock. Raises ReplicationNotFound."""

    def look(connection: sa.Connection) -> ReplicationStatus:
        (found,) = _described(connection, (replications.find(connection, name),), store.clock())
        return found

    return store.read(look)


def describe_all(store: ControlStore) -> tuple[ReplicationStatus, ...]:
    """All replications that were not dropped, by name. The number of queries does not depend on how many they are."""
    return store.read(lambda connection: _described(connection, replications.live(connection), store.clock()))


_BY_NAME = Listed[StoredReplication](
    "replications", (str, str), lambda one: (one.replication.name.casefold(), one.replication.uid)
)


@dataclass(frozen=True)
class DescribedPart:
    """A part of the replications, by name. `total`: how many there are. `cursor`: for the part that follows; None on
    the last one.
    """

    total: int
    replications: tuple[ReplicationStatus, ...]
    cursor: str | None


def describe_part(store: ControlStore, part: Part) -> DescribedPart:
    """That part of the replications that were not dropped. Objects of the others are not read. Raises CursorInvalid."""

    def look(connection: sa.Connection) -> DescribedPart:
        found = replications.live(connection)
        shown, cursor = _BY_NAME.taken(found, part)
        return DescribedPart(len(found), _described(connection, shown, store.clock()), cursor)

    return store.read(look)


def describe_object(store: ControlStore, name: str, object_name: str) -> ObjectStatus:
    """One object alone, as of many thousands. Raises ReplicationNotFound, ObjectNotFound."""

    def look(connection: sa.Connection) -> ObjectStatus:
        found = replications.find(connection, name).replication
        one = replicated_objects.find(connection, found.uid, object_name, replication=found.name)
        return _status(one, found, store.clock())

    return store.read(look)


def history(store: ControlStore, name: str, *, limit: int = 100) -> tuple[ReplicationTransition, ...]:
    """The newest moves of the replication and its objects, newest first. Raises ReplicationNotFound."""
    return store.read(
        lambda connection: replications.history(
            connection, replications.find(connection, name).replication.uid, limit=limit
        )
    )


def table_lags(connection: sa.Connection, uids: Sequence[str], now: datetime) -> Mapping[str, Lag]:
    """How old the state of the source is that each of these tables shows; those that show none are left out."""
    found = replicated_objects.of_uids(connection, uids)
    theirs = sorted({one.object.replication_uid for one in found})
    of = {one.replication.uid: one.replication for one in replications.with_uids(connection, theirs)}
    shown = [one for one in found if one.object.replication_uid in of]
    ages = {one.object.uid: _status(one, of[one.object.replication_uid], now).lag_seconds for one in shown}
    return {uid: Lag(age) for uid, age in ages.items() if age is not None}


def _described(
    connection: sa.Connection, found: Sequence[StoredReplication], now: datetime
) -> tuple[ReplicationStatus, ...]:
    uids = [one.replication.uid for one in found]
    objects, held = together.objects_of_each(connection, uids), together.held_of_each(connection, uids)
    last, opened = together.last_runs_of_each(connection, uids), together.open_runs_of_each(connection, uids)
    return tuple(
        ReplicationStatus(
            replication=one.replication,
            objects=tuple(_status(stored, one.replication, now) for stored in objects[uid]),
            lag_seconds=_age(one.replication.captured_at, now),
            lag_bytes=one.lag_bytes,
            raised=(*_alerts(one.replication, objects[uid]), *_kept_out(one.replication, held[uid], objects[uid])),
            last_runs=last[uid],
            open_runs=opened[uid],
        )
        for uid, one in zip(uids, found, strict=True)
    )


def _status(stored: StoredObject, replication: Replication, now: datetime) -> ObjectStatus:
    """An object that has all that was captured shows the source as of the last capture. The exception is an object to
    which nothing can be applied. The capture says nothing of it, and its target only grows older.
    """
    one = stored.object
    behind = one.applied is not None and _has_new(stored, one.applied)
    fed = one.applied is not None and why_not_applied(one) is None
    current = fed and (has_all(one, replication.captured) or not behind)
    shown = [time for time in (one.applied_at, replication.captured_at if current else None) if time is not None]
    return ObjectStatus(
        object=one,
        lag_seconds=None if one.applied is None else _age(max(shown, default=None), now),
        behind=behind,
        notices=stored.notices,
    )


def _has_new(stored: StoredObject, applied: LogPosition) -> bool:
    return stored.changed_until is not None and stored.changed_until > applied


def _age(time: datetime | None, now: datetime) -> float | None:
    return None if time is None else (now - time).total_seconds()


def _alerts(replication: Replication, objects: Sequence[StoredObject]) -> Iterator[Alert]:
    if replication.state is ReplicationState.FAILED_PERMANENTLY:
        yield Alert(f"{replication.name} has failed for good, until it is recovered", replication.error)
    elif replication.error is not None:
        yield Alert(f"{replication.name} is {replication.state.value}", replication.error)
    replicated = any(why_no_backfill(stored.object) is None for stored in objects)
    if replication.captured is not None and not replicated:
        yield Alert(f"{replication.name} replicates nothing: its selection names no table that can be")
    for stored in objects:
        yield from _alerts_of(stored)


def _kept_out(
    replication: Replication, held: tuple[HeldTable, ...], objects: Sequence[StoredObject]
) -> Iterator[Alert]:
    known = {one.object.source_id for one in objects}
    return (Alert(words) for words in kept_out_notices(replication.selection, held, known))


def _alerts_of(stored: StoredObject) -> Iterator[Alert]:
    one = stored.object
    if one.selected and one.state is ObjectState.UNSUPPORTED:
        yield Alert(f"{one.name.text} is not replicated", one.problem, one.uid)
    elif one.selected and one.needs_backfill is not None:
        yield Alert(f"{one.name.text} is to be backfilled", one.needs_backfill, one.uid)
    elif one.selected and one.problem is not None:
        yield Alert(one.name.text, one.problem, one.uid)
    for notice in stored.notices:
        yield Alert(one.name.text, notice, one.uid)
