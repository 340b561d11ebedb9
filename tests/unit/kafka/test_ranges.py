"""Which offsets are read: starts, shares of a bound, and topics that are no longer what they were."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import (
    InvalidArgument,
    KafkaClientNotInstalled,
    OffsetOutOfRange,
    TopicPartitionsChanged,
    TopicRecreated,
)
from tidemark.kafka.address import KafkaAddress
from tidemark.kafka.ranges import (
    End,
    PartitionBounds,
    PartitionRange,
    Start,
    TopicRange,
    TopicState,
    at_most,
    offset_in,
    require_readable,
    require_same_topic,
)
from tidemark.kafka.reader import open_reader
from tidemark.kafka.reading import ReadLimits
from tidemark.kafka.records import Record
from tidemark.model.codec import from_json, to_json

STATE = TopicState("t", "id-1", (PartitionBounds(0, 10, 20), PartitionBounds(1, 0, 5)))


def ranged(*bounds: tuple[int, int], topic_id: str = "id-1") -> TopicRange:
    return TopicRange("t", topic_id, tuple(PartitionRange(p, start, end) for p, (start, end) in enumerate(bounds)))


def test_a_range_survives_its_json_form() -> None:
    wanted = ranged((10, 20), (0, 5))
    assert from_json(TopicRange, to_json(wanted)) == wanted


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Start(others=End.EARLIEST), [10, 0]),
        (Start(others=End.LATEST), [20, 5]),
        (Start({0: 12, 1: 3}), [12, 3]),
        (Start({1: 3}, End.EARLIEST), [10, 3]),
        (Start({1: 3}, datetime(2026, 1, 1, tzinfo=UTC)), [None, 3]),
    ],
)
def test_a_start_is_an_offset_of_each_partition(start: Start, expected: list[int | None]) -> None:
    assert [offset_in(start, bounds) for bounds in STATE.partitions] == expected


@pytest.mark.parametrize(
    ("offsets", "others", "problem"),
    [
        ({}, None, "name the offset"),
        ({0: -1}, None, "from 0 on"),
        ({-1: 0}, None, "from 0 on"),
        ({}, datetime(2026, 1, 1), "time zone"),  # noqa: DTZ001
    ],
)
def test_a_start_that_says_nothing_is_refused(offsets: dict[int, int], others: datetime | None, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        Start(offsets, others)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=6), st.integers(1, 60))
def test_a_bound_is_used_up_and_windows_of_it_lead_to_the_end(pairs: list[tuple[int, int]], bound: int) -> None:
    wanted = ranged(*((start, start + length) for start, length in pairs))
    left, windows = wanted, 0
    while left.length:
        window = at_most(left, bound)
        assert window.length == min(bound, left.length)
        assert all(cut.end <= whole.end for cut, whole in zip(window.partitions, left.partitions, strict=True))
        ends = zip(window.partitions, left.partitions, strict=True)
        left = ranged(*((cut.end, whole.end) for cut, whole in ends))
        windows += 1
    assert windows == -(-wanted.length // bound)


def test_of_a_small_bound_the_partition_with_most_gets_most_so_none_waits_for_ever() -> None:
    assert [one.length for one in at_most(ranged((0, 3), (0, 9)), 1).partitions] == [0, 1]
    assert [one.length for one in at_most(ranged((0, 3), (0, 9), (5, 5)), 8).partitions] == [3, 5, 0]
    with pytest.raises(InvalidArgument, match="one offset or more"):
        at_most(ranged((0, 3)), 0)


def test_partitions_that_came_or_went_are_reported() -> None:
    require_same_topic(STATE, Start({0: 12, 1: 3}), "id-1")
    require_same_topic(STATE, Start({0: 12}, End.EARLIEST))
    with pytest.raises(TopicPartitionsChanged, match="has the partitions 0, 1, and 0 were expected"):
        require_same_topic(STATE, Start({0: 12}))
    with pytest.raises(TopicPartitionsChanged, match="and 0, 1, 2 were expected"):
        require_same_topic(STATE, Start({0: 12, 1: 1, 2: 0}, End.EARLIEST))
    with pytest.raises(TopicRecreated, match="its id is id-1, and was id-0"):
        require_same_topic(STATE, Start({0: 12, 1: 3}), "id-0")


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        ((9, 20), r"does not hold offset 9: it was removed .* from 10 up to 20"),
        ((12, 21), "does not hold offset 21: it is behind the end"),
        ((22, 22), "does not hold offset 22: it is behind the end"),
    ],
)
def test_offsets_that_a_topic_does_not_hold_are_reported(bounds: tuple[int, int], problem: str) -> None:
    with pytest.raises(OffsetOutOfRange, match=problem) as raised:
        require_readable(STATE, ranged(bounds, (0, 5)))
    assert (raised.value.facts["partition"], raised.value.facts["earliest"]) == (0, 10)


def test_a_partition_of_which_nothing_is_read_may_have_lost_its_records() -> None:
    require_readable(STATE, ranged((9, 9), (0, 5)))
    require_readable(STATE, ranged((10, 20)))  # a partition that came later belongs to the next range


def test_a_time_is_in_utc_and_one_that_no_calendar_has_is_none() -> None:
    assert Record(0, 0, 1_700_000_000_125, None, None).timestamp == datetime(2023, 11, 14, 22, 13, 20, 125_000, UTC)
    assert Record(0, 0, -1000, None, None).timestamp == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert Record(0, 0, None, None, None).timestamp is None
    assert Record(0, 0, (1 << 63) - 1, None, None).timestamp is None


def test_an_address_shows_no_secret() -> None:
    settings = {"sasl.username": "ann", "sasl.password": "s3cret", "ssl.key.pem": "-----BEGIN"}
    address = KafkaAddress("a:9092", settings, "kafka_default")
    assert "s3cret" not in repr(address)
    assert address.without_secrets("user ann, password s3cret, key -----BEGIN") == "user ann, password ***, key ***"


@pytest.mark.parametrize("name", ["answer_seconds", "idle_seconds", "batch_records", "batch_bytes"])
def test_a_limit_is_above_zero(name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        ReadLimits(**{name: 0})


def test_without_kafkas_client_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(KafkaClientNotInstalled, match=r"pip install 'airflow-provider-tidemark\[kafka\]'"):
        open_reader(KafkaAddress("a:9092")).__enter__()
