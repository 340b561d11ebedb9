"""One small world: a store, a source, two targets, a clock that stands still, drivers that outlive their workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tidemark.control.store import ControlStore
from tidemark.delivery.model.transactions import CommitResult, Transaction
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import Evidence, PlannedWrite, TransactionKey, WriteAs
from tidemark.model.streams import OffsetMove, Stream, StreamMode, TableRef
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.hosts import UNKNOWN_HOST, Host
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.outcomes import Begun, Consumed, Delivered, Opened
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import create_stream, get_stream, stream_history
from tidemark.streams.worker.submit import submit

from .drivers import Driver, WorkerDied
from .synthetic_tables import SyntheticTable

__all__ = ["Clock", "World", "key_of"]

START = datetime(2026, 1, 21, 6, 0, tzinfo=UTC)
SHORT = timedelta(minutes=11)  # a lease has run out
LONG = timedelta(hours=7)  # a deadline has passed


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def go(self, by: timedelta) -> None:
        self.now += by


def key_of(run: str) -> TransactionKey:
    return TransactionKey("dag", run, "consume")


@dataclass
class World:
    root: Path
    url: str
    clock: Clock = field(default_factory=Clock)
    drivers: list[Driver] = field(default_factory=list)
    host: Host = UNKNOWN_HOST

    def __post_init__(self) -> None:
        self.store = ControlStore(self.url, clock=self.clock, keep_connections=True)
        self.paths = JobPaths(workspace=str(self.root / "work"), exchange=str(self.root / "jobs"))
        self.sources = {name: SyntheticTable(self.root / name) for name in ("source", "other")}
        self.targets = [SyntheticTable(self.root / f"target{number}") for number in (0, 1)]
        self.by_uri = {table.uri: table for table in (*self.sources.values(), *self.targets)}

    @property
    def runtime(self) -> Runtime:
        return Runtime(self.store, self.run, self.paths, host=self.host)

    @property
    def source(self) -> SyntheticTable:
        return self.sources["source"]

    def stream(self, name: str = "s", source: str = "source", **more: object) -> Stream:
        table = self.sources[source]
        ref = TableRef(source, table.uri, table.table_id)
        options = {"mode": StreamMode.STANDARD, "at_version": table.head(), "who": "test", **more}
        return create_stream(self.store, name=name, source=ref, **options)  # type: ignore[arg-type]

    def offset(self, name: str = "s") -> int:
        return get_stream(self.store, name).offset.version

    def writes(self, *targets: int) -> tuple[PlannedWrite, ...]:
        return tuple(PlannedWrite(WriteAs.APPEND, self.targets[t].uri, source="s") for t in targets or (0, 1))

    def begin(
        self, run: str, writes: Sequence[PlannedWrite] | None = None, streams: Sequence[str] = ("s",), **more: object
    ) -> Begun:
        how = {name: more.pop(name) for name in ("tables", "limits") if name in more}
        return begin(
            replace(self.runtime, **how),  # type: ignore[arg-type]
            key=key_of(run),
            streams=streams,
            writes=self.writes() if writes is None else writes,
            owner=f"worker of {run}",
            **more,
        )

    def begin_with(self, run_job: Callable[[JobSpec], JobResult], run: str) -> Begun:
        """Begin with another way to run the job of a takeover."""
        return begin(
            Runtime(self.store, run=run_job, paths=self.paths),
            key=key_of(run),
            streams=("s",),
            writes=self.writes(),
            owner=f"worker of {run}",
        )

    def open(
        self, run: str, writes: Sequence[PlannedWrite] | None = None, streams: Sequence[str] = ("s",), **more: object
    ) -> Transaction:
        begun = self.begin(run, writes, streams, **more)
        assert isinstance(begun, Opened), begun
        return begun.transaction

    def delivered(self, run: str, **more: object) -> Delivered:
        begun = self.begin(run, **more)  # type: ignore[arg-type]
        assert isinstance(begun, Delivered), begun
        return begun

    def run(self, spec: JobSpec) -> JobResult:
        return self.driver(spec).run()

    def driver(self, spec: JobSpec) -> Driver:
        self.drivers.append(Driver(spec, self.by_uri, self.clock))
        return self.drivers[-1]

    def zombie(self, transaction: Transaction, steps: int = 0) -> Driver:
        """The worker submits and dies when its driver has made `steps`; the driver lives on."""

        def die(spec: JobSpec) -> JobResult:
            driver = self.driver(spec)
            for _ in range(steps):
                driver.step()
            raise WorkerDied

        try:
            submit(Runtime(self.store, run=die, paths=self.paths, host=self.host), transaction)
        except WorkerDied:
            return self.drivers[-1]
        raise AssertionError("the worker should have died")

    def run_unseen(self, transaction: Transaction) -> tuple[Evidence, ...]:
        """The worker dies when its job is done: everything is written, nothing is reported."""
        driver = self.zombie(transaction)
        driver.run()
        return driver.evidence

    def submit(self, transaction: Transaction, run: Callable[[JobSpec], JobResult] | None = None) -> None:
        submit(Runtime(self.store, run=run or self.run, paths=self.paths), transaction)

    def finish(self, transaction: Transaction) -> CommitResult:
        self.submit(transaction)
        return commit(self.store, transaction.key)

    def consume(self, run: str, *targets: int, streams: Sequence[str] = ("s",)) -> Consumed:
        return consume(
            self.runtime,
            key=key_of(run),
            streams=streams,
            writes=self.writes(*targets),
            owner=f"worker of {run}",
        )

    def history(self, name: str = "s") -> tuple[OffsetMove, ...]:
        return stream_history(self.store, name)

    def holds(self, target: int, name: str = "s") -> dict[int, int]:
        """Change → how often it stands in the target, for the stream as it is now."""
        uid = get_stream(self.store, name).uid
        return {version: n for (owner, version), n in sorted(self.targets[target].contents().items()) if owner == uid}
