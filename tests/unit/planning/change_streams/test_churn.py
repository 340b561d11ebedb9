"""Partitions split where the load is, merge where there is none, and tile the key space at every instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.change_streams.model.change_streams import (
    BUCKETS,
    CaptureBatch,
    ChangeStream,
    ChangeStreamOptions,
    Partition,
)
from tidemark.change_streams.planning.churn import SUB_BUCKETS, Churn, decide_churn, sub_bucket_width
from tidemark.change_streams.planning.tokens import first_partitions, parse_token

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
UID = "6a0f4a1e-8f0b-4a5d-9a9c-0d5b4f7e2c11"
SPLIT, MERGE = 100, 20


@dataclass
class Tree:
    """The partitions of a stream, moved on batch by batch; `load` is given as rows by bucket."""

    active: tuple[Partition, ...] = field(default_factory=lambda: first_partitions(UID, CREATED, 1))
    number: int = 0
    ended: dict[str, Partition] = field(default_factory=dict)

    def batch(self) -> CaptureBatch:
        options = ChangeStreamOptions()
        stream = ChangeStream(UID, "s", False, (), options, CREATED, "/log", CREATED, self.number)
        return CaptureBatch(stream, self.number, (), CREATED, CREATED, self.active, SPLIT, MERGE, CREATED)

    @property
    def boundary(self) -> datetime:
        return CREATED + timedelta(minutes=self.number + 1)

    def step(self, rows: Mapping[int, int]) -> Churn:
        load: dict[str, dict[int, int]] = {}
        for partition in self.active:
            for bucket, count in rows.items():
                if partition.lo <= bucket < partition.hi:
                    part = (bucket - partition.lo) // sub_bucket_width(partition)
                    parts = load.setdefault(partition.token, {})
                    parts[part] = parts.get(part, 0) + count
        churn = decide_churn(self.batch(), load, self.boundary)
        self.ended |= {partition.token: partition for partition in churn.closed}
        self.active = tuple(sorted((*churn.kept, *churn.opened), key=lambda partition: partition.lo))
        self.number += 1
        return churn

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(partition.lo, partition.hi) for partition in self.active]


def test_a_partition_splits_at_the_weighted_median_after_two_hot_batches() -> None:
    tree = Tree()
    rows = {300: 30, 1_000: 40, 40_000: 70}
    assert tree.step(rows).opened == ()
    (parent,) = tree.active
    churn = tree.step(rows)
    assert [(child.lo, child.hi) for child in churn.opened] == [(0, 1_024), (1_024, BUCKETS)]
    assert {child.parents for child in churn.opened} == {(parent.token,)}
    assert [(gone.token, gone.end) for gone in churn.closed] == [(parent.token, tree.boundary - timedelta(minutes=1))]
    assert {(child.start, child.end, child.batch, child.hot) for child in churn.opened} == {
        (churn.closed[0].end, None, 1, 0)
    }
    assert {parse_token(child.token, stream_uid=UID).batch for child in churn.opened} == {1}


def test_a_batch_that_is_not_hot_starts_the_count_anew() -> None:
    tree = Tree()
    hot, cool = {0: 60, 50_000: 60}, {0: 50, 50_000: 50}
    assert not any(tree.step(rows).opened for rows in (hot, cool, hot, cool, hot))
    assert len(tree.step(hot).opened) == 2


def test_load_in_one_sub_bucket_is_parted_within_it_and_a_single_hot_bucket_is_reported() -> None:
    tree = Tree()
    seen = []
    for _ in range(60):
        churn = tree.step({777: 1_000})
        seen.append(len(churn.opened))
        if churn.unsplittable:
            break
    hot = next(partition for partition in tree.active if partition.lo <= 777 < partition.hi)
    assert churn.unsplittable == (hot.token,)
    assert churn.opened == ()
    assert hot.hi - hot.lo < SUB_BUCKETS
    assert set(seen) == {0, 2}
    assert tree.step({777: 1_000}).unsplittable == (hot.token,)


def test_quiet_neighbours_merge_after_five_batches_and_their_child_has_both_as_parents() -> None:
    tree = Tree(first_partitions(UID, CREATED, 3))
    left, middle, right = tree.active
    rows = {0: 9, 30_000: 10, 60_000: 11}
    for _ in range(4):
        assert tree.step(rows).opened == ()
    churn = tree.step(rows)
    assert [(child.lo, child.hi, child.parents) for child in churn.opened] == [
        (0, middle.hi, (left.token, middle.token))
    ]
    assert [(kept.token, kept.quiet) for kept in churn.kept] == [(right.token, 0)]


def test_neighbours_that_are_quiet_only_alone_do_not_merge() -> None:
    tree = Tree(first_partitions(UID, CREATED, 2))
    assert not any(tree.step({0: 10, 60_000: 10}).opened for _ in range(20))
    assert [tree.step(rows).opened != () for rows in [{}] * 5] == [False] * 4 + [True]


def test_a_partition_takes_part_in_one_step_of_a_batch() -> None:
    tree = Tree(first_partitions(UID, CREATED, 4))
    for _ in range(4):
        tree.step({})
    churn = tree.step({})
    assert [child.parents for child in churn.opened] == [
        tuple(p.token for p in first_partitions(UID, CREATED, 4)[:2]),
        tuple(p.token for p in first_partitions(UID, CREATED, 4)[2:]),
    ]


def test_a_new_neighbour_has_to_be_quiet_as_long_as_any() -> None:
    tree = Tree(first_partitions(UID, CREATED, 3))
    for _ in range(5):
        tree.step({60_000: 50})
    assert tree.ranges == [(0, 43_690), (43_690, BUCKETS)]
    assert [tree.step({}).opened != () for _ in range(5)] == [False] * 4 + [True]


@pytest.mark.parametrize("number", range(3))
def test_nothing_happens_to_what_has_neither_much_nor_little(number: int) -> None:
    tree = Tree(first_partitions(UID, CREATED, number + 1))
    before = tree.ranges
    for _ in range(12):
        tree.step({partition.lo: 50 for partition in tree.active})
    assert tree.ranges == before


LOADS = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(0, 300), max_size=12)


@settings(max_examples=150)
@given(st.integers(1, 9), st.lists(st.one_of(LOADS, st.just({})), max_size=40))
def test_whatever_the_load_ranges_tile_and_children_follow_their_parents(
    count: int, loads: list[dict[int, int]]
) -> None:
    tree = Tree(first_partitions(UID, CREATED, count))
    known = {partition.token: partition for partition in tree.active}
    for rows in loads:
        before = tree.active
        churn = tree.step(rows)
        edges = [edge for lo_hi in tree.ranges for edge in lo_hi]
        assert edges[0] == 0
        assert edges[-1] == BUCKETS
        assert edges[1:-1:2] == edges[2::2]
        assert {p.token for p in (*churn.closed, *churn.kept)} == {p.token for p in before}
        assert len(churn.closed) + len(churn.kept) == len(before)
        for child in churn.opened:
            assert child.token not in known
            known[child.token] = child
            parents = [tree.ended[token] for token in child.parents]
            assert {parent.end for parent in parents} == {child.start}
            assert min(parent.lo for parent in parents) <= child.lo < child.hi <= max(parent.hi for parent in parents)
        for gone in churn.closed:
            lived = tree.number - 1 - gone.batch if gone.batch else tree.number
            assert lived >= 2, "it lived for two batches at least"
