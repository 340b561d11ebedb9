"""Waves: a plan writes chunks ahead and hands them out, tasks read them, a commit moves the watermarks.

If anything dies in between, the next plan hands the same chunks out again; a sink knows them by their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import (
    ChangeStream,
    Chunk,
    ChunkState,
    ConsumerGroup,
    GroupPartition,
    LoadSegment,
    PartitionState,
    Position,
    WavePlan,
    WaveResult,
)
from tidemark.change_streams.planning.waves import chunk_bounds, unread
from tidemark.change_streams.store import (
    backfills,
    change_streams,
    chunks,
    consumer_groups,
    group_partitions,
    partitions,
)
from tidemark.change_streams.store.group_partitions import GroupScope
from tidemark.change_streams.worker.progress import Settled, free_ones, scope_of, settle
from tidemark.control.store import ControlStore
from tidemark.errors import ChunkChanged, InvalidArgument, PartitionExpired, PartitionsFailed, PartitionTokenInvalid

__all__ = ["begin_chunks", "chunk_failed", "chunk_written", "commit_wave", "finish", "plan_wave"]

SEGMENTS_AT_ONCE = 1_000  # of one token; behind them the next chunk begins


def plan_wave(
    store: ControlStore,
    stream: str,
    group: str,
    *,
    run: str,
    max_chunks: int,
    max_rows: int,
    token: str | None = None,
) -> WavePlan:
    """Write the next chunks of a group ahead, one of a partition, and return them; open ones first, as they were.

    At most `max_chunks`, each of about `max_rows` rows. A partition that failed in `run` waits for another run.
    `token`: of this partition alone. A paused group gets nothing, nor a new one whose
    backfill is not done. A second run hands out the same chunks. Raises ChangeStreamNotFound,
    ConsumerGroupNotFound, PartitionTokenInvalid, PartitionExpired (an OutOfRange), InvalidArgument.
    """
    for argument, value in (("max_chunks", max_chunks), ("max_rows", max_rows)):
        if value < 1:
            raise InvalidArgument(argument=argument, value=value, problem="at least one")

    def plan(connection: sa.Connection) -> WavePlan:
        found, reader = _both(connection, stream, group)
        if token is not None:
            _require_known(connection, reader, token)
        settled = settle(connection, found, reader, at=store.clock())
        asked = _Request(found, reader, run, max_chunks, max_rows, token)
        return _planned(connection, asked, settled)

    return store.write(plan)


def begin_chunks(
    store: ControlStore, planned: Sequence[Chunk], run: str, *, task: str | None = None
) -> tuple[Chunk, ...]:
    """The task of that key takes up chunks; those that a sink has already are left out of the answer. A second run
    changes nothing.

    Raises ChunkChanged if a chunk is not as it was handed out, for example because its group was reset or dropped.
    """

    def begin(connection: sa.Connection) -> tuple[Chunk, ...]:
        stored = [(chunk, _stored(connection, chunk)) for chunk in planned]
        due = [chunk for chunk, found in stored if found.state is ChunkState.OPEN]
        for chunk in due:
            chunks.take(connection, chunk, run=run, task=task)
            group_partitions.mark_running(connection, chunk.group_uid, (chunk.token,))
        return tuple(due)

    return store.write(begin)


def chunk_written(store: ControlStore, chunk: Chunk, rows: int, facts: Mapping[str, str]) -> bool:
    """The sink has the chunk, `rows` rows of it; True unless that was known. A second run changes nothing.

    Raises as `begin_chunks`.
    """

    def move(connection: sa.Connection) -> bool:
        _stored(connection, chunk)
        return chunks.mark_written(connection, chunk, rows=rows, facts=facts, at=store.clock())

    return store.write(move)


def chunk_failed(store: ControlStore, chunk: Chunk, run: str, error: str, *, task: str | None = None) -> None:
    """The chunk could not be read or written; it stays as it is, for another run. A second run changes nothing, and
    neither does it if the sink has the chunk after all. Secrets are taken out of `error`. Raises as `begin_chunks`.
    """
    shown = store.hide(error)

    def move(connection: sa.Connection) -> None:
        if _stored(connection, chunk).state is ChunkState.OPEN:
            group_partitions.mark_failed(connection, chunk.group_uid, chunk.token, run=run, error=shown, task=task)

    store.write(move)


def commit_wave(store: ControlStore, stream: str, group: str, *, run: str) -> WaveResult:
    """Move the watermarks over all that sinks have, from any run, and over ranges without rows. Partitions whose end is
    reached are finished, and their children come in with that (I4). A second run changes nothing.

    Raises ChangeStreamNotFound, ConsumerGroupNotFound.
    """

    def commit(connection: sa.Connection) -> WaveResult:
        found, reader = _both(connection, stream, group)
        settled = settle(connection, found, reader, at=store.clock())
        lowest = group_partitions.low_watermark(connection, reader.uid) or found.published_until
        return WaveResult(settled.advanced, settled.finished, settled.children, lowest)

    return store.write(commit)


def finish(store: ControlStore, stream: str, group: str, *, run: str) -> int:
    """How many partitions have work left for another run; moves nothing. Raises PartitionsFailed if any failed in
    `run`, ChangeStreamNotFound, ConsumerGroupNotFound.
    """

    def look(connection: sa.Connection) -> int:
        found, reader = _both(connection, stream, group)
        failed = group_partitions.failures(connection, reader.uid, run=run)
        if failed:
            tokens, error = ", ".join(failed), next(iter(failed.values()))
            raise PartitionsFailed(failed=len(failed), stream=found.name, group=reader.name, tokens=tokens, error=error)
        return _work(connection, scope_of(connection, found, reader)) + len(
            chunks.written_ones(connection, found, reader)
        )

    return store.read(look)


@dataclass(frozen=True)
class _Request:
    """The request of one plan."""

    stream: ChangeStream
    group: ConsumerGroup
    run: str
    max_chunks: int
    max_rows: int
    token: str | None


def _planned(connection: sa.Connection, asked: _Request, settled: Settled) -> WavePlan:
    """First what is open, then what is next, oldest watermark first."""
    group, scope = asked.group, settled.scope
    _require_kept(connection, asked, scope)
    again: tuple[Chunk, ...] = ()
    made: tuple[Chunk, ...] = ()
    if not group.paused and not backfills.holds(connection, group.uid):
        again = chunks.open_ones(connection, asked.stream, group, run=asked.run, token=asked.token)[: asked.max_chunks]
        made = _next_chunks(connection, asked, scope, asked.max_chunks - len(again))
    group_partitions.schedule_again(connection, group.uid, [chunk.token for chunk in again])
    group_partitions.schedule(connection, group.uid, [chunk.token for chunk in made])
    chunks.insert(connection, made, run=asked.run)
    handed_out = (*again, *made)
    return WavePlan(handed_out, settled.advanced, _work(connection, scope) - len(handed_out))


def _next_chunks(connection: sa.Connection, asked: _Request, scope: GroupScope, room: int) -> tuple[Chunk, ...]:
    found = sorted(
        _free_with_load(connection, asked, scope, room), key=lambda one: (one.watermark, one.partition.token)
    )
    return tuple(_next_chunk(connection, asked, scope, one) for one in found[:room])


def _free_with_load(
    connection: sa.Connection, asked: _Request, scope: GroupScope, room: int
) -> Sequence[GroupPartition]:
    """At least `room` of those that a chunk can be made of, the oldest of each state, or all that there are."""
    if room == 0:
        return ()
    going_on = group_partitions.with_load(
        connection, scope, PartitionState.READY, run=asked.run, token=asked.token, most=room
    )
    most = room
    while True:
        new = group_partitions.with_load(
            connection, scope, PartitionState.CREATED, run=asked.run, token=asked.token, most=most
        )
        free = free_ones(connection, asked.group, new)
        if len(free) >= room or len(new) < most:
            return (*going_on, *free)
        most *= 4  # many wait for their parents


def _next_chunk(connection: sa.Connection, asked: _Request, scope: GroupScope, one: GroupPartition) -> Chunk:
    token, group = one.partition.token, asked.group
    load = partitions.segments(connection, group.stream_uid, token, one.watermark, most=SEGMENTS_AT_ONCE)
    before: tuple[LoadSegment, ...] = ()
    if one.watermark == Position(group.start):
        before = partitions.segment_before(connection, group.stream_uid, token, group.start, since=scope.first_load)
    bounds = chunk_bounds(
        one.partition,
        one.watermark,
        unread((*before, *load), one.watermark),
        published_until=asked.stream.published_until,
        max_rows=asked.max_rows,
        more=len(load) == SEGMENTS_AT_ONCE,
    )
    return Chunk(
        group_uid=group.uid,
        stream_uid=group.stream_uid,
        stream=asked.stream.name,
        group=group.name,
        token=token,
        number=one.chunks,
        start=bounds.start,
        end=bounds.end,
        expected=bounds.expected,
        last=bounds.last,
    )


def _work(connection: sa.Connection, scope: GroupScope) -> int:
    """Partitions with an open chunk, with load, or whose parents are unfinished, once all is settled."""
    ready = group_partitions.count_busy(connection, scope, PartitionState.READY)
    new = group_partitions.counts(connection, scope.group.uid).get(PartitionState.CREATED.value, 0)
    return ready + new + chunks.count_open(connection, scope.group.uid)


def _require_kept(connection: sa.Connection, asked: _Request, scope: GroupScope) -> None:
    """Nothing that is to be read has expired. Raises PartitionExpired."""
    until = asked.stream.expired_until
    if until is None:
        return
    for one in group_partitions.expired(connection, scope, until, token=asked.token):
        problem = (
            f"consumer group {asked.group.name!r} of change stream {asked.stream.name} has read it only up to "
            f"{one.watermark.at.isoformat()}. Records before {until.isoformat()} have expired. Reset the group to "
            "continue without them"
        )
        raise PartitionExpired(argument="partition_token", value=one.partition.token, problem=problem)


def _both(connection: sa.Connection, stream: str, group: str) -> tuple[ChangeStream, ConsumerGroup]:
    found = change_streams.find(connection, stream)
    return found, consumer_groups.find(connection, found, group)


def _require_known(connection: sa.Connection, group: ConsumerGroup, token: str) -> None:
    """Raises PartitionTokenInvalid."""
    if token not in group_partitions.states_of(connection, group.uid, (token,)):
        problem = f"consumer group {group.name!r} has no such partition, or has not reached it yet"
        raise PartitionTokenInvalid(argument="token", value=token, problem=problem)


def _stored(connection: sa.Connection, chunk: Chunk) -> Chunk:
    """The chunk as it stands; its bounds are the same. Raises ChunkChanged."""
    found = chunks.as_stored(connection, chunk)
    if found is None or (found.start, found.end) != (chunk.start, chunk.end):
        raise ChunkChanged(
            number=chunk.number,
            token=chunk.token,
            group=chunk.group,
            expected="no chunk of the group as it is now" if found is None else _shown(found),
            found=_shown(chunk),
        )
    return found


def _shown(chunk: Chunk) -> str:
    return f"[{chunk.start.at.isoformat()} {chunk.start.sequence}, {chunk.end.at.isoformat()} {chunk.end.sequence})"
