"""Exactly once for each group, and each key in order, over trees of partitions at random: splits and merges by the real
rules, tasks that fail, processes that die between any two calls of the store, groups that start amid a batch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.control.kept_objects import drifted
from tests.guarantees.partition_world import KEYS, MortalStore, PartitionWorld, clear, memory_store
from tests.tiers import some
from tidemark.change_streams.model.change_streams import MICROSECOND, ConsumerGroup
from tidemark.change_streams.store import change_streams, partitions
from tidemark.change_streams.worker.groups import (
    GroupStart,
    create_group,
    group_status,
    list_groups,
    pause_group,
    reset_group,
    resume_group,
)
from tidemark.change_streams.worker.retention import forget

STEPS = st.lists(st.integers(0, 2**24), min_size=4, max_size=10)
GROUPS = ("g", "h")


@pytest.fixture(scope="module")
def store() -> Iterator[MortalStore]:
    made = memory_store()
    yield made
    made.close()


@pytest.mark.parametrize("trees", some((25, 500), now=(25,)))
def test_each_record_once_for_each_group_and_keys_in_order(store: MortalStore, trees: int) -> None:
    @settings(max_examples=trees, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(steps=STEPS, initial=st.integers(1, 4))
    def each(steps: list[int], initial: int) -> None:
        _grow(store, steps, initial)

    each()


def _grow(store: MortalStore, steps: list[int], initial: int) -> None:
    world = PartitionWorld(store, initial)
    try:
        groups = {"g": create_group(store, "s", "g", "now")}
        for number in steps:
            _step(world, groups, random.Random(number))
        for _ in range(2):  # the batch that a dead capture left open, and what came after it
            world.capture(split_rows=3, merge_rows=2)
        for name in groups:
            resume_group(store, "s", name)
            world.read_all(name, random.Random(len(steps)))
        world.check()
        assert drifted(store) == []
        for name, group in groups.items():
            world.require_exactly_once(group.uid, group.start)
            assert group_status(store, "s", name).low_watermark == world.stream.published_until
        found = store.read(lambda c: partitions.of_stream(c, world.stream_uid))
        event(f"{min(10, len(found) // 4 * 4)} or more partitions")
    finally:
        store.lives = None
        clear(store)


def _step(world: PartitionWorld, groups: dict[str, ConsumerGroup], chance: random.Random) -> None:
    lives = chance.choice((None, None, chance.randrange(12)))
    act = chance.choices(("capture", "wave", "rest", "group", "pause", "forget"), (10, 10, 1, 4, 1, 2))[0]
    if act == "capture":
        for _ in range(chance.randrange(1, 4)):
            world.commit([key_of(chance) for _ in range(chance.randrange(12))])
        _age(world, chance)
        how = {"split_rows": chance.choice((1, 3, 9)), "merge_rows": chance.choice((2, 8, 99))}
        bound = chance.choice((None, None, 1, 2))
        world.mortally(lives, lambda: world.capture(**how, max_commits=bound))
    elif act == "rest":
        world.mortally(lives, lambda: world.capture(split_rows=99, merge_rows=0))
    elif act == "wave":
        name, fails = chance.choice(sorted(groups)), chance.choice((0.0, 0.0, 0.4))
        world.runs += chance.random() < 0.7
        run, most, rows = f"r{world.runs}", chance.choice((1, 2, 50)), chance.choice((1, 4, 1000))
        world.mortally(lives, lambda: world.wave(name, run, chance, max_chunks=most, max_rows=rows, fails=fails))
    elif act == "group":
        begin = reset_group if "h" in groups else create_group
        groups["h"] = begin(world.store, "s", "h", _any_start(world, chance))
        world.check()
    elif act == "pause":
        chance.choice((pause_group, resume_group))(world.store, "s", chance.choice(sorted(groups)))
    elif act == "forget":
        _forget(world, chance)


def key_of(chance: random.Random) -> int:
    """Half of the time one of a few, so that partitions get hot."""
    return chance.randrange(KEYS) if chance.random() < 0.5 else chance.randrange(4)


def _age(world: PartitionWorld, chance: random.Random) -> None:
    """As if this batch came after others of its kind, so that the next splits or merges."""
    uid = world.stream_uid
    seed = chance.random()

    def age(connection: sa.Connection) -> None:
        again, active = random.Random(seed), partitions.active(connection, uid)
        aged = [replace(one, hot=again.choice((0, 1, 5)), quiet=again.choice((0, 4))) for one in active]
        partitions.keep(connection, uid, aged)

    world.store.write(age)


def _any_start(world: PartitionWorld, chance: random.Random) -> GroupStart:
    """Named, or amid what is published, often at a record or just beside it."""
    stream = world.stream
    times = [one.at.at + timedelta(microseconds=chance.randrange(-1, 2)) for one in world.log]
    earliest = max(stream.created_at, stream.expired_until or stream.created_at)
    times = [at for at in times if earliest <= at <= stream.published_until]
    starts: list[GroupStart] = ["earliest", *(chance.sample(times, min(3, len(times))) or ["now"])]
    return chance.choice(starts)


def _forget(world: PartitionWorld, chance: random.Random) -> None:
    """Retention is over for all that every group has, or for some of it, up to amid a batch."""
    uid, created = world.stream_uid, world.stream.created_at
    low = min(group_status(world.store, "s", group.name).low_watermark for group in list_groups(world.store, "s"))
    until = chance.choice([low, *(at for one in world.log if (at := one.at.at + MICROSECOND) <= low)])
    if until > created:
        world.store.write(lambda c: change_streams.expire(c, uid, until))
        forget(world.store, "s")
        world.check()
