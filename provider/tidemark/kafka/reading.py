"""One read of a range: from the first offset of each partition up to its end, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidemark.errors import BrokerUnreachable, InvalidArgument
from tidemark.kafka.client import Troubles, is_passing, named
from tidemark.kafka.ranges import TopicRange, TopicState, require_readable
from tidemark.kafka.records import Batch, Record

if TYPE_CHECKING:
    from tidemark.kafka.address import KafkaAddress

__all__ = ["ReadLimits", "Reading"]

_WAIT_SECONDS = 0.5
_END = "_PARTITION_EOF"
_GONE = frozenset({"OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET"})


@dataclass(frozen=True)
class ReadLimits:
    """`answer_seconds`: for a question about a topic. `idle_seconds`: without a record, while some are still to come.

    A batch has no more than `batch_records`, and ends with the record that brings it to `batch_bytes`. The client reads
    ahead as many bytes.
    """

    answer_seconds: float = 30.0
    idle_seconds: float = 60.0
    batch_records: int = 10_000
    batch_bytes: int = 16 << 20

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise InvalidArgument(argument=name, value=value, problem="give a number above 0")


class Reading:
    """A read that is under way. It is over if every partition has a record behind its end, or none before it."""

    def __init__(
        self,
        consumer: Any,
        troubles: Troubles,
        wanted: TopicRange,
        address: KafkaAddress,
        limits: ReadLimits,
        clock: Callable[[], float],
        state: Callable[[str], TopicState],
    ) -> None:
        self._consumer = consumer
        self._troubles = troubles
        self._wanted = wanted
        self._address = address
        self._limits = limits
        self._clock = clock
        self._state = state
        self._ends = {one.partition: one.end for one in wanted.partitions}
        self._positions = {one.partition: one.start for one in wanted.partitions}
        self._records: list[Record] = []
        self._bytes = 0

    def batches(self) -> Iterator[Batch]:
        """All batches; each has records, but for the last one."""
        self._consumer.assign([self._place(partition, offset) for partition, offset in self._positions.items()])
        quiet_since = self._clock()
        while self._ends:
            message = self._consumer.poll(_WAIT_SECONDS)
            if message is not None and self._took(message):
                quiet_since = self._clock()
            elif self._clock() - quiet_since >= self._limits.idle_seconds or self._troubles.refusal is not None:
                raise self._quiet()
            if len(self._records) >= self._limits.batch_records or self._bytes >= self._limits.batch_bytes:
                yield self._batch()
                quiet_since = self._clock()  # the time of who takes the batch is not the brokers'
        self._require_same_topic()
        yield self._batch()

    def _took(self, message: Any) -> bool:
        """Whether the message brings the read forward."""
        error = message.error()
        if error is None:
            self._keep(message)
            return True
        if error.name() == _END:
            self._pass_to(message.partition(), message.offset())
            return True
        if is_passing(error):
            self._troubles(error)
            return False
        if error.name() in _GONE:
            self._require_readable()
        raise self._named(error)

    def _keep(self, message: Any) -> None:
        partition, offset = message.partition(), message.offset()
        if offset < self._ends.get(partition, 0):
            kind, millis = message.timestamp()
            record = Record(
                partition,
                offset,
                millis if kind else None,
                message.key(),
                message.value(),
                tuple(message.headers() or ()),
            )
            self._records.append(record)
            self._bytes += record.size
        self._pass_to(partition, offset + 1)

    def _pass_to(self, partition: int, offset: int) -> None:
        """The partition has nothing more to say of the offsets before that one."""
        end = self._ends.get(partition)
        if end is None:  # it was fetched before the pause
            return
        self._positions[partition] = min(offset, end)
        if offset >= end:
            del self._ends[partition]
            self._consumer.pause([self._place(partition)])

    def _batch(self) -> Batch:
        batch = Batch(tuple(self._records), dict(self._positions))
        self._records, self._bytes = [], 0
        return batch

    def _require_readable(self) -> None:
        left = (replace(one, start=self._positions[one.partition]) for one in self._wanted.partitions)
        require_readable(self._state(self._wanted.topic), replace(self._wanted, partitions=tuple(left)))

    def _require_same_topic(self) -> None:
        """Offsets of a topic that was recreated since are those of other records."""
        require_readable(self._state(self._wanted.topic), replace(self._wanted, partitions=()))

    def _quiet(self) -> Exception:
        trouble = self._troubles.refusal or self._troubles.last
        if trouble is not None:
            return self._named(trouble)
        waiting = ", ".join(
            f"{partition} from {self._positions[partition]} to {end}" for partition, end in self._ends.items()
        )
        problem = (
            f"no record came of partitions {waiting}; allow more time if large transactions were rolled back there"
        )
        return BrokerUnreachable(
            brokers=self._address.brokers, what=self._what, problem=problem, seconds=self._limits.idle_seconds
        )

    def _named(self, error: Any) -> Exception:
        topic, seconds = self._wanted.topic, self._limits.idle_seconds
        return named(error, self._address, what=self._what, topic=topic, seconds=seconds)

    @property
    def _what(self) -> str:
        return f"records of topic {self._wanted.topic}"

    def _place(self, partition: int, offset: int | None = None) -> Any:
        from confluent_kafka import TopicPartition

        topic = self._wanted.topic
        return TopicPartition(topic, partition) if offset is None else TopicPartition(topic, partition, offset)
