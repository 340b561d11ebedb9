"""Envelopes in Kafka topics: partitions are lanes, and what was lost before it was read is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.databases.debezium.landed import read_events, reader_of, tables
from tests.kafka_broker import KafkaBroker, kafka_or_skip
from tests.until import wait_until
from tidemark.errors import EnvelopeInvalid, InvalidArgument, NotYetSupported, SlotLost
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.planning.debezium_marks import Lanes, Mark, mark_of
from tidemark.replication.sources.debezium.inputs import EnvelopeInput
from tidemark.replication.sources.debezium.opening import open_input
from tidemark.replication.sources.debezium.settings import settings_of
from tidemark.replication.sources.debezium.source import DebeziumSource

pytestmark = [pytest.mark.e2e]


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with kafka_or_skip() as running:
        yield running


def address_of(broker: KafkaBroker, topics: str) -> SourceAddress:
    settings = {"kafka": json.dumps(dict(broker.address.settings))}
    return SourceAddress(SourceKind.DEBEZIUM, broker.address.brokers, 0, f"kafka:{topics}", "", parameters=settings)


def value(op: str, row: dict[str, Any] | None, table: str = "t", **more: Any) -> bytes:
    source = {"connector": "mysql", "name": "s", "db": "d", "table": table, "file": "b.1", "pos": 4, "ts_ms": 5}
    return json.dumps({"op": op, "source": source, "before": None, "after": row, **more}).encode()


def send(broker: KafkaBroker, topic: str, partition: int, *keys: int) -> None:
    for key in keys:
        broker.send(topic, [value("c", {"id": key})], partition, key=json.dumps({"id": key}).encode())


def keys(address: SourceAddress, start: Mark | None = None) -> tuple[list[str], Mark]:
    reader = reader_of(address, start=start)
    told = [one["key"] for one in read_events(address, reader) if one["change"] != "SCHEMA"]
    return told, mark_of(reader.upto)


def test_topics_by_pattern_are_read_from_the_last_offset_on(broker: KafkaBroker) -> None:
    broker.create("one.d.t", partitions=2)
    broker.create("one.other")
    send(broker, "one.d.t", 1, 3)
    send(broker, "one.d.t", 0, 1, 2)
    broker.send("one.d.t", [None], 0, key=b'{"id": 1}')
    broker.send("one.other", [b"no envelope"])
    address = address_of(broker, "one.d.*")
    told, mark = keys(address)
    assert told == ['["1"]', '["2"]', '["3"]']
    assert keys(address, mark)[0] == []
    send(broker, "one.d.t", 1, 4)
    assert keys(address, mark)[0] == ['["4"]']


def test_headers_mark_the_halves_of_a_moved_key(broker: KafkaBroker) -> None:
    broker.create("two.d.t")
    send(broker, "two.d.t", 0, 1)
    gone = {"key": b'{"id": 1}', "headers": [("__debezium.newkey", b"2")]}
    broker.send("two.d.t", [value("d", None)], 0, **gone)
    address = address_of(broker, "two.d.t")
    told, mark = keys(address)
    assert told == ['["1"]']  # the other half is still to come
    come = {"key": b'{"id": 2}', "headers": [("__debezium.oldkey", b"1")]}
    broker.send("two.d.t", [value("c", {"id": 2})], 0, **come)
    assert keys(address, mark)[0] == ['["1"]', '["2"]']


def test_a_topic_that_was_recreated_and_records_that_expired_are_lost(broker: KafkaBroker) -> None:
    from confluent_kafka import TopicPartition

    broker.create("three.d.t")
    send(broker, "three.d.t", 0, 1, 2, 3)
    address = address_of(broker, "three.d.t")
    landed = open_input(settings_of(address))
    ends = landed.ends()
    (lane,) = ends
    landed.require_kept({lane: (ends[lane][0], 1)}, "there")
    broker.admin.delete_records([TopicPartition("three.d.t", 0, 2)])[TopicPartition("three.d.t", 0)].result()
    wait_until(lambda: "retention" in lost(landed, {lane: (ends[lane][0], 1)}))  # a broker says it a moment later
    broker.admin.delete_topics(["three.d.t"])["three.d.t"].result()
    wait_until(lambda: "lost the topic" in lost(landed, ends))
    broker.create("three.d.t")
    wait_until(lambda: "deleted and recreated" in lost(landed, ends))


def lost(landed: EnvelopeInput, lanes: Lanes) -> str:
    """The error about losses behind the lanes; "" if all is there."""
    try:
        landed.require_kept(lanes, "there")
    except SlotLost as error:
        return str(error)
    return ""


def test_partitions_that_are_added_are_read_once_nothing_older_is_left(broker: KafkaBroker) -> None:
    from confluent_kafka.admin import NewPartitions

    broker.create("five.d.t")
    send(broker, "five.d.t", 0, 1, 2)
    address = address_of(broker, "five.d.t")
    landed = open_input(settings_of(address))
    _, mark = keys(address)
    (lane,) = mark.lanes
    assert mark.lanes[lane][2:] == (1,)
    broker.admin.create_partitions([NewPartitions("five.d.t", 2)])["five.d.t"].result()
    send(broker, "five.d.t", 1, 2)
    wait_until(lambda: len(landed.ends()) == 2)
    assert lost(landed, mark.lanes) == ""
    told, after = keys(address, mark)
    assert told == ['["2"]']
    unread = {lane: (mark.lanes[lane][0], 1, 1)}
    assert "2 partitions of the topic five.d.t instead of 1" in lost(landed, unread)
    with pytest.raises(SlotLost, match="instead of 1"):
        keys(address, Mark(lanes=unread))
    send(broker, "five.d.t", 0, 3)
    assert lost(landed, after.lanes) == ""
    assert keys(address, after)[0] == ['["3"]']


def test_a_record_that_is_no_envelope_names_the_step_for_its_topic(broker: KafkaBroker) -> None:
    broker.create("six.d.t")
    broker.send("six.d.t", [b'{"id": 1}'], 0)
    with pytest.raises(EnvelopeInvalid, match=r"Leave topic six\.d\.t out of the location"):
        tables(address_of(broker, "six.*"))


def test_avro_with_a_schema_registry_is_refused_by_name(broker: KafkaBroker) -> None:
    broker.create("four.d.t")
    broker.send("four.d.t", [b"\0\0\0\0\1\2"], 0, key=b"\0\0\0\0\1\2")
    with pytest.raises(NotYetSupported, match="schema registry"):
        tables(address_of(broker, "four.d.t"))


def test_topics_need_a_connection_to_brokers() -> None:
    with pytest.raises(InvalidArgument, match="envelopes_conn_id"):
        DebeziumSource(SourceAddress(SourceKind.DEBEZIUM, "", 0, "kafka:a", ""))
