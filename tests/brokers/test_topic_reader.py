"""A topic is read from offset to offset as it was committed: once, in order, in bounds, and with named errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.kafka_broker import READER, STRANGER, KafkaBroker, kafka_or_skip
from tests.ports import free_port
from tidemark.errors import (
    BrokerRefused,
    BrokerUnreachable,
    InvalidArgument,
    OffsetOutOfRange,
    TopicNotFound,
    TopicPartitionsChanged,
    TopicRecreated,
)
from tidemark.kafka.address import KafkaAddress
from tidemark.kafka.ranges import End, PartitionBounds, Start, TopicRange, at_most
from tidemark.kafka.reader import TopicReader, open_reader
from tidemark.kafka.reading import ReadLimits
from tidemark.kafka.records import Batch, Record

pytestmark = [pytest.mark.e2e]

NOON = datetime(2100, 1, 1, 12, tzinfo=UTC)  # later than the ends of transactions, which have the broker's time
HEADERS = [("trace", b"1"), ("trace", b"2"), ("none", None), ("ä", "日本".encode())]
ALL = Start(others=End.EARLIEST)
IMPATIENT = ReadLimits(answer_seconds=2, idle_seconds=2, batch_records=100, batch_bytes=200_000)
LARGE, LARGE_RECORDS = b"x" * 10_000, 1500


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with kafka_or_skip() as running:
        _make_history(running)
        yield running


@pytest.fixture
def reader(broker: KafkaBroker) -> Iterator[TopicReader]:
    with open_reader(broker.address) as opened:
        yield opened


def _make_history(broker: KafkaBroker) -> None:
    """Two partitions: records, a transaction of both, one of both that is rolled back, and, in one, records again."""
    broker.create("orders", partitions=2, message_timestamp_after_max_ms=str(2**62))
    broker.create("large")
    broker.create("expired")
    broker.send("orders", [b"o1"], 0, key=b"k1", timestamp=_millis(0), headers=HEADERS)
    producer = broker.producer(transactional_id="writer")
    producer.init_transactions()
    for commit, value, minute in ((True, b"kept", 1), (False, b"rolled back", 2)):
        producer.begin_transaction()
        for partition in (0, 0, 1):
            producer.produce("orders", value, key=b"k2", partition=partition, timestamp=_millis(minute))
        producer.flush()
        producer.commit_transaction() if commit else producer.abort_transaction()
    broker.send("orders", [None], 0, key=b"k1", timestamp=_millis(3))
    broker.send("orders", [b"no key"], 0, timestamp=_millis(4))
    broker.send("large", [LARGE] * LARGE_RECORDS)
    broker.send("expired", [b"%d" % number for number in range(10)])
    with open_reader(broker.address) as reader:
        _until(lambda: _ends(reader, "orders") == [9, 4])


def _ends(reader: TopicReader, topic: str) -> list[int]:
    return [one.latest for one in reader.state(topic).partitions]


def _until(holds: Callable[[], bool]) -> None:
    """Brokers end transactions and change topics a moment after they say so. A recreated topic may have no leader for
    a while, and a reader gives up after 30 seconds.
    """
    for _ in range(100):
        with suppress(TopicNotFound, BrokerUnreachable):
            if holds():
                return
        time.sleep(0.1)
    raise AssertionError("the brokers did not follow")


def _millis(minute: int) -> int:
    return int((NOON + timedelta(minutes=minute)).timestamp() * 1000)


def _read(reader: TopicReader, wanted: TopicRange) -> list[Record]:
    return [record for batch in reader.read(wanted) for record in batch.records]


def _seen(records: list[Record]) -> list[tuple[int, int, bytes | None]]:
    return sorted((one.partition, one.offset, one.value) for one in records)


COMMITTED = [
    (0, 0, b"o1"), (0, 1, b"kept"), (0, 2, b"kept"),  # 3 is the transaction's end, 4 to 6 were rolled back
    (0, 7, None), (0, 8, b"no key"),
    (1, 0, b"kept"),  # 1 to 3 are ends and what was rolled back
]  # fmt: skip


def test_what_was_committed_is_read_with_all_that_a_record_has(reader: TopicReader) -> None:
    wanted = reader.range_from("orders", ALL)
    batches = list(reader.read(wanted))
    records = [record for batch in batches for record in batch.records]
    assert _seen(records) == COMMITTED
    for partition in (0, 1):
        offsets = [one.offset for one in records if one.partition == partition]
        assert offsets == sorted(offsets)
    first, deleted, without_key = (next(r for r in records if (r.partition, r.offset) == (0, n)) for n in (0, 7, 8))
    assert first == Record(0, 0, _millis(0), b"k1", b"o1", tuple(HEADERS))
    assert first.timestamp == NOON
    assert (deleted.key, deleted.value, deleted.headers) == (b"k1", None, ())
    assert without_key.key is None
    assert batches[-1].positions == {one.partition: one.end for one in wanted.partitions} == {0: 9, 1: 4}


def test_a_second_read_gives_the_same_and_stores_nothing_in_the_brokers(
    broker: KafkaBroker, reader: TopicReader
) -> None:
    wanted = reader.range_from("orders", ALL)
    assert _seen(_read(reader, wanted)) == _seen(_read(reader, wanted)) == COMMITTED
    assert broker.admin.list_consumer_groups().result(20).valid == []


@pytest.mark.parametrize(
    ("start", "offsets"),
    [
        (Start(others=End.LATEST), []),
        (Start({0: 7, 1: 0}), [(0, 7), (0, 8), (1, 0)]),
        (Start({0: 4, 1: 2}), [(0, 7), (0, 8)]),  # at offsets that no record has
        (Start({1: 4}, End.EARLIEST), [(0, 0), (0, 1), (0, 2), (0, 7), (0, 8)]),
        (Start(others=NOON + timedelta(minutes=1)), [(0, 1), (0, 2), (0, 7), (0, 8), (1, 0)]),
        (Start(others=NOON + timedelta(minutes=3, microseconds=1)), [(0, 8)]),
        (Start({1: 0}, NOON + timedelta(days=1)), [(1, 0)]),
    ],
)
def test_a_read_begins_where_it_is_told(reader: TopicReader, start: Start, offsets: list[tuple[int, int]]) -> None:
    found = _read(reader, reader.range_from("orders", start))
    assert sorted((one.partition, one.offset) for one in found) == offsets


def test_a_read_ends_before_a_time(reader: TopicReader) -> None:
    wanted = reader.range_from("orders", ALL, before=NOON + timedelta(minutes=3))
    assert _seen(_read(reader, wanted)) == [one for one in COMMITTED if one[:2] not in ((0, 7), (0, 8))]
    with pytest.raises(InvalidArgument, match="time zone"):
        reader.range_from("orders", ALL, before=datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize("offsets", [1, 3])
def test_windows_of_a_bounded_length_have_each_record_once(reader: TopicReader, offsets: int) -> None:
    whole = reader.range_from("orders", ALL)
    seen: list[Record] = []
    left = whole
    while left.length:
        window = at_most(left, offsets)
        batches = list(reader.read(window))
        seen += [record for batch in batches for record in batch.records]
        positions = {one.partition: one.start for one in left.partitions} | dict(batches[-1].positions)
        left = replace(left, partitions=tuple(replace(one, start=positions[one.partition]) for one in left.partitions))
    assert _seen(seen) == COMMITTED


def test_batches_are_bounded_and_each_says_where_to_continue(broker: KafkaBroker) -> None:
    limits = ReadLimits(batch_records=100, batch_bytes=200_000)
    with open_reader(broker.address, limits) as reader:
        wanted = reader.range_from("large", ALL)
        batches: list[Batch] = []
        for batch in reader.read(wanted):
            batches.append(batch)
            assert sum(one.size for one in batch.records) <= limits.batch_bytes + len(LARGE)
            assert batch.positions[0] == sum(len(one.records) for one in batches)
        assert batches[-1].positions[0] == LARGE_RECORDS
    with open_reader(broker.address, ReadLimits(batch_records=1)) as reader:
        assert {len(batch.records) for batch in reader.read(reader.range_from("orders", ALL))} == {0, 1}


def test_what_a_transaction_has_not_committed_belongs_to_a_later_range(
    broker: KafkaBroker, reader: TopicReader
) -> None:
    broker.create("open")
    broker.send("open", [b"before"])
    producer = broker.producer(transactional_id="slow")
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("open", b"inside")
    producer.flush()
    broker.send("open", [b"behind"])
    first = reader.range_from("open", ALL)
    assert [one.value for one in _read(reader, first)] == [b"before"]
    producer.commit_transaction()
    _until(lambda: _ends(reader, "open") == [4])
    second = reader.range_from("open", Start({0: first.partitions[0].end}))
    assert [one.value for one in _read(reader, second)] == [b"inside", b"behind"]


def test_a_topic_that_does_not_exist_is_named_and_not_created(broker: KafkaBroker, reader: TopicReader) -> None:
    for request in (
        lambda: reader.state("nowhere"),
        lambda: reader.range_from("nowhere", ALL),
        lambda: reader.read(TopicRange("nowhere", "x", ())),
    ):
        with pytest.raises(TopicNotFound, match="no topic 'nowhere'"):
            request()
    assert "nowhere" not in broker.admin.list_topics(timeout=20).topics


def test_records_that_are_no_longer_there_are_reported(broker: KafkaBroker, reader: TopicReader) -> None:
    from confluent_kafka import TopicPartition

    whole = reader.range_from("expired", ALL)
    broker.admin.delete_records([TopicPartition("expired", 0, 4)])[TopicPartition("expired", 0, 4)].result(20)
    assert reader.state("expired").partitions == (PartitionBounds(0, 4, 10),)
    for request in (lambda: reader.read(whole), lambda: reader.range_from("expired", Start({0: 3}))):
        with pytest.raises(OffsetOutOfRange, match="removed by the topic's retention") as raised:
            request()
    assert raised.value.facts["earliest"] == 4
    with pytest.raises(OffsetOutOfRange, match="does not hold offset 11: it is behind the end"):
        reader.range_from("expired", Start({0: 11}))
    assert len(_read(reader, reader.range_from("expired", ALL))) == 6


def test_records_that_go_during_a_read_are_reported(broker: KafkaBroker) -> None:
    from confluent_kafka import TopicPartition

    broker.create("vanishing")
    broker.send("vanishing", [LARGE] * 600)
    place = TopicPartition("vanishing", 0, 600)
    with open_reader(broker.address, IMPATIENT) as reader:
        reading = reader.read(reader.range_from("vanishing", ALL))
        read = [next(reading)]
        broker.admin.delete_records([place])[place].result(20)
        with pytest.raises(OffsetOutOfRange, match="removed by the topic's retention") as raised:
            read += reading
    assert raised.value.facts["offset"] >= read[-1].positions[0] > 0


def test_a_topic_with_more_partitions_or_made_anew_is_reported(broker: KafkaBroker, reader: TopicReader) -> None:
    from confluent_kafka.admin import NewPartitions

    broker.create("grows")
    broker.send("grows", [b"1"])
    old = reader.range_from("grows", Start({0: 0}))
    broker.admin.create_partitions([NewPartitions("grows", 2)])["grows"].result(20)
    _until(lambda: len(reader.state("grows").partitions) == 2)
    broker.send("grows", [b"2"], partition=1)
    with pytest.raises(TopicPartitionsChanged, match="has the partitions 0, 1, and 0 were expected"):
        reader.range_from("grows", Start({0: 0}))
    assert [one.value for one in _read(reader, old)] == [b"1"]
    assert len(_read(reader, reader.range_from("grows", Start({0: 1}, End.EARLIEST), topic_id=old.topic_id))) == 1

    broker.admin.delete_topics(["grows"])["grows"].result(20)
    broker.create("grows", partitions=2)
    _until(lambda: reader.state("grows").topic_id != old.topic_id)
    broker.send("grows", [b"another"])
    with pytest.raises(TopicRecreated):
        reader.read(old)
    with pytest.raises(TopicRecreated):
        reader.range_from("grows", Start({0: 1, 1: 0}), topic_id=old.topic_id)


def test_users_log_in_and_a_wrong_password_and_a_missing_right_are_refused(broker: KafkaBroker) -> None:
    with open_reader(broker.address_of(READER)) as reader:
        assert _seen(_read(reader, reader.range_from("orders", ALL))) == COMMITTED
    for user, password in ((READER, "wrong-of-mine"), ("nobody", "wrong-of-mine")):
        with open_reader(broker.address_of(user, password)) as reader, pytest.raises(BrokerRefused) as refused:
            reader.state("orders")
        assert "wrong-of-mine" not in str(refused.value)
    with open_reader(broker.address_of(STRANGER)) as reader, pytest.raises(BrokerRefused, match="orders"):
        reader.state("orders")


def test_nobody_there_is_unreachable_and_settings_that_make_no_sense_are_refused() -> None:
    with open_reader(KafkaAddress(f"127.0.0.1:{free_port()}"), IMPATIENT) as reader, pytest.raises(BrokerUnreachable):
        reader.state("orders")
    address = KafkaAddress("127.0.0.1:9", {"security.protocol": "morse", "sasl.password": "of-mine"}, "kafka_default")
    with pytest.raises(InvalidArgument, match=r"kafka_default.*security\.protocol") as refused, open_reader(address):
        pass
    assert "of-mine" not in str(refused.value)


def test_a_broker_that_freezes_or_dies_during_a_read_ends_it_and_a_later_one_has_all(broker: KafkaBroker) -> None:
    with open_reader(broker.address, IMPATIENT) as reader:
        wanted = reader.range_from("large", ALL)
        reading = reader.read(wanted)
        next(reading)
        with broker.frozen(), pytest.raises(BrokerUnreachable, match="large"):
            list(reading)
        reading = reader.read(wanted)
        next(reading)
        broker.kill()
        with pytest.raises(BrokerUnreachable, match="large"):
            list(reading)
        with pytest.raises(BrokerUnreachable, match="large"):
            reader.state("large")
        broker.start()
    with open_reader(broker.address) as reader:
        assert len(_read(reader, wanted)) == LARGE_RECORDS
        assert _seen(_read(reader, reader.range_from("orders", ALL))) == COMMITTED
