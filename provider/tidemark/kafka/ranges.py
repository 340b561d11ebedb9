"""Which offsets of a topic are read: start points, ranges, and how much of a range is taken at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from tidemark.errors import InvalidArgument, OffsetOutOfRange, TopicPartitionsChanged, TopicRecreated

__all__ = [
    "End",
    "PartitionBounds",
    "PartitionRange",
    "Start",
    "TopicRange",
    "TopicState",
    "at_most",
    "offset_in",
    "require_readable",
    "require_same_topic",
]


class End(StrEnum):
    """One of the two ends of a partition, as a start point."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True)
class Start:
    """The start of a read: an offset of each named partition, and `others` for all other partitions.

    A time stands for the first record with that time or a later one, and for the end if there is none. Without
    `others`, a partition that is not named is an error. Raises InvalidArgument.
    """

    offsets: Mapping[int, int] = field(default_factory=dict)
    others: End | datetime | None = None

    def __post_init__(self) -> None:
        if isinstance(self.others, datetime) and self.others.tzinfo is None:
            raise InvalidArgument(argument="others", value=self.others, problem="give a time with a time zone")
        for partition, offset in self.offsets.items():
            if partition < 0 or offset < 0:
                problem = "partitions and offsets are numbers from 0 on"
                raise InvalidArgument(argument="offsets", value={partition: offset}, problem=problem)
        if not self.offsets and self.others is None:
            raise InvalidArgument(argument="offsets", value={}, problem="name the offset of each partition, or others")


@dataclass(frozen=True)
class PartitionBounds:
    """The offsets of a partition that can be read: from `earliest` up to, not including, `latest`. Records of
    transactions that are open, and those behind them, are at `latest` or later.
    """

    partition: int
    earliest: int
    latest: int


@dataclass(frozen=True)
class TopicState:
    """A topic as its brokers describe it now. `topic_id` is another one after the topic was recreated."""

    topic: str
    topic_id: str
    partitions: tuple[PartitionBounds, ...]


@dataclass(frozen=True)
class PartitionRange:
    """The offsets of a partition from `start` up to, not including, `end`."""

    partition: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """How many offsets it has; records are as many or fewer."""
        return max(0, self.end - self.start)


@dataclass(frozen=True)
class TopicRange:
    """Offsets of a topic that are read. Reading it twice gives the same records, as long as the topic keeps them."""

    topic: str
    topic_id: str
    partitions: tuple[PartitionRange, ...]

    @property
    def length(self) -> int:
        """How many offsets it has; records are as many or fewer."""
        return sum(one.length for one in self.partitions)


def at_most(wanted: TopicRange, offsets: int) -> TopicRange:
    """The range with ends so early that it has no more than that many offsets.

    All partitions get the same share, or all that they have. The rest goes to those that have most, so that none waits
    for ever. Raises InvalidArgument.
    """
    if offsets < 1:
        raise InvalidArgument(argument="offsets", value=offsets, problem="take one offset or more")
    shares = _shares({one.partition: one.length for one in wanted.partitions}, offsets)
    cut = (replace(one, end=one.start + shares[one.partition]) for one in wanted.partitions)
    return replace(wanted, partitions=tuple(cut))


def _shares(lengths: Mapping[int, int], offsets: int) -> dict[int, int]:
    shares: dict[int, int] = {}
    left = offsets
    for waiting, (partition, length) in zip(
        range(len(lengths), 0, -1), sorted(lengths.items(), key=lambda one: one[1]), strict=True
    ):
        shares[partition] = min(length, left // waiting)
        left -= shares[partition]
    return shares


def offset_in(start: Start, bounds: PartitionBounds) -> int | None:
    """The offset at which the read of the partition begins; None if only its brokers know the offset of a time."""
    if (named := start.offsets.get(bounds.partition)) is not None:
        return named
    if start.others is End.EARLIEST:
        return bounds.earliest
    return bounds.latest if start.others is End.LATEST else None


def require_same_topic(state: TopicState, start: Start, topic_id: str | None = None) -> None:
    """Say nothing if the start fits the topic as it is. `topic_id`: that of the topic to which the offsets belong.

    Raises TopicRecreated. Raises TopicPartitionsChanged for a named partition that does not exist, and for an existing
    one without a start.
    """
    if topic_id is not None and topic_id != state.topic_id:
        raise TopicRecreated(topic=state.topic, expected=topic_id, found=state.topic_id)
    found, named = {one.partition for one in state.partitions}, set(start.offsets)
    if named - found or (start.others is None and found - named):
        raise TopicPartitionsChanged(topic=state.topic, expected=_listed(named), found=_listed(found))


def require_readable(state: TopicState, wanted: TopicRange) -> None:
    """Say nothing if the topic still holds the whole range. Raises TopicRecreated, TopicPartitionsChanged,
    OffsetOutOfRange.
    """
    starts = {one.partition: one.start for one in wanted.partitions}
    require_same_topic(state, Start(starts, End.LATEST), wanted.topic_id)
    bounds = {one.partition: one for one in state.partitions}
    for one in wanted.partitions:
        _require_within(state.topic, bounds[one.partition], one)


def _require_within(topic: str, bounds: PartitionBounds, wanted: PartitionRange) -> None:
    facts = {"topic": topic, "partition": wanted.partition, "earliest": bounds.earliest, "latest": bounds.latest}
    if wanted.start < bounds.earliest and wanted.length:
        problem = "was removed by the topic's retention"
        raise OffsetOutOfRange(offset=wanted.start, problem=problem, **facts)
    if max(wanted.start, wanted.end) > bounds.latest:
        problem = "is behind the end, as after a loss of records in the brokers"
        raise OffsetOutOfRange(offset=max(wanted.start, wanted.end), problem=problem, **facts)


def _listed(partitions: set[int]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"
