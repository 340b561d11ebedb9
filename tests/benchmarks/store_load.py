"""10,000 streams of 1,000 DAGs in one PostgreSQL store, and 200 windows that begin and commit at once.

    python -m tests.benchmarks.store_load [--streams 10000] [--dags 1000] [--at-once 200] [--processes 40]
        [--windows 5000] [--max-connections 250] [--url postgresql+psycopg://…]

Each window has a store of its own, as a task does: a connection for each transaction, and logs on a local disk. The
job is played, and takes `--job-seconds`. `--shared-target` lets all streams of a DAG write one table. Processes matter:
a thread that has the turn to write waits for the interpreter of its process. Latencies are those of begin, submit,
commit, and the whole window. *Again* counts transactions that PostgreSQL rolled back, since others came first: they
run again by themselves. Waits for locks and connections are looked at ten times a second.

Triggers with 10,000 waits: `python -m tests.benchmarks.triggerer --streams 10000 --postgresql --shared-only`.
Pages: `python -m tests.benchmarks.monitor_load`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark.control.store import ControlStore
from tidemark.errors import TidemarkError
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import Evidence, PlannedWrite, TransactionKey, WriteAs
from tidemark.model.streams import Stream, StreamMode, StreamOffset, TableRef
from tidemark.streams.model.transaction_jobs import WRITE, WriteReport
from tidemark.streams.store import streams as stored_streams
from tidemark.streams.worker.begin import begin
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.outcomes import Opened
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.submit import submit

_TABLES = 200  # sources; many streams read one table
_SECONDS_BETWEEN_LOOKS = 0.1
_ACTIVITY = """SELECT count(*), count(*) FILTER (WHERE wait_event_type = 'Lock'),
    count(*) FILTER (WHERE state = 'idle in transaction') FROM pg_stat_activity WHERE application_name = 'tidemark'"""
_ROLLED_BACK = "SELECT xact_commit, xact_rollback FROM pg_stat_database WHERE datname = current_database()"


@dataclass(frozen=True)
class Task:
    """A stream and the table that it is written to."""

    dag: str
    stream: str
    target: str


@dataclass
class Took:
    """Seconds of each window, by step, and the errors."""

    begin: list[float] = field(default_factory=list)
    submit: list[float] = field(default_factory=list)
    commit: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, other: Took) -> None:
        for name in ("begin", "submit", "commit", "whole"):
            getattr(self, name).extend(getattr(other, name))
        self.errors.update(other.errors)


@dataclass
class Looks:
    """The most connections, waits for locks and idle transactions that were seen at a time."""

    connections: int = 0
    waiting: int = 0
    idle: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--dags", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=200)
    parser.add_argument("--processes", type=int, default=40)
    parser.add_argument("--windows", type=int, default=5_000)
    parser.add_argument("--job-seconds", type=float, default=0.0)
    parser.add_argument("--max-connections", type=int, default=250)
    parser.add_argument("--shared-target", action="store_true")
    parser.add_argument("--url", help="an empty database of a server; without it one is started")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tidemark-store-load-") as directory,
        store_url(given.url, given.max_connections) as url,
    ):
        tasks = made(Path(directory), url, given.streams, given.dags, shared=given.shared_target)
        measure(url, Path(directory), tasks, given)


@contextmanager
def store_url(url: str | None, connections: int) -> Iterator[str]:
    if url is not None:
        yield url
        return
    from tests.postgresql import running_postgresql

    with running_postgresql([f"max_connections={connections}", "fsync=on", "autovacuum=on"]) as server:
        yield server.url(server.new_database())


def made(root: Path, url: str, count: int, dags: int, *, shared: bool) -> list[Task]:
    """The streams, on tables with one commit that nobody has read."""
    store, now = ControlStore(url), datetime.now(UTC)
    store.migrate()
    began = time.monotonic()
    sources = [SyntheticTable(root / "sources" / f"s{number}") for number in range(min(_TABLES, count))]
    for source in sources:
        source.append()
    targets: dict[str, SyntheticTable] = {}
    streams, tasks = list[Stream](), list[Task]()
    for number in range(count):
        dag, name, source = f"dag_{number % dags:04}", f"stream_{number:05}", sources[number % len(sources)]
        target = dag if shared else name
        if target not in targets:
            targets[target] = SyntheticTable(root / "targets" / target)
        table = TableRef(source.path.name, source.uri, source.table_id)
        offset = StreamOffset(source.table_id, 0)
        streams.append(Stream(f"uid-{number:05}", name, table, StreamMode.STANDARD, offset, False, 0, now, now))
        tasks.append(Task(dag, name, targets[target].uri))
    for start in range(0, count, 500):
        part = streams[start : start + 500]
        store.write(lambda c, part=part: [stored_streams.insert(c, one, who="benchmark") for one in part])  # type: ignore[misc]
    store.close()
    print(f"{count:,} streams of {dags:,} DAGs, made in {time.monotonic() - began:.0f} s", flush=True)
    return tasks


def measure(url: str, root: Path, tasks: Sequence[Task], given: argparse.Namespace) -> None:
    wanted = [tasks[number % len(tasks)] for number in range(min(given.windows, len(tasks)))]
    processes = min(given.processes, given.at_once)
    parts = [wanted[number::processes] for number in range(processes)]
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", connect_args={"application_name": "benchmark"})
    before = _rolled_back(engine)
    looks, stop = Looks(), threading.Event()
    looking = threading.Thread(target=look, args=(engine, looks, stop))
    looking.start()
    context, took, began = multiprocessing.get_context("spawn"), Took(), time.monotonic()
    with context.Pool(processes) as pool:
        threads = max(1, given.at_once // processes)
        arguments = [(url, str(root), part, threads, given.job_seconds) for part in parts]
        for one in pool.starmap(consume_all, arguments):
            took.add(one)
    seconds = time.monotonic() - began
    stop.set()
    looking.join()
    commits, again = (now - then for now, then in zip(_rolled_back(engine), before, strict=True))
    rate = f"{len(took.whole) / seconds:.1f} a second"
    print(f"{len(took.whole):,} windows in {seconds:.1f} s, {rate}, with the start of processes")
    for name in ("begin", "submit", "commit", "whole"):
        print(f"  {name:7} {_percentiles(getattr(took, name))}")
    again = max(0, again - len(wanted))  # psycopg's first look at the server is rolled back
    print(f"  {commits:,} transactions, {again:,} again; errors: {dict(took.errors) or 'none'}")
    seen = f"{looks.connections} connections, {looks.waiting} wait for locks, {looks.idle} idle in a transaction"
    print(f"  at most {seen}")
    engine.dispose()


def consume_all(url: str, root: str, tasks: Sequence[Task], threads: int, job_seconds: float) -> Took:
    """One process with that many tasks at a time; each opens its store, as a task does."""
    took, lock = Took(), threading.Lock()

    def run(task: Task) -> None:
        one = consumed(ControlStore(url), Path(root), task, job_seconds)
        with lock:
            took.add(one)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, tasks))
    return took


def consumed(store: ControlStore, root: Path, task: Task, job_seconds: float) -> Took:
    took, key = Took(), TransactionKey(task.dag, "run", task.stream)

    def played(spec: JobSpec) -> JobResult:
        time.sleep(job_seconds)
        asked = WRITE.requested(spec).statements
        evidence = tuple(Evidence(s.number, s.target.table_id, 1, s.txn_version, s.digest) for s in asked)
        return JobResult(to_plain(WriteReport(evidence)))

    runtime = Runtime(store, run=played, paths=JobPaths(str(root / "work"), str(root / "jobs")), tables=_open)
    began = time.monotonic()
    try:
        writes = (PlannedWrite(WriteAs.APPEND, task.target, source=task.stream),)
        begun = begin(runtime, key=key, streams=(task.stream,), writes=writes, owner=task.dag)
        took.begin.append(time.monotonic() - began)
        assert isinstance(begun, Opened)
        submitting = time.monotonic()
        submit(runtime, begun.transaction)
        took.submit.append(time.monotonic() - submitting - job_seconds)
        committing = time.monotonic()
        commit(store, key, tables=_open)
        took.commit.append(time.monotonic() - committing)
        took.whole.append(time.monotonic() - began)
    except TidemarkError as error:
        took.errors[f"{type(error).__name__}: {str(error)[:160]}"] += 1
    return took


def _open(table: TableRef | str) -> DeltaLog:
    return DeltaLog.open(table.path if isinstance(table, TableRef) else table)


def look(engine: sa.Engine, looks: Looks, stop: threading.Event) -> None:
    with engine.connect() as connection:
        while not stop.wait(_SECONDS_BETWEEN_LOOKS):
            found, waiting, idle = connection.execute(sa.text(_ACTIVITY)).one()
            looks.connections = max(looks.connections, found)
            looks.waiting, looks.idle = max(looks.waiting, waiting), max(looks.idle, idle)


def _rolled_back(engine: sa.Engine) -> tuple[int, int]:
    with engine.connect() as connection:
        committed, back = connection.execute(sa.text(_ROLLED_BACK)).one()
    return int(committed), int(back)


def _percentiles(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return "too few"
    of = statistics.quantiles(seconds, n=100, method="inclusive")  # none is above the longest
    return f"p50 {of[49]:.3f} s, p95 {of[94]:.3f} s, p99 {of[98]:.3f} s, most {max(seconds):.3f} s"


if __name__ == "__main__":
    main()
