"""The work that a wave of readers may take: which partitions are free to continue, and where a chunk ends.

Nothing here is kept; the store asks, and writes what is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tidemark.change_streams.model.change_streams import BUCKETS, LoadSegment, Partition, PartitionState, Position

__all__ = ["ChunkBounds", "chunk_bounds", "is_blocked", "parents_due", "resting_place", "tiles", "unread"]


@dataclass(frozen=True)
class ChunkBounds:
    """Records [start, end) of a partition, `expected` rows by its load; `last`: the partition ends there."""

    start: Position
    end: Position
    expected: int
    last: bool


def parents_due(partition: Partition, known: Mapping[str, Partition], group_start: datetime) -> tuple[str, ...]:
    """The parents that a group must have finished before the partition (I1). A parent that ended by the group's start
    is never the group's. A parent that is not known any more was finished and forgotten.
    """
    return tuple(token for token in partition.parents if token in known and not _ended_by(known[token], group_start))


def is_blocked(due: Iterable[str], states: Mapping[str, PartitionState]) -> bool:
    """Whether a parent is unfinished, or not even in the group yet, since its own parents are not done."""
    return any(states.get(token) is not PartitionState.FINISHED for token in due)


def unread(segments: Iterable[LoadSegment], watermark: Position) -> tuple[LoadSegment, ...]:
    """Load that may have rows at or after the watermark. Of the segments that begin before it, only the last can, and
    it counts from there.
    """
    ordered = sorted(segments, key=lambda segment: segment.start)
    before = [segment for segment in ordered if segment.start < watermark]
    after = tuple(segment for segment in ordered if segment.start >= watermark)
    if not before or (after and after[0].start == watermark):
        return after
    return replace(before[-1], start=watermark), *after


def resting_place(partition: Partition, published_until: datetime) -> Position:
    """Up to where a partition can be read now: its end, or all that is published."""
    return Position(published_until if partition.end is None else partition.end)


def chunk_bounds(
    partition: Partition,
    watermark: Position,
    load: Sequence[LoadSegment],
    *,
    published_until: datetime,
    max_rows: int,
    more: bool = False,
) -> ChunkBounds:
    """A chunk's bounds from the watermark on, over as many segments as have `max_rows` rows together, and one at least.
    Behind the last segment the chunk continues to where the partition can be read. `load` is in order, and is not
    empty; `more`: there is load behind its last segment, which then only ends the chunk.
    """
    taken, rows = 0, 0
    for segment in load[:-1] if more else load:
        if taken and rows + segment.rows > max_rows:
            break
        taken, rows = taken + 1, rows + segment.rows
    if taken < len(load):
        return ChunkBounds(watermark, load[taken].start, rows, last=False)
    return ChunkBounds(watermark, resting_place(partition, published_until), rows, last=partition.end is not None)


def tiles(partitions: Iterable[Partition]) -> bool:
    """Whether the ranges cover every bucket once (I7)."""
    ordered = sorted(partitions, key=lambda partition: partition.lo)
    edges = [0, *(partition.hi for partition in ordered)]
    return [partition.lo for partition in ordered] == edges[:-1] and edges[-1] == BUCKETS


def _ended_by(partition: Partition, at: datetime) -> bool:
    return partition.end is not None and partition.end <= at
