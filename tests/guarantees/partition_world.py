"""A change stream without Spark: a model of its table, its log and its sinks, over the real store, and processes that
die between any two calls of it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import (
    CaptureBatch,
    CaptureResult,
    ChangeStream,
    ChangeStreamOptions,
    Chunk,
    Partition,
    Position,
    WatchedTable,
)
from tidemark.change_streams.planning.churn import decide_churn, sub_bucket_width
from tidemark.change_streams.planning.segments import SEQUENCE_DIGITS, SegmentStart, load_segments
from tidemark.change_streams.planning.timestamps import SourceTransaction, publish, published_until
from tidemark.change_streams.worker.capture import close_batch, open_batch
from tidemark.change_streams.worker.definitions import create_change_stream, get_change_stream
from tidemark.change_streams.worker.waves import (
    begin_chunks,
    chunk_failed,
    chunk_written,
    commit_wave,
    finish,
    plan_wave,
)
from tidemark.control.engines import _begin_sqlite, _configure_sqlite
from tidemark.control.schema import all_tables, stores
from tidemark.control.store import ControlStore
from tidemark.model.streams import TableRef
from tidemark.streams.planning.bounds import Bound

from .partition_invariants import Snapshot, require_invariants

T = TypeVar("T")
START = datetime(2026, 11, 22, 6, 0, tzinfo=UTC)
TABLE = TableRef("db.t", "file:///t", "table-1")
KEYS = 24
SEGMENT_ROWS = 3


class ProcessDied(BaseException):
    """As a power cut ends a process."""


class MortalStore(ControlStore):
    """A store whose caller dies before its call number `lives`, and lives on where that is None."""

    lives: int | None = None

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        self._call()
        return super().read(work)

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        self._call()
        return super().write(work)

    def _call(self) -> None:
        if self.lives is not None:
            if self.lives == 0:
                raise ProcessDied
            self.lives -= 1


def memory_store() -> MortalStore:
    """In memory, on one connection: some ten thousand transactions in a minute."""
    made = MortalStore("sqlite:////nowhere/control.db")
    made._engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool, connect_args={"check_same_thread": False})
    sa.event.listen(made._engine, "connect", _configure_sqlite)
    sa.event.listen(made._engine, "begin", _begin_sqlite)
    made.migrate()
    return made


def clear(store: MortalStore) -> None:
    """No stream, no group, nothing is left."""

    def work(connection: sa.Connection) -> None:
        for table in reversed(all_tables().sorted_tables):
            if table is not stores:
                connection.execute(table.delete())

    store.write(work)


@dataclass(frozen=True)
class Record:
    """One modification of a key, in the log."""

    number: int
    key: int
    token: str
    at: Position


@dataclass
class ModelTable:
    """Commits, each with the numbers and keys of its modifications; it answers what a capture asks of a Delta log."""

    commits: list[tuple[datetime, list[tuple[int, int]]]] = field(default_factory=list)
    uri: str = TABLE.path

    def head(self) -> int:
        return len(self.commits)

    def goes_on_from(self, version: int) -> bool:
        return True

    def timestamp(self, version: int) -> datetime:
        return self.commits[version - 1][0]

    def state(self, version: int | None = None) -> Any:
        class State:
            table_id = TABLE.table_id

            class metadata:
                schema_json = '{"fields": [{"name": "id", "type": "long"}]}'

        return State


@dataclass
class ModelSink:
    """What it took of each chunk, once; a number that comes again with other bounds is an error."""

    chunks: dict[tuple[str, str, int], tuple[Position, Position]] = field(default_factory=dict)
    taken: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))

    def write(self, chunk: Chunk, records: Sequence[Record]) -> int:
        name, bounds = (chunk.group_uid, chunk.token, chunk.number), (chunk.start, chunk.end)
        if name in self.chunks:
            assert self.chunks[name] == bounds, f"{name} was {self.chunks[name]} and is {bounds} (I9)"
        else:
            self.chunks[name] = bounds
            self.taken[chunk.group_uid] += records
        return len(records)


class PartitionWorld:
    """The change stream `s`, its readers, and what all of them have done so far."""

    def __init__(self, store: MortalStore, initial_partitions: int) -> None:
        self.store, self.now = store, START
        store.clock = lambda: self.now
        self.table, self.log, self.sink = ModelTable(), list[Record](), ModelSink()
        self.captured: dict[int, CaptureResult] = {}
        self.numbers, self.runs, self.seen = 0, 0, dict[str, Snapshot]()
        self.stream_uid = create_change_stream(
            store,
            name="s",
            tables=[WatchedTable(TABLE, ("id",), None, 0)],
            everything=False,
            options=ChangeStreamOptions(retention=timedelta(days=1)),
            log_path="file:///log",
            initial_partitions=initial_partitions,
        ).uid

    @property
    def stream(self) -> ChangeStream:
        return get_change_stream(self.store, "s")

    def mortally(self, lives: int | None, act: Callable[[], object]) -> None:
        """The process does it, and may die; then the store is looked at."""
        self.store.lives = lives
        try:
            act()
        except ProcessDied:
            pass
        finally:
            self.store.lives = None
        self.check()

    def check(self) -> None:
        self.seen["s"] = require_invariants(self.store, "s", self.seen.get("s"))

    def commit(self, keys: Sequence[int]) -> None:
        """A commit of the table; its clock may stand still or run backwards."""
        self.now += timedelta(seconds=1)
        raw = self.now - timedelta(seconds=(self.numbers * 7) % 5)
        self.table.commits.append((raw, [(self.numbers + place, key) for place, key in enumerate(keys)]))
        self.numbers += len(keys)

    def capture(self, *, split_rows: int, merge_rows: int, max_commits: int | None = None) -> None:
        self.now += timedelta(seconds=1)
        batch = open_batch(
            self.store,
            "s",
            tables=lambda _: self.table,  # type: ignore[arg-type,return-value]
            bounds=Bound(max_commits=max_commits),
            allowed_skew=timedelta(),
            split_rows=split_rows,
            merge_rows=merge_rows,
        )
        if batch is not None:
            if batch.number not in self.captured:
                self.captured[batch.number] = self._job(batch)
            close_batch(self.store, batch, self.captured[batch.number])

    def wave(
        self, group: str, run: str, chance: random.Random, *, max_chunks: int, max_rows: int = 1000, fails: float = 0.0
    ) -> int:
        """Plan, the tasks in any order, commit; how many chunks there were."""
        plan = plan_wave(self.store, "s", group, run=run, max_chunks=max_chunks, max_rows=max_rows)
        tokens = [chunk.token for chunk in plan.chunks]
        assert len(set(tokens)) == len(tokens) <= max_chunks
        mixed = chance.sample(plan.chunks, len(plan.chunks))
        size = chance.randrange(1, 5)
        for some in (mixed[start : start + size] for start in range(0, len(mixed), size)):
            for due in begin_chunks(self.store, some, run):
                if chance.random() < fails:
                    if chance.random() < 0.5:  # the sink may have it all the same
                        self.sink.write(due, self.between(due))
                    chunk_failed(self.store, due, run, "no luck")
                    continue
                chunk_written(self.store, due, self.sink.write(due, self.between(due)), {})
        commit_wave(self.store, "s", group, run=run)
        return len(plan.chunks)

    def read_all(self, group: str, chance: random.Random) -> None:
        """Without further faults all is delivered in as many waves as it takes, and then no work is left."""
        self.runs += 1
        while self.wave(group, f"last {self.runs}", chance, max_chunks=1000):
            pass
        assert finish(self.store, "s", group, run=f"last {self.runs}") == 0

    def between(self, chunk: Chunk) -> list[Record]:
        found = [one for one in self.log if one.token == chunk.token and chunk.start <= one.at < chunk.end]
        return sorted(found, key=lambda one: one.at)

    def require_exactly_once(self, group_uid: str, since: datetime) -> None:
        """Each record from `since` on came once, and those of a key in the order of the log."""
        taken = self.sink.taken[group_uid]
        expected = {one.number for one in self.log if one.at.at >= since}
        numbers = [one.number for one in taken]
        assert len(numbers) == len(set(numbers)), "a record came twice"
        assert set(numbers) == expected, f"lost {expected - set(numbers)}, too many {set(numbers) - expected}"
        last: dict[int, Position] = {}
        for one in taken:
            assert one.key not in last or last[one.key] < one.at, f"key {one.key} came out of order"
            last[one.key] = one.at

    def _job(self, batch: CaptureBatch) -> CaptureResult:
        """What the Spark job does: publish, number, find the token, write, decide the churn."""
        (range_,) = batch.ranges
        versions = range(range_.start + 1, range_.end + 1)
        raw = [SourceTransaction(TABLE.table_id, version, self.table.timestamp(version)) for version in versions]
        published = publish(raw, batch.floor, batch.latest)
        made: list[Record] = []
        for one in published:
            for rank, (number, key) in enumerate(self.table.commits[one.transaction.version - 1][1]):
                token = next(p.token for p in batch.active if p.lo <= bucket_of(key) < p.hi)
                made.append(Record(number, key, token, Position(one.at, f"{rank:0{SEQUENCE_DIGITS}d}")))
        self.log += made
        boundary = published_until(published, batch.safe_until)
        churn = decide_churn(batch, _sub_buckets(batch.active, made), boundary)
        return CaptureResult(
            number=batch.number,
            published_until=boundary,
            transactions=len(published),
            records=len(made),
            rows=len(made),
            load=_load(made),
            closed=churn.closed,
            opened=churn.opened,
            kept=churn.kept,
            unsplittable=churn.unsplittable,
        )


def bucket_of(key: int) -> int:
    """Any fixed spread will do; some keys are in one bucket."""
    return ((key // 2) * 40_503 + 977) % 65_536


def _sub_buckets(active: Sequence[Partition], made: Sequence[Record]) -> dict[str, dict[int, int]]:
    by_token = {one.token: one for one in active}
    load: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for one in made:
        home = by_token[one.token]
        load[one.token][(bucket_of(one.key) - home.lo) // sub_bucket_width(home)] += 1
    return load


def _load(made: Sequence[Record]) -> Any:
    rows: dict[str, int] = defaultdict(int)
    starts = []
    for one in sorted(made, key=lambda record: record.at):
        if rows[one.token] % SEGMENT_ROWS == 0:
            starts.append(SegmentStart(one.token, one.at, rows[one.token]))
        rows[one.token] += 1
    return load_segments(starts, rows)
