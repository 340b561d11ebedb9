"""A catch-up of 100 GB and a table of a million files, planned on paper: logs alone, no data file and no JVM.

    python -m tests.benchmarks.catch_up [--gigabytes 100] [--commits 10000] [--slice-gigabytes 10] [--files 1000000]

The first table has that many commits after the stream's offset: three appends, then one that replaces the files of the
first of them, in turn. The second table has that many files in a checkpoint, and one commit that replaces them all.
Each step runs in a process of its own. *MB* is what its memory grew by at most, from what the process began with.

- *begin*: heads, ends and columns, as `begin` looks at the source. *bytes*: for executors of the job.
- *plan*: the driver's plan of the window. *log-only tables*: their number, and the bytes of their commits.
- *slices*: windows of `max_bytes` until nothing is left, each with begin, and a job that is played. Then the rows of
  the control store.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from tests.guarantees.synthetic_tables import CHECKPOINT, SyntheticTable
from tidemark.changes.driver.log_only import commit_of
from tidemark.changes.driver.plan import plan_changes
from tidemark.changes.driver.signed_rows import log_only_groups
from tidemark.changes.planning.sets.plan import ChangePlan
from tidemark.changes.worker.snapshots import snapshot_size
from tidemark.control.schema import all_tables
from tidemark.control.store import ControlStore, utc_now
from tidemark.errors import TidemarkError
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import Evidence, PlannedWrite, TransactionKey, WriteAs
from tidemark.model.streams import Stream, StreamMode, TableRef
from tidemark.streams.model.transaction_jobs import WRITE, WriteReport
from tidemark.streams.planning.bounds import UNBOUNDED, Bound
from tidemark.streams.planning.executors import ExecutorBounds
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.sizing import Sizing
from tidemark.streams.worker.sources import head_of, window_from
from tidemark.streams.worker.streams import create_stream, get_stream

GIGABYTE = 1 << 30
_FILE = 16 << 20  # bytes of a file
_AT_ONCE = 100_000  # rows of a checkpoint that are written together


@dataclass(frozen=True)
class Step:
    """The cost of one step. `said`: its findings."""

    seconds: float
    megabytes: float
    said: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=100)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--slice-gigabytes", type=float, default=10)
    parser.add_argument("--files", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidemark-catch-up-") as directory:
        root = Path(directory)
        print(f"{given.gigabytes:g} GB in {given.commits:,} commits")
        log = backlog(root / "backlog", given.commits, int(given.gigabytes * GIGABYTE))
        stream = stream_at(root, log, version=0)
        for name, act in looks(stream, log):
            show(name, act)
        show("slices", lambda: slices(root, stream, int(given.slice_gigabytes * GIGABYTE)))
        print(f"a table of {given.files:,} files, and a commit that replaces them all")
        table = large_table(root / "large", given.files)
        show("number of files and rows", lambda: str(snapshot_size(DeltaLog.open(table), 0, most_commits=1)))
        for name, act in looks(stream_at(root, table, version=0, name="large"), table):
            show(name, act)


def looks(stream: Stream, table: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """The steps of one window that takes all."""

    def begin() -> str:
        head = head_of(stream, lambda _: DeltaLog.open(table), UNBOUNDED)
        window = window_from(stream, head.ends, utc_now())
        return f"({window.start}, {window.end}], {len(head.schema() if head.schema else '')} characters of schema"

    def sized() -> str:
        head = head_of(stream, lambda _: DeltaLog.open(table), UNBOUNDED)
        window = window_from(stream, head.ends, utc_now())
        return str(Sizing(ExecutorBounds(100)).planned([window], lambda _: DeltaLog.open(table)))

    def plan(mode: StreamMode) -> ChangePlan:
        log = DeltaLog.open(table)
        return plan_changes(log, stream.offset.version, log.head(), mode)

    def planned(mode: StreamMode) -> str:
        made = plan(mode)
        return f"{len(made.files):,} files, {made.candidate.value}, {made.netting.value}"

    def log_only(mode: StreamMode) -> str:
        made = plan(mode)
        groups = log_only_groups(made.files)
        sizes = [len(commit_of(made.metadata, files[0].partition_columns, files)) for files in groups]
        return f"{len(groups)} log-only tables, {sum(sizes):,} bytes of commits, the largest {max(sizes, default=0):,}"

    yield "begin", begin
    yield "bytes", sized
    for mode in (StreamMode.STANDARD, StreamMode.APPEND_ONLY):
        yield f"plan, {mode.value}", lambda mode=mode: planned(mode)  # type: ignore[misc]
        yield f"plan and log-only tables, {mode.value}", lambda mode=mode: log_only(mode)  # type: ignore[misc]


def show(name: str, act: Callable[[], str]) -> None:
    step = in_a_process(act)
    print(f"  {name:45} {step.seconds:9.2f} s {step.megabytes:9.0f} MB   {step.said}", flush=True)


def in_a_process(act: Callable[[], str]) -> Step:
    """The step in a fork, whose memory says nothing of other steps."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def run(answer: Connection) -> None:
        before, began = _peak(), time.monotonic()
        try:
            said = act()
        except (TidemarkError, MemoryError) as error:
            said = f"{type(error).__name__}: {error}"
        answer.send(Step(time.monotonic() - began, (_peak() - before) / 1024, said))

    process = context.Process(target=run, args=(theirs,))
    process.start()
    theirs.close()
    try:
        step: Step = ours.recv()
    except EOFError:
        step = Step(0.0, 0.0, "the process was killed: out of memory?")
    process.join()
    return step


def _peak() -> int:
    """Kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def backlog(path: Path, commits: int, size: int) -> str:
    """A table with so many commits after its first, whose files have `size` bytes together."""
    made = SyntheticTable(path)
    per_commit = max(1, round(size / commits / _FILE))
    file_size = size // commits // per_commit
    kept: list[dict[str, Any]] = []
    for version in range(1, commits + 1):
        adds = [_add(f"part-{version:08}-{number:05}.parquet", file_size) for number in range(per_commit)]
        lines: list[dict[str, Any]] = [{"add": add} for add in adds]
        update = version % 4 == 0
        if update:
            lines += [{"remove": _removed(add)} for add in kept]
        if version % 4 == 1:
            kept = adds
        _write(made.log, version, lines, "UPDATE" if update else "WRITE")
    return made.uri


def large_table(path: Path, files: int) -> str:
    """A table with so many files at version 0, and a commit that replaces them all."""
    made = SyntheticTable(path)
    described = made.written[0]
    whole = ({"add": _add(f"part-{number:08}.parquet", _FILE)} for number in range(files))
    with pq.ParquetWriter(made.log / f"{0:020d}.checkpoint.parquet", CHECKPOINT) as writer:
        head = [one for one in described if set(one) <= {"protocol", "metaData"}]
        writer.write_table(pa.Table.from_pylist([_as_maps(one) for one in head], CHECKPOINT))
        for rows in _in_parts(whole):
            writer.write_table(pa.Table.from_pylist([_as_maps(one) for one in rows], CHECKPOINT))
    (made.log / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": files + len(head)}))
    with (made.log / f"{1:020d}.json").open("w") as log:
        log.write(json.dumps({"commitInfo": {"operation": "UPDATE", "operationMetrics": {}}}) + "\n")
        for number in range(files):
            add = _add(f"part-{number:08}.parquet", _FILE)
            log.write(json.dumps({"remove": _removed(add)}) + "\n")
            log.write(json.dumps({"add": {**add, "path": f"new-{number:08}.parquet"}}) + "\n")
    return made.uri


def slices(root: Path, stream: Stream, max_bytes: int) -> str:
    """Windows until nothing is left. The job is played: it writes nothing, and answers as one that has written."""
    store = ControlStore(f"sqlite:///{root / 'control.db'}", keep_connections=True)
    target = SyntheticTable(root / "target")
    writes = (PlannedWrite(WriteAs.APPEND, target.uri, source=stream.name),)
    runtime = Runtime(store, run=played, paths=JobPaths(str(root / "work"), str(root / "jobs")))
    seconds: list[float] = []
    while get_stream(store, stream.name).offset.version < DeltaLog.open(stream.source.path).head():
        began = time.monotonic()
        key = TransactionKey("catch_up", f"run {len(seconds)}", "consume")
        consume(runtime, key=key, streams=(stream.name,), writes=writes, owner="me", bound=Bound(max_bytes=max_bytes))
        seconds.append(time.monotonic() - began)
    rows = store.read(_rows)
    total = f"{len(seconds)} windows, the first {seconds[0]:.2f} s, the last {seconds[-1]:.2f} s"
    return f"{total}; rows: {', '.join(f'{name} {count}' for name, count in rows.items())}"


def played(spec: JobSpec) -> JobResult:
    asked = WRITE.requested(spec)
    evidence = tuple(
        Evidence(one.number, one.target.table_id, 1, one.txn_version, one.digest) for one in asked.statements
    )
    return JobResult(to_plain(WriteReport(evidence)))


def stream_at(root: Path, table: str, *, version: int, name: str = "backlog") -> Stream:
    store = ControlStore(f"sqlite:///{root / 'control.db'}")
    source = TableRef(name, table, DeltaLog.open(table).state().table_id)
    return create_stream(store, name=name, source=source, mode=StreamMode.STANDARD, at_version=version, who="me")


def _rows(connection: sa.Connection) -> dict[str, int]:
    found = {}
    for table in all_tables().sorted_tables:
        count = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        if count:
            found[table.name.removeprefix("tidemark_")] = int(count)
    return found


def _add(path: str, size: int) -> dict[str, Any]:
    return {
        "path": path,
        "partitionValues": {},
        "size": size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": '{"numRecords":100000}',
        "baseRowId": 0,
        "defaultRowCommitVersion": 0,
    }


def _removed(add: dict[str, Any]) -> dict[str, Any]:
    return {**add, "deletionTimestamp": 0, "extendedFileMetadata": True}


def _write(log: Path, version: int, actions: list[dict[str, Any]], operation: str) -> None:
    info = {"commitInfo": {"operation": operation, "operationMetrics": {}}}
    (log / f"{version:020d}.json").write_text("\n".join(json.dumps(one) for one in (info, *actions)) + "\n")


def _in_parts(actions: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    for action in actions:
        part.append(action)
        if len(part) == _AT_ONCE:
            yield part
            part = []
    yield part


def _as_maps(row: dict[str, Any]) -> dict[str, Any]:
    """Parquet keeps mappings as lists of pairs."""
    copied: dict[str, Any] = json.loads(json.dumps(row))
    if "metaData" in copied:
        copied["metaData"]["configuration"] = list(copied["metaData"]["configuration"].items())
        copied["metaData"]["format"]["options"] = []
    if "add" in copied:
        copied["add"]["partitionValues"] = []
    return copied


if __name__ == "__main__":
    main()
