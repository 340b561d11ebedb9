"""The checker finds each invariant that is broken: one is broken in the store at a time, behind its back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.guarantees.partition_invariants import Snapshot, require_invariants, snapshot, violations
from tests.guarantees.partition_world import MortalStore, PartitionWorld, clear, memory_store
from tidemark.change_streams.model.change_streams import ChunkState, PartitionState
from tidemark.change_streams.store import partitions, schema
from tidemark.change_streams.worker.groups import create_group
from tidemark.change_streams.worker.waves import begin_chunks, plan_wave

_group, _chunk, _partition = schema.group_partitions, schema.chunks, schema.partitions
_load, _stream = schema.partition_load, schema.change_streams
MINUTE = timedelta(minutes=1)

Break = Callable[[sa.Connection, Snapshot], None]


@pytest.fixture(scope="module")
def store() -> Iterator[MortalStore]:
    made = memory_store()
    yield made
    made.close()


@pytest.fixture
def world(store: MortalStore) -> PartitionWorld:
    """Two partitions; the left one has split, its right half is read, and its left half has an open chunk."""
    clear(store)
    made = PartitionWorld(store, 2)
    create_group(made.store, "s", "g", "now")
    chance = random.Random(1)
    for _ in range(3):
        made.commit(range(24))
        made.capture(split_rows=10, merge_rows=0)
        made.wave("g", "r", chance, max_chunks=2)
    made.commit(range(24))
    made.capture(split_rows=1000, merge_rows=0)
    while made.wave("g", "r", chance, max_chunks=1):
        pass
    made.commit(range(24))
    made.capture(split_rows=1000, merge_rows=0)
    begin_chunks(made.store, plan_wave(made.store, "s", "g", run="r", max_chunks=1, max_rows=9).chunks, "r")
    made.check()
    return made


def finished_parent(seen: Snapshot) -> str:
    (group,) = seen.groups.values()
    parents = {token for one in seen.partitions.values() for token in one.parents}
    return next(t for t in sorted(parents) if group.partitions[t].state is PartitionState.FINISHED)


def child(seen: Snapshot) -> str:
    return next(token for token, one in sorted(seen.partitions.items()) if finished_parent(seen) in one.parents)


def with_open_chunk(seen: Snapshot) -> str:
    (group,) = seen.groups.values()
    return next(token for (token, _), one in sorted(group.chunks.items()) if one.state is ChunkState.OPEN)


def ready(seen: Snapshot) -> str:
    (group,) = seen.groups.values()
    return next(token for token, one in sorted(group.partitions.items()) if one.state is PartitionState.READY)


def set_group(connection: sa.Connection, token: str, **values: object) -> None:
    connection.execute(_group.update().where(_group.c.token == token).values(**values))


def set_partition(connection: sa.Connection, token: str, **values: object) -> None:
    connection.execute(_partition.update().where(_partition.c.token == token).values(**values))


def a_parent_is_unfinished(c: sa.Connection, seen: Snapshot) -> None:
    set_group(c, finished_parent(seen), state="ready")


def a_second_chunk_is_open(c: sa.Connection, seen: Snapshot) -> None:
    token = with_open_chunk(seen)
    c.execute(_chunk.update().where(_chunk.c.token == token).values(state="open"))


def a_number_is_left_out(c: sa.Connection, seen: Snapshot) -> None:
    set_group(c, with_open_chunk(seen), chunks=_group.c.chunks + 1)


def an_open_chunk_begins_elsewhere(c: sa.Connection, seen: Snapshot) -> None:
    open_one = (_chunk.c.token == with_open_chunk(seen)) & (_chunk.c.state == "open")
    c.execute(_chunk.update().where(open_one).values(start_sequence="5"))


def a_child_starts_later_than_its_parent_ends(c: sa.Connection, seen: Snapshot) -> None:
    set_partition(c, child(seen), start_at=seen.partitions[child(seen)].start + timedelta(microseconds=1))


def a_watermark_is_before_the_start(c: sa.Connection, seen: Snapshot) -> None:
    set_group(c, ready(seen), watermark_at=seen.stream.created_at - MINUTE)


def a_child_is_missing(c: sa.Connection, seen: Snapshot) -> None:
    c.execute(_group.delete().where(_group.c.token == child(seen)))


def a_watermark_is_past_what_is_published(c: sa.Connection, seen: Snapshot) -> None:
    c.execute(
        _group.update().where(_group.c.state != "finished").values(watermark_at=seen.stream.published_until + MINUTE)
    )


def a_watermark_goes_down(c: sa.Connection, seen: Snapshot) -> None:
    set_group(c, ready(seen), watermark_at=seen.partitions[ready(seen)].start)


def a_finished_one_goes_on(c: sa.Connection, seen: Snapshot) -> None:
    set_group(c, finished_parent(seen), state="ready")


def a_range_has_a_gap(c: sa.Connection, seen: Snapshot) -> None:
    set_partition(c, child(seen), hi=_partition.c.hi - 1)


def a_range_is_there_twice(c: sa.Connection, seen: Snapshot) -> None:
    set_partition(c, finished_parent(seen), end_at=None)


def a_record_is_after_its_partition(c: sa.Connection, seen: Snapshot) -> None:
    token = finished_parent(seen)
    at = seen.partitions[token].end
    c.execute(_load.insert().values(stream_uid=seen.stream.uid, token=token, start_at=at, start_sequence="1", rows=1))


def finished_before_the_end(c: sa.Connection, seen: Snapshot) -> None:
    set_group(c, finished_parent(seen), watermark_at=seen.partitions[finished_parent(seen)].start + MINUTE)


def a_watermark_jumps_over_records(c: sa.Connection, seen: Snapshot) -> None:
    token = with_open_chunk(seen)
    c.execute(_chunk.delete().where(_chunk.c.token == token, _chunk.c.state == "open"))
    set_group(c, token, state="ready", watermark_at=seen.stream.published_until, chunks=_group.c.chunks - 1)


def a_partition_is_its_own_ancestor(c: sa.Connection, seen: Snapshot) -> None:
    one = seen.partitions[child(seen)]
    set_partition(c, finished_parent(seen), start_at=one.start)


def a_chunk_has_other_bounds(c: sa.Connection, seen: Snapshot) -> None:
    open_one = (_chunk.c.token == with_open_chunk(seen)) & (_chunk.c.state == "open")
    c.execute(_chunk.update().where(open_one).values(end_sequence="9"))


def a_token_has_another_range(c: sa.Connection, seen: Snapshot) -> None:
    set_partition(c, finished_parent(seen), hi=_partition.c.hi - 1)


BROKEN: dict[str, list[Break]] = {
    "I1": [a_parent_is_unfinished],
    "I2": [a_second_chunk_is_open, a_number_is_left_out, an_open_chunk_begins_elsewhere],
    "I3": [a_child_starts_later_than_its_parent_ends, a_watermark_is_before_the_start],
    "I4": [a_child_is_missing],
    "I5": [a_watermark_is_past_what_is_published],
    "I6": [a_watermark_goes_down, a_finished_one_goes_on],
    "I7": [a_range_has_a_gap, a_range_is_there_twice, a_record_is_after_its_partition],
    "I8": [finished_before_the_end, a_watermark_jumps_over_records],
    "I9": [a_partition_is_its_own_ancestor, a_chunk_has_other_bounds, a_token_has_another_range],
}


@pytest.mark.parametrize(("invariant", "breaks"), [(name, one) for name, some in BROKEN.items() for one in some])
def test_the_checker_finds_what_is_broken(world: PartitionWorld, invariant: str, breaks: Break) -> None:
    before = require_invariants(world.store, "s")
    world.store.write(lambda connection: breaks(connection, before))
    broken = " ".join(violations(snapshot(world.store, "s"), before))
    assert f"{invariant}: " in broken


def test_a_low_watermark_that_skips_the_unfinished_is_found(world: PartitionWorld) -> None:
    seen = snapshot(world.store, "s")
    (uid,) = seen.groups
    higher = replace(seen.groups[uid], low_watermark=seen.groups[uid].low_watermark + MINUTE)
    assert any("I5" in line for line in violations(replace(seen, groups={uid: higher})))


def test_a_watermark_that_passed_an_absent_descendant_is_found(world: PartitionWorld) -> None:
    """The minimum must not jump over children that are not there yet."""
    seen = snapshot(world.store, "s")
    token = child(seen)
    world.store.write(lambda c: c.execute(_group.delete().where(_group.c.token.in_([token, finished_parent(seen)]))))
    assert any("I5" in line for line in violations(snapshot(world.store, "s")))


def test_a_checker_without_faults_to_find_is_silent(world: PartitionWorld) -> None:
    assert list(violations(snapshot(world.store, "s"), snapshot(world.store, "s"))) == []
    assert len(world.store.read(lambda c: partitions.of_stream(c, world.stream_uid))) > 2
