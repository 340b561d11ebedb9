"""I1 to I9 of change-stream partitions (partitions.md 2.2), asked of the store: call `require_invariants` whenever
nobody writes, and give it what it returned the time before, so that it sees what must not change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import (
    BUCKETS,
    BatchState,
    ChangeStream,
    Chunk,
    ChunkState,
    ConsumerGroup,
    GroupPartition,
    LoadSegment,
    Partition,
    PartitionState,
    Position,
)
from tidemark.change_streams.store import change_streams, chunks, consumer_groups, group_partitions, partitions, schema
from tidemark.control.store import ControlStore

__all__ = ["GroupSnapshot", "Snapshot", "require_invariants", "snapshot", "violations"]

IN_A_CHUNK = (PartitionState.SCHEDULED, PartitionState.RUNNING)


@dataclass(frozen=True)
class GroupSnapshot:
    """A consumer group, its partitions by token, its chunks by token and number, and its low watermark as status says
    it.
    """

    group: ConsumerGroup
    partitions: Mapping[str, GroupPartition]
    chunks: Mapping[tuple[str, int], Chunk]
    low_watermark: datetime


@dataclass(frozen=True)
class Snapshot:
    """All that the store has of a change stream, at one moment. `forgotten_until`: partitions that ended by then, and
    load from before it, may be gone.
    """

    stream: ChangeStream
    forgotten_until: datetime
    partitions: Mapping[str, Partition]
    load: Sequence[LoadSegment]
    groups: Mapping[str, GroupSnapshot]


def require_invariants(store: ControlStore, stream: str, before: Snapshot | None = None) -> Snapshot:
    """The snapshot, in which every invariant holds; AssertionError with all that are broken."""
    now = snapshot(store, stream)
    broken = list(violations(now, before))
    assert not broken, "\n".join(broken)
    return now


def snapshot(store: ControlStore, stream: str) -> Snapshot:
    """Read in one transaction."""

    def look(connection: sa.Connection) -> Snapshot:
        found = change_streams.find(connection, stream)
        load, batches = schema.partition_load.c, schema.capture_batches.c
        rows = connection.execute(
            sa.select(load.token, load.start_at, load.start_sequence, load.rows).where(load.stream_uid == found.uid)
        )
        first = connection.execute(
            sa.select(batches.number, batches.published_until)
            .where(batches.stream_uid == found.uid, batches.state == BatchState.CAPTURED.value)
            .order_by(batches.number)
            .limit(1)
        ).first()
        return Snapshot(
            stream=found,
            forgotten_until=found.created_at if first is None or found.expired_until is None else first[1],
            partitions={one.token: one for one in partitions.of_stream(connection, found.uid)},
            load=[LoadSegment(token, Position(at, sequence), count) for token, at, sequence, count in rows],
            groups={
                group.uid: GroupSnapshot(
                    group,
                    {one.partition.token: one for one in group_partitions.of_group(connection, group)},
                    {(one.token, one.number): one for one in chunks.of_group(connection, found, group)},
                    group_partitions.low_watermark(connection, group.uid) or found.published_until,
                )
                for group in consumer_groups.of_stream(connection, found.uid)
            },
        )

    return store.read(look)


def violations(now: Snapshot, before: Snapshot | None = None) -> Iterator[str]:
    """Each broken invariant in words, its number first."""
    yield from _ranges_tile_i7(now)
    yield from _children_follow_i3_i9(now)
    for seen in now.groups.values():
        where = f"group {seen.group.name}: "
        for found in (
            *_parents_first_i1(now, seen),
            *_one_reader_i2(seen),
            *_watermarks_begin_at_the_start_i3(seen),
            *_children_are_there_i4(now, seen),
            *_low_watermark_i5(now, seen),
            *_committed_up_to_the_watermark_i8(now, seen),
            *_finished_at_the_end_i8(seen),
        ):
            yield where + found
    if before is not None and before.stream.uid == now.stream.uid:
        yield from _nothing_went_back_i6_i9(now, before)


def _parents_first_i1(now: Snapshot, seen: GroupSnapshot) -> Iterator[str]:
    for token, one in seen.partitions.items():
        began = one.state is not PartitionState.CREATED or one.chunks or one.watermark != Position(_first(seen, one))
        for parent in _parents_in_group(now, seen, one.partition) if began else ():
            found = seen.partitions.get(parent)
            if found is None or found.state is not PartitionState.FINISHED:
                yield f"I1: {token} is {one.state} at {one.watermark}, and its parent {parent} is not finished"


def _one_reader_i2(seen: GroupSnapshot) -> Iterator[str]:
    of_token: dict[str, list[Chunk]] = defaultdict(list)
    for (token, _), chunk in sorted(seen.chunks.items()):
        of_token[token].append(chunk)
    for token, one in seen.partitions.items():
        found = of_token.pop(token, [])
        pending = [chunk for chunk in found if chunk.state is not ChunkState.COMMITTED]
        if len(pending) > 1 or (len(pending) == 1) != (one.state in IN_A_CHUNK):
            yield f"I2: {token} is {one.state} and has {len(pending)} chunks that are not committed"
        if any(chunk.start != one.watermark for chunk in pending):
            yield f"I2: a chunk of {token} does not begin at its watermark {one.watermark}"
        if found and [chunk.number for chunk in found] != list(range(one.chunks - len(found), one.chunks)):
            yield f"I2: the chunks of {token} are {[chunk.number for chunk in found]}, counted {one.chunks}"
        if any(later.start < earlier.end for earlier, later in pairwise(found)):
            yield f"I2: chunks of {token} overlap"
    for token in of_token:
        yield f"I2: there are chunks of {token}, which the group does not have"


def _children_follow_i3_i9(now: Snapshot) -> Iterator[str]:
    for token, one in now.partitions.items():
        for parent in filter(None, map(now.partitions.get, one.parents)):
            if parent.end != one.start:
                yield f"I3: {token} starts at {one.start}, and its parent {parent.token} ends at {parent.end}"
            if not (parent.lo < one.hi and one.lo < parent.hi):
                yield f"I3: {token} has no key of its parent {parent.token}"
            if parent.start >= one.start:
                yield f"I9: {token} does not start after its parent {parent.token}"


def _watermarks_begin_at_the_start_i3(seen: GroupSnapshot) -> Iterator[str]:
    for token, one in seen.partitions.items():
        if one.watermark < Position(_first(seen, one)):
            yield f"I3: {token} has its watermark {one.watermark} before its start"


def _children_are_there_i4(now: Snapshot, seen: GroupSnapshot) -> Iterator[str]:
    for token, child in now.partitions.items():
        for parent in child.parents:
            found = seen.partitions.get(parent)
            if found is not None and found.state is PartitionState.FINISHED and token not in seen.partitions:
                yield f"I4: {parent} is finished, and its child {token} is not there"


def _low_watermark_i5(now: Snapshot, seen: GroupSnapshot) -> Iterator[str]:
    unfinished = [one for one in seen.partitions.values() if one.state is not PartitionState.FINISHED]
    lowest = min((one.watermark.at for one in unfinished), default=now.stream.published_until)
    if seen.low_watermark != lowest:
        yield f"I5: the low watermark is {seen.low_watermark}, and the least of the unfinished {lowest}"
    for token, one in now.partitions.items():
        if token not in seen.partitions and one.start > seen.group.start and one.start < seen.low_watermark:
            yield f"I5: {token} is not in the group, and the low watermark is past its start"
    if lowest > now.stream.published_until:
        yield f"I5: the low watermark {lowest} is past all that is published"


def _nothing_went_back_i6_i9(now: Snapshot, before: Snapshot) -> Iterator[str]:
    for token, one in now.partitions.items():
        old = before.partitions.get(token, one)
        if (old.lo, old.hi, old.start, old.parents) != (one.lo, one.hi, one.start, one.parents) or (
            old.end is not None and old.end != one.end
        ):
            yield f"I9: {token} was {old} and is {one}"
    for uid in set(now.groups) & set(before.groups):
        new, old_group = now.groups[uid], before.groups[uid]
        for token, found in old_group.partitions.items():
            current = new.partitions.get(token)
            if current is not None and (
                current.watermark < found.watermark
                or (found.state is PartitionState.FINISHED and current.state is not PartitionState.FINISHED)
            ):
                yield f"I6: {token} was {found.state} at {found.watermark}, is {current.state} at {current.watermark}"
        for key, chunk in old_group.chunks.items():
            again = new.chunks.get(key, chunk)
            if (again.start, again.end, again.last) != (chunk.start, chunk.end, chunk.last):
                yield f"I9: chunk {key} was [{chunk.start}, {chunk.end}) and is [{again.start}, {again.end})"


def _ranges_tile_i7(now: Snapshot) -> Iterator[str]:
    for at in sorted({one.start for one in now.partitions.values()} | {now.stream.published_until}):
        alive = [one for one in now.partitions.values() if one.start <= at and (one.end is None or one.end > at)]
        ordered = sorted((one.lo, one.hi) for one in alive)
        edges = [0, *(hi for _, hi in ordered)]
        if at >= now.forgotten_until and ([lo for lo, _ in ordered] != edges[:-1] or edges[-1] != BUCKETS):
            yield f"I7: the ranges at {at} are {ordered}"
    for segment in now.load:
        home, at = now.partitions.get(segment.token), segment.start.at
        if home is None:
            if at >= now.forgotten_until:
                yield f"I7: {segment} is of no partition"
        elif at < home.start or (home.end is not None and at >= home.end):
            yield f"I7: {segment} is outside of its partition [{home.start}, {home.end})"


def _committed_up_to_the_watermark_i8(now: Snapshot, seen: GroupSnapshot) -> Iterator[str]:
    committed: dict[str, list[Chunk]] = defaultdict(list)
    for (token, _), chunk in seen.chunks.items():
        if chunk.state is ChunkState.COMMITTED:
            committed[token].append(chunk)
    since = Position(max(seen.group.start, now.forgotten_until))
    for segment in now.load:
        one = seen.partitions.get(segment.token)
        if one is None or not since <= segment.start < one.watermark:
            continue
        if sum(chunk.start <= segment.start < chunk.end for chunk in committed[segment.token]) != 1:
            yield f"I8: {segment} lies before the watermark {one.watermark}, and not in one committed chunk"


def _finished_at_the_end_i8(seen: GroupSnapshot) -> Iterator[str]:
    for token, one in seen.partitions.items():
        end = None if one.partition.end is None else Position(one.partition.end)
        if one.state is PartitionState.FINISHED and one.watermark != end:
            yield f"I8: {token} is finished at {one.watermark}, and ends at {end}"
        elif end is not None and one.watermark > end:
            yield f"I8: {token} is past its end"


def _first(seen: GroupSnapshot, one: GroupPartition) -> datetime:
    return max(one.partition.start, seen.group.start)


def _parents_in_group(now: Snapshot, seen: GroupSnapshot, partition: Partition) -> list[str]:
    """Those that are not forgotten and lived after the group's start."""
    known = filter(None, map(now.partitions.get, partition.parents))
    return [parent.token for parent in known if parent.end is None or parent.end > seen.group.start]
