"""How far each consumer group is in each partition: each state move by name, with its condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import (
    ConsumerGroup,
    GroupPartition,
    Partition,
    PartitionState,
    Position,
)
from tidemark.change_streams.store.partitions import partition_of
from tidemark.change_streams.store.schema import group_partitions, partition_load, partitions
from tidemark.control.objects import portions, touch
from tidemark.control.schema import UtcDateTime

__all__ = [
    "Advance",
    "GroupScope",
    "advance",
    "count_busy",
    "counts",
    "expired",
    "failures",
    "forget",
    "forget_group",
    "insert",
    "low_watermark",
    "lowest_by_state",
    "mark_failed",
    "mark_running",
    "move_idle_on",
    "of_group",
    "schedule",
    "schedule_again",
    "skip_expired",
    "states_of",
    "with_load",
    "without_load",
]

_of = group_partitions.c
_load = partition_load.c

BETWEEN_CHUNKS = (PartitionState.CREATED, PartitionState.READY)
IN_A_CHUNK = (PartitionState.SCHEDULED, PartitionState.RUNNING)
UNFINISHED = (*BETWEEN_CHUNKS, *IN_A_CHUNK)


def lowest_by_state(group_uid: sa.ColumnElement[str]) -> list[sa.ScalarSelect[datetime]]:
    """The least watermarks of that group, one for each state that is not FINISHED, each by its index."""
    return [
        sa.select(sa.func.min(_of.watermark_at))
        .where(_of.group_uid == group_uid, _of.state == state.value)
        .correlate_except(group_partitions)
        .scalar_subquery()
        for state in UNFINISHED
    ]


LOWEST = sa.select(*lowest_by_state(sa.bindparam("of_group")))


@dataclass(frozen=True)
class GroupScope:
    """A group's view of its change stream. A group may start amid a load segment, whose rows are then partly its own.
    Segments from `first_load` on may reach past its start.
    """

    group: ConsumerGroup
    first_load: datetime


@dataclass(frozen=True)
class Advance:
    """A partition's watermark goes from `start` to `end`; `finished`: that is the partition's end."""

    token: str
    start: Position
    end: Position
    finished: bool


def insert(connection: sa.Connection, group_uid: str, made: Iterable[Partition], *, since: datetime) -> None:
    """Partitions come into the group, each with its watermark at its start, or at `since` if that is later."""
    rows = [
        {
            "group_uid": group_uid,
            "token": one.token,
            "state": PartitionState.CREATED.value,
            "watermark_at": max(one.start, since),
            "watermark_sequence": "",
            "chunks": 0,
        }
        for one in made
    ]
    if rows:
        connection.execute(group_partitions.insert(), rows)


def schedule(connection: sa.Connection, group_uid: str, tokens: Sequence[str]) -> None:
    """A chunk of each is written ahead: CREATED or READY → SCHEDULED, and counted."""
    _move(connection, group_uid, tokens, BETWEEN_CHUNKS, state=PartitionState.SCHEDULED.value, chunks=_of.chunks + 1)


def schedule_again(connection: sa.Connection, group_uid: str, tokens: Sequence[str]) -> None:
    """The open chunk of each is handed out once more: RUNNING → SCHEDULED."""
    _move(connection, group_uid, tokens, (PartitionState.RUNNING,), state=PartitionState.SCHEDULED.value)


def mark_running(connection: sa.Connection, group_uid: str, tokens: Sequence[str]) -> None:
    """A task has taken up the open chunk of each: SCHEDULED → RUNNING."""
    _move(connection, group_uid, tokens, (PartitionState.SCHEDULED,), state=PartitionState.RUNNING.value)


def mark_failed(
    connection: sa.Connection, group_uid: str, token: str, *, run: str, error: str, task: str | None = None
) -> None:
    """The open chunk failed in that run: RUNNING → SCHEDULED, so that it is handed out again, in another run. `task`:
    the key of the task that met the error.
    """
    state = PartitionState.SCHEDULED.value
    _move(connection, group_uid, (token,), IN_A_CHUNK, state=state, failed_run=run, error=error, failed_task=task)
    touch(connection, "consumer_group", (group_uid,), by=task or run)


def advance(connection: sa.Connection, group_uid: str, moves: Sequence[Advance]) -> bool:
    """Each watermark goes up, if it is where the move begins and is not at the end: → READY or FINISHED. An earlier
    failure is forgotten. True if all were so.
    """
    rows = [
        {
            "of_token": one.token,
            "from_at": one.start.at,
            "from_sequence": one.start.sequence,
            "to_at": one.end.at,
            "to_sequence": one.end.sequence,
            "to_state": (PartitionState.FINISHED if one.finished else PartitionState.READY).value,
        }
        for one in moves
        if one.start <= one.end
    ]
    move = group_partitions.update().where(
        _of.group_uid == group_uid,
        _of.token == sa.bindparam("of_token"),
        _of.state != PartitionState.FINISHED.value,
        _of.watermark_at == sa.bindparam("from_at"),
        _of.watermark_sequence == sa.bindparam("from_sequence"),
    )
    values: dict[str, Any] = {
        "state": sa.bindparam("to_state"),
        "watermark_at": sa.bindparam("to_at"),
        "watermark_sequence": sa.bindparam("to_sequence"),
        "failed_run": None,
        "error": None,
        "failed_task": None,
    }
    done = connection.execute(move.values(values), rows).rowcount if rows else 0
    touch(connection, "consumer_group", (group_uid,))
    return done == len(moves)


def move_idle_on(connection: sa.Connection, scope: GroupScope, until: datetime) -> int:
    """READY partitions that continue and have no load beyond their watermark are read up to `until`; how many."""
    uid = scope.group.stream_uid
    ended = sa.exists().where(
        partitions.c.stream_uid == uid, partitions.c.token == _of.token, partitions.c.end_at.is_not(None)
    )
    idle = group_partitions.update().where(
        _of.group_uid == scope.group.uid,
        _of.state == PartitionState.READY.value,
        _of.watermark_at < until,
        ~ended,
        ~HAS_LOAD,
    )
    return connection.execute(idle.values(watermark_at=until, watermark_sequence=""), _seen(scope)).rowcount


def skip_expired(connection: sa.Connection, scope: GroupScope, expired: datetime) -> int:
    """CREATED and READY partitions behind `expired` with load, but none before it, are read up to their first load; how
    many.
    """
    behind = group_partitions.update().where(
        _of.group_uid == scope.group.uid, _in(BETWEEN_CHUNKS), _of.watermark_at < expired, HAS_LOAD, ~HAS_LOAD_BEFORE
    )
    moved = behind.values(watermark_at=FIRST_LOAD, watermark_sequence="")
    return connection.execute(moved, {**_seen(scope), "load_before": expired}).rowcount


def without_load(connection: sa.Connection, scope: GroupScope) -> tuple[GroupPartition, ...]:
    """CREATED ones, and READY ones that have ended, without load beyond their watermark."""
    turning = (_of.state == PartitionState.CREATED.value) | partitions.c.end_at.is_not(None)
    return _many(connection, scope.group, _in(BETWEEN_CHUNKS), turning, ~HAS_LOAD, asked=_seen(scope))


def with_load(
    connection: sa.Connection, scope: GroupScope, state: PartitionState, *, run: str, token: str | None, most: int
) -> tuple[GroupPartition, ...]:
    """Those in `state`, or `token` alone, with load beyond their watermark that have not failed in `run`; the oldest
    watermark first.
    """
    wanted = (_of.state == state.value, _not_failed(run), *_only(token))
    return _many(connection, scope.group, *wanted, HAS_LOAD, most=most, asked=_seen(scope))


def expired(
    connection: sa.Connection, scope: GroupScope, before: datetime, *, token: str | None
) -> tuple[GroupPartition, ...]:
    """The one with the oldest watermark, if any, that is unfinished and has load beyond it from before this time."""
    behind = (_in(UNFINISHED), _of.watermark_at < before, *_only(token))
    asked = {**_seen(scope), "load_before": before}
    return _many(connection, scope.group, *behind, HAS_LOAD_BEFORE, most=1, asked=asked)


def count_busy(connection: sa.Connection, scope: GroupScope, state: PartitionState) -> int:
    """How many in `state` have load beyond their watermark."""
    standing = (_of.group_uid == scope.group.uid) & (_of.state == state.value)
    query = sa.select(sa.func.count()).select_from(group_partitions).where(standing, HAS_LOAD)
    return int(connection.execute(query, _seen(scope)).scalar_one())


def of_group(
    connection: sa.Connection, group: ConsumerGroup, states: Iterable[PartitionState] = tuple(PartitionState)
) -> tuple[GroupPartition, ...]:
    """The group's partitions in these states, oldest watermark first."""
    return _many(connection, group, _in(states))


def states_of(connection: sa.Connection, group_uid: str, tokens: Iterable[str]) -> dict[str, PartitionState]:
    """The states of these tokens; those that the group does not have are left out."""
    found: dict[str, PartitionState] = {}
    for some in portions(sorted(set(tokens))):
        these = _of.token.in_(some)
        rows = connection.execute(sa.select(_of.token, _of.state).where(_of.group_uid == group_uid, these))
        found.update((token, PartitionState(state)) for token, state in rows)
    return found


def low_watermark(connection: sa.Connection, group_uid: str) -> datetime | None:
    """The least watermark of all that are not FINISHED, CREATED ones included (I5); None if none is left."""
    found = [at for at in connection.execute(LOWEST, {"of_group": group_uid}).one() if at is not None]
    return min(found, default=None)


def counts(connection: sa.Connection, group_uid: str) -> dict[str, int]:
    """Partitions by state."""
    query = sa.select(_of.state, sa.func.count()).where(_of.group_uid == group_uid).group_by(_of.state)
    return {state: int(count) for state, count in connection.execute(query)}


def failures(connection: sa.Connection, group_uid: str, *, run: str | None = None) -> dict[str, str]:
    """Token → error of those whose last attempt failed, in `run` or at all."""
    failed = _of.failed_run.is_not(None) if run is None else _of.failed_run == run
    query = sa.select(_of.token, _of.error).where(_of.group_uid == group_uid, failed).order_by(_of.token)
    return {token: error or "" for token, error in connection.execute(query)}


def forget(connection: sa.Connection, stream_uid: str, group_uid: str, *, before: datetime) -> int:
    """Remove FINISHED ones whose partition ended by then; how many."""
    ended = sa.select(partitions.c.token).where(partitions.c.stream_uid == stream_uid, partitions.c.end_at <= before)
    old = group_partitions.delete().where(
        _of.group_uid == group_uid, _of.state == PartitionState.FINISHED.value, _of.token.in_(ended)
    )
    return connection.execute(old).rowcount


def forget_group(connection: sa.Connection, group_uid: str) -> None:
    """Remove all of a group that has ended."""
    connection.execute(group_partitions.delete().where(_of.group_uid == group_uid))
    touch(connection, "consumer_group", (group_uid,))


def _move(
    connection: sa.Connection, group_uid: str, tokens: Sequence[str], states: Iterable[PartitionState], **values: Any
) -> None:
    for some in portions(tokens):
        these = _of.token.in_(some)
        connection.execute(
            group_partitions.update().where(_of.group_uid == group_uid, _in(states), these).values(**values)
        )


def _in(states: Iterable[PartitionState]) -> sa.ColumnElement[bool]:
    return _of.state.in_([state.value for state in states])


def _not_failed(run: str) -> sa.ColumnElement[bool]:
    return _of.failed_run.is_(None) | (_of.failed_run != run)


def _only(token: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    return () if token is None else (_of.token == token,)


def _segment_ahead() -> sa.Select[Any]:
    """A segment that begins at or after the watermark, or may reach past it if the group started amid one."""
    at_the_start = (_of.watermark_at == sa.bindparam("group_start", type_=UtcDateTime)) & (_of.watermark_sequence == "")
    since = sa.case((at_the_start, sa.bindparam("first_load", type_=UtcDateTime)), else_=_of.watermark_at)
    return (
        sa.select(sa.literal(1))
        .where(
            _load.stream_uid == sa.bindparam("load_of"),
            _load.token == _of.token,
            _load.start_at >= since,
            (_load.start_at != _of.watermark_at) | (_load.start_sequence >= _of.watermark_sequence),
        )
        .correlate(group_partitions)
    )


HAS_LOAD = _segment_ahead().exists()
FIRST_LOAD = _segment_ahead().with_only_columns(sa.func.min(_load.start_at)).scalar_subquery()
HAS_LOAD_BEFORE = _segment_ahead().where(_load.start_at < sa.bindparam("load_before", type_=UtcDateTime)).exists()


def _seen(scope: GroupScope) -> dict[str, Any]:
    """The parameters of HAS_LOAD."""
    return {"load_of": scope.group.stream_uid, "group_start": scope.group.start, "first_load": scope.first_load}


def _many(
    connection: sa.Connection,
    group: ConsumerGroup,
    *conditions: sa.ColumnElement[bool],
    most: int | None = None,
    asked: Mapping[str, Any] | None = None,
) -> tuple[GroupPartition, ...]:
    query = (
        sa.select(partitions, *(column for column in group_partitions.c if column.name != "token"))
        .join(partitions, (partitions.c.stream_uid == group.stream_uid) & (partitions.c.token == _of.token))
        .where(_of.group_uid == group.uid, *conditions)
        .order_by(_of.watermark_at, _of.watermark_sequence, _of.token)
        .limit(most)
    )
    return tuple(_group_partition(row) for row in connection.execute(query, asked).mappings())


def _group_partition(row: Mapping[str, Any] | sa.RowMapping) -> GroupPartition:
    return GroupPartition(
        group_uid=row["group_uid"],
        partition=partition_of(row),
        state=PartitionState(row["state"]),
        watermark=Position(row["watermark_at"], row["watermark_sequence"]),
        chunks=row["chunks"],
        failed_run=row["failed_run"],
        error=row["error"],
    )
