"""Envelopes in Kafka topics, as JSON: a partition is a lane."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tidemark.errors import EnvelopeInvalid, InvalidArgument, NotYetSupported
from tidemark.kafka.ranges import PartitionRange, TopicRange, TopicState
from tidemark.replication.planning.debezium import Landed, landed_value
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.sources.debezium.inputs import Record, input_errors_named, lost
from tidemark.replication.sources.debezium.settings import DebeziumSettings

if TYPE_CHECKING:
    from tidemark.kafka.reader import TopicReader
    from tidemark.kafka.records import Record as KafkaRecord

__all__ = ["TopicInput"]


class TopicInput:
    """The `EnvelopeInput` of topics. A mark is the id of the topic and an offset."""

    def __init__(self, settings: DebeziumSettings) -> None:
        if settings.brokers is None:
            problem = "topics need the extra envelopes_conn_id, of a connection of the type kafka"
            raise InvalidArgument(argument="location", value=settings.location, problem=problem)
        self._settings, self._brokers = settings, settings.brokers
        self.place = f"kafka://{self._brokers.brokers}/{','.join(settings.topics)}"

    def identity(self) -> str:
        """The id of the cluster, and the patterns of topics."""
        with self._reader() as reader:
            return f"kafka:{reader.cluster_id()}:{','.join(self._settings.topics)}"

    def ends(self) -> Lanes:
        """The last offsets that can be read."""
        with self._reader() as reader:
            return {
                _lane(state.topic, one.partition): (state.topic_id, one.latest)
                for state in self._states(reader)
                for one in state.partitions
                if one.latest
            }

    def require_kept(self, lanes: Lanes, position: str) -> None:
        """A topic that was recreated has other records under its offsets."""
        with self._reader() as reader:
            states = {state.topic: state for state in self._states(reader)}
        for lane, (topic_id, offset) in lanes.items():
            topic, partition = _parts(lane)
            state = states.get(topic)
            if state is None:
                raise lost(self.place, f"lost the topic {topic}", position)
            if state.topic_id != topic_id:
                raise lost(self.place, f"has another topic {topic}: it was deleted and recreated", position)
            bounds = next((one for one in state.partitions if one.partition == partition), None)
            if bounds is None or bounds.latest < offset:
                raise lost(self.place, f"lost records of {lane}: it ends before offset {offset}", position)
            if bounds.earliest > offset:
                problem = f"lost records of {lane} to retention: it begins at {bounds.earliest}, after {offset}"
                raise lost(self.place, problem, position)

    def is_behind(self, lanes: Lanes, end: Lanes) -> bool:
        """A partition has offsets that were not read."""
        return any(offset > (lanes[lane][1] if lane in lanes else 0) for lane, (_, offset) in end.items())

    def records(self, lanes: Lanes, end: Lanes) -> Iterator[Record]:
        """Partition by partition."""
        with self._reader() as reader:
            earliest = {
                _lane(state.topic, one.partition): one.earliest
                for state in self._states(reader)
                for one in state.partitions
            }
            for lane, (topic_id, until) in sorted(end.items()):
                start = lanes[lane][1] if lane in lanes else earliest.get(lane, 0)
                if start < until:
                    yield from self._partition(reader, lane, topic_id, start, until)

    def has_siblings(self, lane: str, lanes: Lanes) -> bool:
        """Another partition of the topic."""
        topic, _ = _parts(lane)
        return any(one != lane and _parts(one)[0] == topic for one in lanes)

    def amount(self, lanes: Lanes, end: Lanes) -> int:
        """Offsets, as brokers tell no bytes."""
        return sum(max(0, offset - (lanes[lane][1] if lane in lanes else 0)) for lane, (_, offset) in end.items())

    def _partition(self, reader: TopicReader, lane: str, topic_id: str, start: int, until: int) -> Iterator[Record]:
        topic, partition = _parts(lane)
        wanted = TopicRange(topic, topic_id, (PartitionRange(partition, start, until),))
        for batch in reader.read(wanted):
            for one in batch.records:
                yield Record(lane, (topic_id, one.offset + 1), (lane, one.offset), self._landed(one, lane))
            yield Record(lane, (topic_id, batch.positions[partition]), (lane, batch.positions[partition]), None)

    def _landed(self, record: KafkaRecord, lane: str) -> Landed:
        if record.value is not None and record.value[:1] == b"\0":
            raise NotYetSupported(
                feature=f"A topic of Avro or Protobuf with a schema registry ({lane}, offset {record.offset})",
                instead="Use Kafka Connect's JsonConverter, or land Avro in files.",
            )
        try:
            headers = {name: value for name, value in record.headers}
            return Landed(landed_value(record.value), landed_value(record.key), headers, True)
        except ValueError as error:
            place = f"{self.place}: {lane}, offset {record.offset}"
            remedy = "Name the topics of Debezium alone, and have them written by Kafka Connect's JsonConverter."
            raise EnvelopeInvalid(place=place, problem=f"is no JSON ({error})", remedy=remedy) from error

    def _states(self, reader: TopicReader) -> list[TopicState]:
        names = [one for one in reader.topics() if any(fnmatchcase(one, wanted) for wanted in self._settings.topics)]
        return [reader.state(name) for name in sorted(names)]

    @contextmanager
    def _reader(self) -> Iterator[TopicReader]:
        with input_errors_named(self.place, "its topics"):
            from tidemark.kafka.reader import open_reader

            with open_reader(self._brokers) as reader:
                yield reader


def _lane(topic: str, partition: int) -> str:
    return f"{topic}/{partition:06d}"


def _parts(lane: str) -> tuple[str, int]:
    topic, _, partition = lane.rpartition("/")
    return topic, int(partition)
