"""Progress of a consumer group: watermarks over what sinks have and over what has no rows, children after parents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import (
    ChangeStream,
    ConsumerGroup,
    GroupPartition,
    Partition,
    PartitionState,
)
from tidemark.change_streams.planning.waves import is_blocked, parents_due, resting_place
from tidemark.change_streams.store import capture_batches, chunks, group_partitions, partitions
from tidemark.change_streams.store.group_partitions import Advance, GroupScope
from tidemark.errors import ChunkChanged

__all__ = ["Settled", "free_ones", "scope_of", "settle"]


@dataclass(frozen=True)
class Settled:
    """How many partitions were moved on, which of them are finished with it, and which children came in. `scope`: what
    the group looks at.
    """

    scope: GroupScope
    advanced: int
    finished: tuple[str, ...]
    children: tuple[str, ...]


def scope_of(connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup) -> GroupScope:
    """Load segments from the end of the last batch before the group's start on may reach past that start."""
    ended = capture_batches.last_end(connection, stream.uid, group.start)
    return GroupScope(group, stream.created_at if ended is None else ended)


def settle(connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup, *, at: datetime) -> Settled:
    """All that can be moved on without a task, also through chains of partitions without rows. No watermark stays where
    the log has expired, since a chunk from there on could not be read. It stays only if rows are lost there. A second
    run changes nothing. FINISHED of a parent and its children's rows are one store transaction, the caller's (I4).
    """
    scope = scope_of(connection, stream, group)
    done = _commit_written(connection, stream, group, at=at)
    advanced = len(done) + group_partitions.move_idle_on(connection, scope, stream.published_until)
    ends = [move.token for move in done if move.finished]
    ended = list(partitions.lookup_all(connection, stream.uid, ends).values())
    finished, children = [one.token for one in ended], _bring_in(connection, stream, group, ended)
    while idle := free_ones(connection, group, group_partitions.without_load(connection, scope)):
        _move_on(connection, stream, group, idle)
        ended = [one.partition for one in idle if one.partition.end is not None]
        advanced += len(idle)
        finished += [one.token for one in ended]
        children += _bring_in(connection, stream, group, ended)
    if stream.expired_until is not None:
        advanced += group_partitions.skip_expired(connection, scope, stream.expired_until)
    return Settled(scope, advanced, tuple(finished), tuple(children))


def free_ones(
    connection: sa.Connection, group: ConsumerGroup, found: Sequence[GroupPartition]
) -> tuple[GroupPartition, ...]:
    """Those of them that may be read: the ones that are under way, and new ones whose parents are all done (I1)."""
    new = [one.partition for one in found if one.state is PartitionState.CREATED]
    asked = {token for one in new for token in one.parents}
    known = partitions.lookup_all(connection, group.stream_uid, asked)
    states = group_partitions.states_of(connection, group.uid, asked)
    blocked = {one.token for one in new if is_blocked(parents_due(one, known, group.start), states)}
    return tuple(one for one in found if one.partition.token not in blocked)


def _commit_written(
    connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup, *, at: datetime
) -> tuple[Advance, ...]:
    written = chunks.written_ones(connection, stream, group)
    moves = tuple(Advance(one.token, one.start, one.end, one.last) for one in written)
    _advance(connection, stream, group, moves)
    chunks.mark_committed(connection, written, at=at)
    return moves


def _move_on(
    connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup, idle: Iterable[GroupPartition]
) -> None:
    moves = [
        Advance(
            one.partition.token,
            one.watermark,
            resting_place(one.partition, stream.published_until),
            one.partition.end is not None,
        )
        for one in idle
    ]
    _advance(connection, stream, group, moves)


def _advance(connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup, moves: Sequence[Advance]) -> None:
    """Raises ChunkChanged if a watermark is not where its chunk begins; nothing is moved then."""
    if not group_partitions.advance(connection, group.uid, moves):
        tokens = ", ".join(move.token for move in moves[:3])
        expected, found = "a move that continues from the watermark", f"one of {len(moves)} moves that does not"
        raise ChunkChanged(number="of this wave", token=tokens, group=group.name, expected=expected, found=found)


def _bring_in(
    connection: sa.Connection, stream: ChangeStream, group: ConsumerGroup, ended: Sequence[Partition]
) -> list[str]:
    """Children that are not in the group yet: of a merge the first parent that is finished brings them in (I2, I3)."""
    if not ended:
        return []
    tokens = {one.token for one in ended}
    begun = partitions.started_at(connection, stream.uid, (one.end for one in ended if one.end is not None))
    children = [one for one in begun if tokens.intersection(one.parents)]
    there = group_partitions.states_of(connection, group.uid, (one.token for one in children))
    new = [one for one in children if one.token not in there]
    group_partitions.insert(connection, group.uid, new, since=group.start)
    return [one.token for one in new]
