"""Commit timestamps, segments, blocks, and what a commit's userMetadata says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.change_metadata import transaction_metadata
from tidemark.change_streams.model.change_streams import BUCKETS, MICROSECOND, LoadSegment, Position
from tidemark.change_streams.planning.blocks import cut_blocks
from tidemark.change_streams.planning.churn import sub_bucket_width
from tidemark.change_streams.planning.commit_facts import NOTHING_SAID, CommitFacts, commit_facts
from tidemark.change_streams.planning.segments import SEQUENCE_DIGITS, SegmentStart, load_segments
from tidemark.change_streams.planning.timestamps import SourceTransaction, publish, published_until
from tidemark.change_streams.planning.tokens import first_partitions

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: int, micros: int = 0) -> datetime:
    return T0 + timedelta(seconds=seconds, microseconds=micros)


TIMES = st.integers(-5, 5).map(lambda seconds: at(seconds))
TRANSACTIONS = st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), TIMES).map(
    lambda found: [SourceTransaction(table, version, raw) for (table, version), raw in found.items()]
)


@given(TRANSACTIONS, TIMES)
def test_published_times_ascend_after_the_floor_and_keep_the_versions_of_a_table_in_order(
    transactions: list[SourceTransaction], floor: datetime
) -> None:
    published = publish(transactions, floor, at(99))
    times = [floor, *(one.at for one in published)]
    assert all(earlier < later for earlier, later in pairwise(times))
    assert all(one.at >= one.transaction.raw for one in published)
    assert sorted(one.transaction for one in published) == sorted(transactions)
    for table in "abc":
        versions = [one.transaction.version for one in published if one.transaction.table_id == table]
        assert versions == sorted(versions)
    assert publish(reversed(transactions), floor, at(99)) == published
    assert published_until(published, floor) > times[-1] or times[-1] == floor


def test_clocks_that_agree_or_run_backwards_give_neighbouring_microseconds() -> None:
    transactions = [
        SourceTransaction("b", 1, at(5)),
        SourceTransaction("a", 1, at(5)),
        SourceTransaction("a", 2, at(3)),
        SourceTransaction("c", 7, at(-9)),
        SourceTransaction("c", 8, at(6)),
    ]
    assert [(one.id, one.at) for one in publish(transactions, at(0), at(99))] == [
        ("c:7", at(0, 1)),
        ("a:1", at(5)),
        ("a:2", at(5, 1)),
        ("b:1", at(5, 2)),
        ("c:8", at(6)),
    ]


@given(TRANSACTIONS, TIMES, TIMES)
def test_no_clock_that_is_ahead_moves_anything_past_the_latest_time_or_the_floor(
    transactions: list[SourceTransaction], floor: datetime, latest: datetime
) -> None:
    published = publish(transactions, floor, latest)
    times = [one.at for one in published]
    assert all(earlier < later for earlier, later in pairwise([floor, *times]))
    assert all(one.at >= min(one.transaction.raw, latest) for one in published)
    assert all(one <= max(floor, latest) + len(times) * MICROSECOND for one in times)
    for table in "abc":
        versions = [one.transaction.version for one in published if one.transaction.table_id == table]
        assert versions == sorted(versions)


def test_a_clock_that_is_an_hour_ahead_leaves_the_times_of_others_alone() -> None:
    transactions = [
        SourceTransaction("ahead", 1, at(3_600)),
        SourceTransaction("b", 1, at(5)),
        SourceTransaction("ahead", 2, at(3_605)),
    ]
    published = publish(transactions, at(0), at(10))
    assert [(one.id, one.at) for one in published] == [("b:1", at(5)), ("ahead:1", at(10)), ("ahead:2", at(10, 1))]
    assert published_until(published, at(9)) == at(10, 2)
    later = publish([SourceTransaction("b", 2, at(15))], at(10, 1), at(20))
    assert [one.at for one in later] == [at(15)]


def test_everything_is_published_up_to_the_last_transaction_or_to_where_it_is_safe() -> None:
    published = publish([SourceTransaction("a", 1, at(5))], at(0), at(99))
    assert published_until(published, at(9)) == at(9)
    assert published_until(published, at(5)) == at(5) + MICROSECOND
    assert published_until((), at(2)) == at(2)


def test_segments_have_the_rows_up_to_the_next_one_of_their_token() -> None:
    first, second = (Position(at(1), f"{number:0{SEQUENCE_DIGITS}d}") for number in (0, 7))
    starts = [SegmentStart("b", first, 0), SegmentStart("a", second, 10), SegmentStart("a", first, 0)]
    assert load_segments([*starts, starts[1]], {"a": 25, "b": 3}) == (
        LoadSegment("a", first, 10),
        LoadSegment("a", second, 15),
        LoadSegment("b", first, 3),
    )


LOADS = st.lists(st.dictionaries(st.integers(0, 200), st.integers(1, 400), max_size=20), min_size=1, max_size=5)


@given(LOADS, st.integers(1, 500))
def test_blocks_tile_and_a_task_has_too_many_rows_only_in_one_sub_bucket(
    loads: list[dict[int, int]], most: int
) -> None:
    active = first_partitions("u", T0, len(loads))
    load = {partition.token: parts for partition, parts in zip(active, loads, strict=True)}
    blocks = cut_blocks(active, load, most)
    assert blocks[0].lo == 0
    assert [block.lo for block in blocks] == sorted({block.lo for block in blocks})
    ends = [*(block.lo for block in blocks[1:]), BUCKETS]
    in_task: dict[int, list[int]] = {}
    for block, hi in zip(blocks, ends, strict=True):
        partition = active[block.token_no]
        assert partition.lo <= block.lo < hi <= partition.hi
        width = sub_bucket_width(partition)
        parts = {n: rows for n, rows in load[partition.token].items() if block.lo <= partition.lo + n * width < hi}
        in_task.setdefault(block.task, []).extend(parts.values())
    assert sum(map(sum, in_task.values())) == sum(sum(parts.values()) for parts in loads)
    assert list(in_task) == list(range(len(in_task)))
    assert all(sum(rows) <= most or len(rows) == 1 for rows in in_task.values())


@given(st.text(), st.booleans(), st.booleans(), st.booleans())
def test_what_a_writer_says_is_understood(tag: str, exclude: bool, system: bool, ttl: bool) -> None:
    said = transaction_metadata(tag=tag, exclude=exclude, system=system, ttl=ttl)
    assert commit_facts(said) == CommitFacts(tag, exclude, system, ttl)


@pytest.mark.parametrize(
    "text",
    [None, "", "nightly", "[1]", "null", '"tidemark"', '{"tidemark": 3}', "{", "[" * 100_000],
    ids=repr,
)
def test_what_others_say_in_that_place_says_nothing(text: str | None) -> None:
    assert commit_facts(text) == NOTHING_SAID


def test_values_of_other_types_are_ignored() -> None:
    said = {"transaction_tag": 5, "exclude_txn_from_change_streams": "true", "is_system_transaction": 1, "ttl": None}
    assert commit_facts(json.dumps({"tidemark": said, "other": 1})) == NOTHING_SAID
    assert commit_facts('{"tidemark": {"transaction_tag": "a\\ud800"}}').tag == "a?"
