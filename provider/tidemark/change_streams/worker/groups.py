"""Consumer groups: where they start, which state they are in, how they pause, restart and end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import STALE_AT, ChangeStream, ConsumerGroup, GroupStatus
from tidemark.change_streams.planning.starts import GroupStart
from tidemark.change_streams.store import (
    backfills,
    change_streams,
    chunks,
    consumer_groups,
    group_partitions,
    partitions,
)
from tidemark.control.store import ControlStore
from tidemark.errors import ConsumerGroupExists, InvalidArgument, OutOfRange
from tidemark.streams.planning.names import require_name

__all__ = [
    "begin_group",
    "create_group",
    "drop_group",
    "group_status",
    "list_groups",
    "pause_group",
    "reset_group",
    "resume_group",
]


def create_group(
    store: ControlStore, stream: str, group: str, start: GroupStart, if_not_exists: bool = False
) -> ConsumerGroup:
    """A group that begins at a time, at the earliest that the log has, or behind all that is published now.

    `if_not_exists` keeps an existing group where it is, so a second run changes nothing. Raises ChangeStreamNotFound,
    ConsumerGroupExists, OutOfRange (a time that the log does not reach), InvalidArgument.
    """
    require_name(group)
    uid = store.new_id()

    def create(connection: sa.Connection) -> ConsumerGroup:
        watched = change_streams.find(connection, stream)
        existing = consumer_groups.lookup(connection, watched.uid, group)
        if existing is not None:
            if if_not_exists:
                return existing
            raise ConsumerGroupExists(stream=watched.name, group=existing.name, start=existing.start.isoformat())
        return begin_group(connection, store, watched, uid, group, start)

    return store.write(create)


def reset_group(store: ControlStore, stream: str, group: str, start: GroupStart) -> ConsumerGroup:
    """The group ends, and another of that name begins at `start`. Sinks know it as another reader, so records come
    again on purpose. A paused group stays paused. A second run does it again. Raises ChangeStreamNotFound,
    ConsumerGroupNotFound, OutOfRange, InvalidArgument.
    """
    uid = store.new_id()

    def reset(connection: sa.Connection) -> ConsumerGroup:
        watched = change_streams.find(connection, stream)
        old = consumer_groups.find(connection, watched, group)
        _end(connection, store, old)
        begun = begin_group(connection, store, watched, uid, old.name, start)
        consumer_groups.set_paused(connection, uid, paused=old.paused)
        return replace(begun, paused=old.paused)

    return store.write(reset)


def pause_group(store: ControlStore, stream: str, group: str) -> ConsumerGroup:
    """No wave gets anything more until it is resumed; chunks that a task has are finished. A second run changes
    nothing. Raises ChangeStreamNotFound, ConsumerGroupNotFound.
    """
    return _pause(store, stream, group, paused=True)


def resume_group(store: ControlStore, stream: str, group: str) -> ConsumerGroup:
    """Waves continue where they were. A second run changes nothing. Raises as `pause_group`."""
    return _pause(store, stream, group, paused=False)


def drop_group(store: ControlStore, stream: str, group: str) -> ConsumerGroup:
    """End the group and return what it was; what it delivered stays. Raises ChangeStreamNotFound,
    ConsumerGroupNotFound; so does a second run.
    """

    def drop(connection: sa.Connection) -> ConsumerGroup:
        found = consumer_groups.find(connection, change_streams.find(connection, stream), group)
        _end(connection, store, found)
        return found

    return store.write(drop)


def list_groups(store: ControlStore, stream: str) -> tuple[ConsumerGroup, ...]:
    """The groups of a change stream, by name. Raises ChangeStreamNotFound."""
    return store.read(lambda c: consumer_groups.of_stream(c, change_streams.find(c, stream).uid))


def group_status(store: ControlStore, stream: str, group: str) -> GroupStatus:
    """The state of the group; moves nothing. Raises ChangeStreamNotFound, ConsumerGroupNotFound."""

    def look(connection: sa.Connection) -> GroupStatus:
        watched = change_streams.find(connection, stream)
        found = consumer_groups.find(connection, watched, group)
        lowest = group_partitions.low_watermark(connection, found.uid) or watched.published_until
        lag = max(0.0, (store.clock() - lowest).total_seconds())
        retention = watched.options.retention.total_seconds()
        return GroupStatus(
            group=found,
            stream=watched.name,
            low_watermark=lowest,
            published_until=watched.published_until,
            lag_seconds=lag,
            seconds_until_expiry=retention - lag,
            stale=lag >= STALE_AT * retention,
            counts=group_partitions.counts(connection, found.uid),
            open_chunks=chunks.count_open(connection, found.uid),
            failed=group_partitions.failures(connection, found.uid),
            backfilling=backfills.holds(connection, found.uid),
        )

    return store.read(look)


def _pause(store: ControlStore, stream: str, group: str, *, paused: bool) -> ConsumerGroup:
    def move(connection: sa.Connection) -> ConsumerGroup:
        found = consumer_groups.find(connection, change_streams.find(connection, stream), group)
        consumer_groups.set_paused(connection, found.uid, paused=paused)
        return replace(found, paused=paused)

    return store.write(move)


def begin_group(
    connection: sa.Connection, store: ControlStore, stream: ChangeStream, uid: str, name: str, start: GroupStart
) -> ConsumerGroup:
    """In the caller's transaction; the group's first partitions are those that are active at its start. Raises
    OutOfRange, InvalidArgument.
    """
    now = store.clock()
    at = _start(stream, start, now)
    group = ConsumerGroup(uid, stream.uid, name, at, now)
    consumer_groups.insert(connection, group)
    group_partitions.insert(connection, uid, partitions.active_at(connection, stream.uid, at), since=at)
    return group


def _end(connection: sa.Connection, store: ControlStore, group: ConsumerGroup) -> None:
    chunks.forget_group(connection, group.uid)
    group_partitions.forget_group(connection, group.uid)
    consumer_groups.end(connection, group.uid, at=store.clock())


def _start(stream: ChangeStream, start: GroupStart, now: datetime) -> datetime:
    """Raises OutOfRange, InvalidArgument."""
    latest = stream.published_until
    kept = max(stream.created_at, now - stream.options.retention, stream.expired_until or stream.created_at)
    earliest = min(latest, kept)
    named: dict[object, Callable[[], datetime]] = {"earliest": lambda: earliest, "now": lambda: latest}
    if start in named:
        return named[start]()
    if not isinstance(start, datetime) or start.tzinfo is None:
        raise InvalidArgument(argument="start", value=start, problem="a time with its zone, 'earliest' or 'now'")
    if start < earliest:
        problem = f"too far in the past: the earliest is {earliest.isoformat()}"
        raise OutOfRange(argument="start", value=start.isoformat(), problem=problem)
    if start > latest:
        problem = f"too far in the future: all is published up to {latest.isoformat()}, take 'now' for that"
        raise OutOfRange(argument="start", value=start.isoformat(), problem=problem)
    return start.astimezone(UTC)
