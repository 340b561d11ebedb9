"""Envelopes in Kafka topics, as JSON: a partition is a lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    """The `EnvelopeInput` of topics. A mark is the id of the topic, an offset, and the number of its partitions. Marks
    of an earlier release have no number.
    """

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

    def remedy(self, lane: str) -> str:
        """Records of a topic stay. Another location is another place."""
        topic, _ = _parts(lane)
        return (
            f"Leave topic {topic} out of the location of the connection. Then recover the replication from now, or"
            " drop it and create it again."
        )

    def ends(self) -> Lanes:
        """The last offsets that can be read."""
        with self._reader() as reader:
            return _ends(self._states(reader))

    def require_kept(self, lanes: Lanes, position: str) -> None:
        """A topic that was recreated has other records under its offsets."""
        with self._reader() as reader:
            states = {state.topic: state for state in self._states(reader)}
        for lane, (topic_id, offset, *_) in lanes.items():
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
        self._require_order(lanes, _ends(states.values()), position)

    def _require_order(self, lanes: Lanes, end: Lanes, position: str) -> None:
        """Partitions that are added take keys of all others. So what was not read of those may be older or newer than
        any record of the new ones. Raises SlotLost.
        """
        before, now = _partitions(lanes), _partitions(end)
        for lane, (_, offset, *_) in end.items():
            topic, partition = _parts(lane)
            known = before.get(topic)
            read = lanes[lane][1] if lane in lanes else 0
            if known is not None and partition < known < now[topic] and offset > read:
                problem = (
                    f"has {now[topic]} partitions of the topic {topic} instead of {known}, and unread records in"
                    f" {lane}, so changes have no order"
                )
                raise lost(self.place, problem, position)

    def is_behind(self, lanes: Lanes, end: Lanes) -> bool:
        """A partition has offsets that were not read."""
        return any(offset > (lanes[lane][1] if lane in lanes else 0) for lane, (_, offset, *_) in end.items())

    def records(self, lanes: Lanes, end: Lanes) -> Iterator[Record]:
        """Partition by partition. Raises SlotLost."""
        self._require_order(lanes, end, "the captured position")
        with self._reader() as reader:
            earliest = {
                _lane(state.topic, one.partition): one.earliest
                for state in self._states(reader)
                for one in state.partitions
            }
            for lane, (topic_id, until, *count) in sorted(end.items()):
                start = lanes[lane][1] if lane in lanes else earliest.get(lane, 0)
                if start < until:
                    yield from self._partition(reader, lane, topic_id, (start, until), count)

    def has_siblings(self, lane: str, lanes: Lanes) -> bool:
        """Another partition of the topic."""
        topic, _ = _parts(lane)
        return any(one != lane and _parts(one)[0] == topic for one in lanes)

    def amount(self, lanes: Lanes, end: Lanes) -> int:
        """Offsets, as brokers tell no bytes."""
        return sum(max(0, offset - (lanes[lane][1] if lane in lanes else 0)) for lane, (_, offset, *_) in end.items())

    def _partition(
        self, reader: TopicReader, lane: str, topic_id: str, offsets: tuple[int, int], count: Sequence[int]
    ) -> Iterator[Record]:
        topic, partition = _parts(lane)
        wanted = TopicRange(topic, topic_id, (PartitionRange(partition, *offsets),))
        for batch in reader.read(wanted):
            for one in batch.records:
                yield Record(lane, (topic_id, one.offset + 1, *count), (lane, one.offset), self._landed(one, lane))
            at = batch.positions[partition]
            yield Record(lane, (topic_id, at, *count), (lane, at), None)

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
            problem = f"is not JSON, as Kafka Connect's JsonConverter writes it ({error})"
            raise EnvelopeInvalid(place=place, problem=problem, remedy=self.remedy(lane)) from error

    def _states(self, reader: TopicReader) -> list[TopicState]:
        names = [one for one in reader.topics() if any(fnmatchcase(one, wanted) for wanted in self._settings.topics)]
        return [reader.state(name) for name in sorted(names)]

    @contextmanager
    def _reader(self) -> Iterator[TopicReader]:
        with input_errors_named(self.place, "its topics"):
            from tidemark.kafka.reader import open_reader

            with open_reader(self._brokers) as reader:
                yield reader


def _ends(states: Iterable[TopicState]) -> Lanes:
    return {
        _lane(state.topic, one.partition): (state.topic_id, one.latest, len(state.partitions))
        for state in states
        for one in state.partitions
        if one.latest
    }


def _partitions(lanes: Lanes) -> dict[str, int]:
    """The number of partitions of each topic, if it is known."""
    found: dict[str, int] = {}
    for lane, (_, _, *count) in lanes.items():
        topic, _ = _parts(lane)
        found[topic] = max(found.get(topic, 0), *count) if count else found.get(topic, 0)
    return {topic: count for topic, count in found.items() if count}


def _lane(topic: str, partition: int) -> str:
    return f"{topic}/{partition:06d}"


def _parts(lane: str) -> tuple[str, int]:
    topic, _, partition = lane.rpartition("/")
    return topic, int(partition)
