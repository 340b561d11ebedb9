"""Change streams: what is watched, what was captured, which partitions there are, how far a consumer group has read.

A change stream's log is one Delta table; `change_streams/driver/log_table.py` describes it. Times are aware
UTC, of microseconds. Every transaction of a change stream has a commit timestamp of its own, so that a `Position` needs
no third part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from tidemark.model.streams import TableRef

__all__ = [
    "BUCKETS",
    "CLOCKS_DIFFER",
    "MICROSECOND",
    "STALE_AT",
    "BatchState",
    "CaptureBatch",
    "CaptureResult",
    "ChangeStream",
    "ChangeStreamOptions",
    "Chunk",
    "ChunkState",
    "ConsumerGroup",
    "GroupPartition",
    "GroupStatus",
    "LeftTable",
    "LoadSegment",
    "ModType",
    "Partition",
    "PartitionState",
    "Position",
    "TableRange",
    "ValueCaptureType",
    "WatchedTable",
    "WavePlan",
    "WaveResult",
]

BUCKETS = 65_536  # of the hash of a key: a partition is a range of them
MICROSECOND = timedelta(microseconds=1)
STALE_AT = 0.8  # of the retention: a group that is as far behind may soon lose records
CLOCKS_DIFFER = timedelta(seconds=10)  # by so much a table's clock may be ahead of the capture's, unsaid
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ValueCaptureType(StrEnum):
    """Which values a record has."""

    OLD_AND_NEW_VALUES = "OLD_AND_NEW_VALUES"
    NEW_VALUES = "NEW_VALUES"
    NEW_ROW = "NEW_ROW"
    NEW_ROW_AND_OLD_VALUES = "NEW_ROW_AND_OLD_VALUES"


class ModType(StrEnum):
    """The kind of a record's modifications. Inside a transaction they are in this order, so that DELETE and INSERT of
    one key is a replacement.
    """

    DELETE = "DELETE"
    UPDATE = "UPDATE"
    INSERT = "INSERT"


@dataclass(frozen=True, order=True)
class Position:
    """A place in a change stream: before the record of that timestamp and sequence. Ranges of them are half-open."""

    at: datetime
    sequence: str = ""  # fixed width; "" is before the first record of the timestamp


@dataclass(frozen=True)
class WatchedTable:
    """A table that a change stream watches. `columns`: those listed, in the table's order; None: all, also later ones;
    () the key alone. `keys`: the columns that are its primary key, as Delta has none. `captured`: the log has its
    changes up to this version.
    """

    table: TableRef
    keys: tuple[str, ...]
    columns: tuple[str, ...] | None
    captured: int


@dataclass(frozen=True)
class ChangeStreamOptions:
    """OPTIONS of CREATE CHANGE STREAM. `given`: the names that were set, for the catalog view."""

    value_capture_type: ValueCaptureType = ValueCaptureType.OLD_AND_NEW_VALUES
    retention: timedelta = timedelta(days=1)
    exclude_ttl_deletes: bool = False
    exclude_insert: bool = False
    exclude_update: bool = False
    exclude_delete: bool = False
    allow_txn_exclusion: bool = False
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangeStream:
    """A change stream as the store knows it. `everything`: FOR ALL. No table at all: it is suspended.

    `published_until`: records before it are all in the log, later ones are not before it; at first the creation.
    `log_path`: its log table; `next_batch`: the number of the batch that comes next. `expired_until`: the log
    may lack records before it, as their retention is over.
    """

    uid: str
    name: str
    everything: bool
    tables: tuple[WatchedTable, ...]
    options: ChangeStreamOptions
    created_at: datetime
    log_path: str
    published_until: datetime
    next_batch: int
    expired_until: datetime | None = None

    def __repr__(self) -> str:
        watched = ", ".join(one.table.name for one in self.tables)
        watches = f"ALL ({watched})" if self.everything else watched or "nothing"
        return f"ChangeStream({self.name} watches {watches}, captured until {self.published_until.isoformat()})"


@dataclass(frozen=True)
class Partition:
    """A hash range [lo, hi) of keys over [start, end) of time; `end` is None while it is active.

    `parents`: tokens; none for the first. `hot`, `quiet`: batches in a row that were over or under the limits of churn;
    `batch`: the one that opens it.
    """

    token: str
    lo: int
    hi: int
    parents: tuple[str, ...]
    start: datetime
    end: datetime | None = None
    batch: int = 0
    hot: int = 0
    quiet: int = 0


@dataclass(frozen=True)
class TableRange:
    """Versions (start, end] of a watched table."""

    watched: WatchedTable
    start: int
    end: int


@dataclass(frozen=True)
class LeftTable:
    """A table that a stream FOR ALL watches no longer. The log has its changes up to version `captured`."""

    table_id: str
    captured: int


class BatchState(StrEnum):
    """The state of a capture batch."""

    OPEN = "open"  # written ahead: a second capture does the same batch
    CAPTURED = "captured"  # it stands in the log, and the store knows what came of it
    EXPIRED = "expired"  # its records have left the log, as their retention is over
    DISCARDED = "discarded"  # given up when the stream was altered; its number is used up


@dataclass(frozen=True)
class CaptureBatch:
    """The ranges that one capture takes, written ahead, so that they are the same for every attempt.

    `floor`: everything in it is published later than this. `safe_until`: at least up to here nothing else will come
    (capture's start less the allowed skew). `active`: the partitions before it, whose ranges tile the key space.
    `discarded`: the numbers given up since the last batch in the log; they are barred from it before this one is done.
    `left`: tables that FOR ALL watches no longer. Each batch has those of the one before it, which may be forgotten.
    """

    stream: ChangeStream
    number: int
    ranges: tuple[TableRange, ...]
    floor: datetime
    safe_until: datetime
    active: tuple[Partition, ...]
    split_rows: int
    merge_rows: int
    opened_at: datetime
    discarded: tuple[int, ...] = ()
    left: tuple[LeftTable, ...] = ()

    @property
    def latest(self) -> datetime:
        """Nothing of it is published later, unless it has to come after `floor`. The clock of its table does not
        matter.
        """
        return self.opened_at + CLOCKS_DIFFER

    @property
    def is_first(self) -> bool:
        """Whether the log has no batch before it."""
        return len(self.discarded) == self.number


@dataclass(frozen=True)
class LoadSegment:
    """Rows of one partition in one batch that begin at `start`; a reader's chunk ends where a segment begins."""

    token: str
    start: Position
    rows: int


@dataclass(frozen=True)
class CaptureResult:
    """The content that a batch has put into the log. `closed`: the partitions that end with it, `end` set; `opened`:
    their children; `kept`: the others, their counters moved on. `published_until`: exclusive, the boundary of all
    three.

    `unsplittable`: tokens that were due for a split, but one bucket has all their load. `ahead`: tables whose commits
    bore times later than the batch's `latest`, and how far their clocks were ahead of the capture's. `taken`: the
    ranges of another batch, if the log has one under this number. The store is then older than the log, and the log
    counts.
    """

    number: int
    published_until: datetime
    transactions: int
    records: int
    rows: int
    load: tuple[LoadSegment, ...]
    closed: tuple[Partition, ...] = ()
    opened: tuple[Partition, ...] = ()
    kept: tuple[Partition, ...] = ()
    unsplittable: tuple[str, ...] = ()
    ahead: Mapping[str, timedelta] = field(default_factory=dict)
    found: bool = False  # an earlier attempt had written it
    taken: tuple[TableRange, ...] | None = None

    def __repr__(self) -> str:
        moved = f", {len(self.closed)} partitions closed, {len(self.opened)} opened" if self.closed else ""
        return (
            f"CaptureResult(batch {self.number}: {self.records} records of {self.transactions} transactions, "
            f"captured until {self.published_until.isoformat()}{moved})"
        )


class PartitionState(StrEnum):
    """The state of a partition for a consumer group."""

    CREATED = "created"  # its parents may be unfinished
    SCHEDULED = "scheduled"  # a chunk of it is written ahead
    RUNNING = "running"  # a task has taken up the chunk
    READY = "ready"  # read up to its watermark, and it goes on
    FINISHED = "finished"  # all its records are delivered


@dataclass(frozen=True)
class ConsumerGroup:
    """Readers that share one progress. `start`: where it began; `paused`: it gets no partitions."""

    uid: str
    stream_uid: str
    name: str
    start: datetime
    created_at: datetime
    paused: bool = False


@dataclass(frozen=True)
class GroupPartition:
    """A partition as a consumer group sees it. `watermark`: exclusive, all before it was delivered. `chunks`: how many
    were written ahead. `failed_run`: the run in which a chunk of it failed; `error`: why.
    """

    group_uid: str
    partition: Partition
    state: PartitionState
    watermark: Position
    chunks: int = 0
    failed_run: str | None = None
    error: str | None = None


class ChunkState(StrEnum):
    """The state of a chunk."""

    OPEN = "open"  # its bounds are written ahead
    WRITTEN = "written"  # the sink has it
    COMMITTED = "committed"  # the watermark is past it


@dataclass(frozen=True)
class Chunk:
    """Records [start, end) of one token for one group; its bounds never change, so that a sink can know it again.

    `number` counts from 0 in a token; `expected`: rows by the load segments. `last`: `end` is the end of the token.
    """

    group_uid: str
    stream_uid: str
    stream: str
    group: str
    token: str
    number: int
    start: Position
    end: Position
    expected: int
    last: bool
    state: ChunkState = ChunkState.OPEN
    rows: int | None = None  # rows that the sink took
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WavePlan:
    """The chunks that the tasks of a wave are to read, each of another token, oldest watermark first.

    `moved_on`: tokens that needed no task. `waiting`: tokens with work that this wave does not hand out. Either their
    parents are unfinished, they failed in this run, there are more than it may take, or the group pauses.
    """

    chunks: tuple[Chunk, ...]
    moved_on: int
    waiting: int


@dataclass(frozen=True)
class WaveResult:
    """The moves of a commit: how many tokens, those that are finished with it, and the children that came in."""

    advanced: int
    finished: tuple[str, ...]
    children: tuple[str, ...]
    low_watermark: datetime


@dataclass(frozen=True)
class GroupStatus:
    """The state of a consumer group. Records before `low_watermark` were all delivered. `lag_seconds`: how far that is
    behind now. `seconds_until_expiry`: how long until retention passes it. `stale`: most of the retention is used up.

    `counts`: partitions by state, those without any left out; `failed`: token → what its last attempt said.
    `backfilling`: nothing is handed out, since the rows before its records are not in their target yet.
    """

    group: ConsumerGroup
    stream: str
    low_watermark: datetime
    published_until: datetime
    lag_seconds: float
    seconds_until_expiry: float
    stale: bool
    counts: Mapping[str, int]
    open_chunks: int
    failed: Mapping[str, str] = field(default_factory=dict)
    backfilling: bool = False

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in sorted(self.counts.items())) or "none"
        failed = f", {len(self.failed)} failed" if self.failed else ""
        paused = ", paused" if self.group.paused else ""
        return (
            f"GroupStatus({self.group.name} of {self.stream}: low watermark {self.low_watermark.isoformat()}, "
            f"lag {self.lag_seconds:.0f} s, partitions: {counts}{failed}{paused})"
        )
