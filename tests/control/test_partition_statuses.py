"""The partitions of a change stream as the control store knows them: a line each, for the stream and for a group."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.control.change_stream_model import START, ChangeStreamWorld, segment
from tests.control.test_waves_behaviour import Readers, split
from tidemark.change_streams.model.partition_table import PartitionTable
from tidemark.change_streams.worker.groups import create_group
from tidemark.change_streams.worker.partition_statuses import list_partitions
from tidemark.change_streams.worker.waves import begin_chunks, chunk_failed
from tidemark.errors import ChangeStreamNotFound, ConsumerGroupNotFound

SECOND = timedelta(seconds=1)


@pytest.fixture
def readers(world: ChangeStreamWorld) -> Readers:
    return Readers(world)


def shown(table: PartitionTable) -> list[tuple[object, ...]]:
    return [(one.lo, one.hi, one.state, one.end_timestamp, one.watermark) for one in table]


def test_each_partition_is_listed_with_its_parents_and_children_and_up_to_when_it_is_captured(readers: Readers) -> None:
    left, right = readers.world.active()
    at = readers.world.clock.now + SECOND
    split(readers.world, left, 9, segment(left.token, at, 5), segment(right.token, at, 5))
    until = readers.world.stream.published_until
    table = list_partitions(readers.store, "S")
    assert shown(table) == [
        (0, left.hi, "ended", until, until),
        (left.hi, 65_536, "active", None, until),
        (0, 9, "active", None, until),
        (9, left.hi, "active", None, until),
    ]
    first, second, *children = table
    assert (first.start_timestamp, first.parent_tokens, second.child_tokens) == (START, (), ())
    assert sorted(first.child_tokens) == sorted(one.partition_token for one in children)
    assert {one.parent_tokens for one in children} == {(first.partition_token,)}
    assert table.tokens("ended") == (left.token,)
    assert table.tokens() == tuple(one.partition_token for one in table)


def test_a_group_has_its_own_states_and_watermarks(readers: Readers) -> None:
    left, right = readers.world.active()
    at = readers.world.clock.now + SECOND
    split(readers.world, left, 9, segment(left.token, at, 5), segment(right.token, at, 5))
    until = readers.world.stream.published_until
    chunks = {chunk.token: chunk for chunk in readers.plan().chunks}
    begin_chunks(readers.store, list(chunks.values()), "r1")
    chunk_failed(readers.store, chunks[left.token], "r1", "no luck")
    readers.read([chunks[right.token]])
    readers.commit()
    table = list_partitions(readers.store, "s", "G")
    assert shown(table) == [
        (0, left.hi, "scheduled", until, START),
        (left.hi, 65_536, "ready", None, until),
        (0, 9, "waiting", None, None),
        (9, left.hi, "waiting", None, None),
    ]
    assert [one.error for one in table] == ["no luck", None, None, None]
    assert "scheduled (failed)" in str(table[0])
    readers.wave("r2")
    assert [one.state for one in list_partitions(readers.store, "s", "g")][:2] == ["finished", "ready"]


def test_a_group_does_not_list_what_ended_before_it_began(readers: Readers) -> None:
    left, right = readers.world.active()
    at = readers.world.clock.now + SECOND
    split(readers.world, left, 9, segment(left.token, at, 5), segment(right.token, at, 5))
    create_group(readers.store, "s", "late", "now")
    table = list_partitions(readers.store, "s", "late")
    assert ({one.state for one in table}, len(table)) == ({"created"}, 3)
    assert left.token not in table.tokens()


def test_a_table_of_partitions_prints_one_line_for_each(readers: Readers) -> None:
    table = list_partitions(readers.store, "s")
    header, *lines = repr(table).splitlines()
    assert header.split() == [
        "partition_token", "keys", "parents", "children", "state", "start_timestamp", "end_timestamp", "watermark",
    ]  # fmt: skip
    left, right = readers.world.active()
    begun = "2026-11-22T06:00:00.000000Z"
    assert [line.split() for line in lines] == [
        [f"…{one.token[-6:]}", f"[{one.lo},", f"{one.hi})", "-", "-", "active", begun, "-", begun]
        for one in (left, right)
    ]
    assert [line.index("active") for line in lines] == [header.index("state")] * 2
    assert repr(PartitionTable()).split() == header.split()


def test_a_stream_and_a_group_that_do_not_exist_are_named(readers: Readers) -> None:
    with pytest.raises(ChangeStreamNotFound, match="nobody"):
        list_partitions(readers.store, "nobody")
    with pytest.raises(ConsumerGroupNotFound, match="nobody"):
        list_partitions(readers.store, "s", "nobody")
