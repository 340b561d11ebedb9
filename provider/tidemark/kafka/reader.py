"""A bounded reader of topics: where they begin and end now, and the records between two offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from tidemark.errors import InvalidArgument
from tidemark.kafka.client import Troubles, is_passing, named, open_admin, open_consumer
from tidemark.kafka.ranges import (
    PartitionBounds,
    PartitionRange,
    Start,
    TopicRange,
    TopicState,
    offset_in,
    require_readable,
    require_same_topic,
)
from tidemark.kafka.reading import Reading, ReadLimits

if TYPE_CHECKING:
    from tidemark.kafka.address import KafkaAddress
    from tidemark.kafka.records import Batch

__all__ = ["ReadLimits", "TopicReader", "open_reader"]

T = TypeVar("T")
_TRY_SECONDS = 1.0  # of one question: an error of the connection is noticed between two
_PAUSE_SECONDS = 0.1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def open_reader(address: KafkaAddress, limits: ReadLimits | None = None) -> Iterator[TopicReader]:
    """A reader, closed after the context. Nothing is asked yet.

    Raises KafkaClientNotInstalled; InvalidArgument for settings that the client refuses.
    """
    reader = TopicReader(address, limits or ReadLimits())
    try:
        yield reader
    finally:
        reader.close()


class TopicReader:
    """Reads topics without a consumer group. It commits no offset: the caller keeps `Batch.positions`.

    Every method raises BrokerUnreachable within the limits, BrokerRefused for a failed authentication or a missing
    right, and TopicNotFound. None of them creates a topic.
    """

    def __init__(self, address: KafkaAddress, limits: ReadLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._limits = limits
        self._clock = clock
        self._troubles = Troubles()
        self._consumer = open_consumer(address, self._troubles, queue_bytes=0)
        self._admin = open_admin(address, self._troubles)

    def close(self) -> None:
        """Ends the connections. Reads that are under way have their own."""
        self._consumer.close()

    def topics(self) -> tuple[str, ...]:
        """The names of all topics that may be read, sorted."""
        found = self._asked("", "the list of topics", lambda seconds: self._consumer.list_topics(timeout=seconds))
        return tuple(sorted(found.topics))

    def cluster_id(self) -> str:
        """The id of the cluster."""
        found = self._asked("", "the cluster's id", lambda seconds: self._consumer.list_topics(timeout=seconds))
        return str(found.cluster_id)

    def state(self, topic: str) -> TopicState:
        """The id of a topic and the offsets that it holds now."""
        return TopicState(topic, self._topic_id(topic), tuple(self._bounds(topic)))

    def range_from(
        self, topic: str, start: Start, *, topic_id: str | None = None, before: datetime | None = None
    ) -> TopicRange:
        """The offsets from `start` up to the present end of the topic, or up to the first record of the time `before`.

        `topic_id`: that of the topic to which the offsets belong, if it is known. Raises InvalidArgument,
        TopicRecreated, TopicPartitionsChanged, OffsetOutOfRange.
        """
        if before is not None and before.tzinfo is None:
            raise InvalidArgument(argument="before", value=before, problem="give a time with a time zone")
        state = self.state(topic)
        require_same_topic(state, start, topic_id)
        starts = self._starts(state, start)
        ends = {one.partition: one.latest for one in state.partitions}
        if before is not None:
            ends = self._at_time(state, before)
        found = tuple(PartitionRange(p, starts[p], max(ends[p], starts[p])) for p in sorted(starts))
        wanted = TopicRange(topic, state.topic_id, found)
        require_readable(state, wanted)
        return wanted

    def read(self, wanted: TopicRange) -> Iterator[Batch]:
        """The records of the range, in batches. The last batch has the ends of the range as its positions.

        Offsets without a record are passed over. A second read gives the same records. Raises, before the first batch,
        TopicRecreated, TopicPartitionsChanged and OffsetOutOfRange; also later, if the topic changes during the read.
        """
        require_readable(self.state(wanted.topic), wanted)
        return self._batches(replace(wanted, partitions=tuple(one for one in wanted.partitions if one.length)))

    def _batches(self, wanted: TopicRange) -> Iterator[Batch]:
        if not wanted.partitions:
            return
        troubles = Troubles()
        consumer = open_consumer(self._address, troubles, queue_bytes=self._limits.batch_bytes)
        try:
            reading = Reading(consumer, troubles, wanted, self._address, self._limits, self._clock, self.state)
            yield from reading.batches()
        finally:
            consumer.close()

    def _topic_id(self, topic: str) -> str:
        from confluent_kafka import TopicCollection

        def request(seconds: float) -> str:
            asked = self._admin.describe_topics(TopicCollection([topic]), request_timeout=seconds)
            return str(asked[topic].result(timeout=seconds + 1).topic_id)

        return self._asked(topic, f"the description of topic {topic}", request)

    def _bounds(self, topic: str) -> Iterator[PartitionBounds]:
        what = f"the partitions of topic {topic}"
        for partition in sorted(self._partitions(topic, what)):
            yield self._bounds_of(topic, partition, what)

    def _bounds_of(self, topic: str, partition: int, what: str) -> PartitionBounds:
        place = _place(topic, partition)
        ends = self._asked(topic, what, lambda seconds: self._consumer.get_watermark_offsets(place, timeout=seconds))
        return PartitionBounds(partition, *ends)

    def _partitions(self, topic: str, what: str) -> Sequence[int]:
        from confluent_kafka import KafkaException

        def request(seconds: float) -> Sequence[int]:
            found = self._consumer.list_topics(topic, timeout=seconds).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)
            return [*found.partitions]

        return self._asked(topic, what, request)

    def _starts(self, state: TopicState, start: Start) -> dict[int, int]:
        known = {one.partition: offset_in(start, one) for one in state.partitions}
        at_time = self._at_time(state, start.others) if isinstance(start.others, datetime) else {}
        return {partition: at_time[partition] if offset is None else offset for partition, offset in known.items()}

    def _at_time(self, state: TopicState, time: datetime) -> dict[int, int]:
        """The first offset of each partition with that time or a later one; its end if there is none."""
        millis = -((_EPOCH - time) // timedelta(milliseconds=1))  # rounded up
        places = [_place(state.topic, one.partition, max(0, millis)) for one in state.partitions]
        what = f"offsets of topic {state.topic} at {time.isoformat()}"
        found = self._asked(
            state.topic, what, lambda seconds: _answered(self._consumer.offsets_for_times(places, timeout=seconds))
        )
        latest = {one.partition: one.latest for one in state.partitions}
        return {p: latest[p] if offset < 0 else min(offset, latest[p]) for p, offset in found.items()}

    def _asked(self, topic: str, what: str, question: Callable[[float], T]) -> T:
        """The answer; asks again while the brokers are away, up to the limit."""
        from confluent_kafka import KafkaException

        end = self._clock() + self._limits.answer_seconds
        while True:
            try:
                return question(min(_TRY_SECONDS, max(_PAUSE_SECONDS, end - self._clock())))
            except (KafkaException, TimeoutError) as error:
                self._consumer.poll(_PAUSE_SECONDS)  # so the client says what is wrong with its connections
                self._admin.poll(0)
                found = _said(error)
                if is_passing(found):
                    found = self._troubles.refusal or found
                if not is_passing(found) or self._clock() >= end:
                    seconds = self._limits.answer_seconds
                    raise named(found, self._address, what=what, topic=topic, seconds=seconds) from error


def _place(topic: str, partition: int, offset: int | None = None) -> Any:
    from confluent_kafka import TopicPartition

    return TopicPartition(topic, partition) if offset is None else TopicPartition(topic, partition, offset)


def _answered(places: Sequence[Any]) -> dict[int, int]:
    from confluent_kafka import KafkaException

    for place in places:
        if place.error is not None:
            raise KafkaException(place.error)
    return {place.partition: place.offset for place in places}


def _said(error: Exception) -> Any:
    from confluent_kafka import KafkaError

    return KafkaError(KafkaError._TIMED_OUT) if isinstance(error, TimeoutError) else error.args[0]
