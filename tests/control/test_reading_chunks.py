"""A bundle that is read: what its job answered is kept, whatever else happened; and who is woken next."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.control.change_stream_model import ChangeStreamWorld, CountingTable, segment, tables
from tidemark.change_streams.driver.sinks import _delivered, statement_of
from tidemark.change_streams.model.change_streams import Chunk, WatchedTable
from tidemark.change_streams.model.sinks import ChunkAnswer, ChunkWrite, ReadRequest, Sink, SinkKind
from tidemark.change_streams.worker.continuous import ready_after, ready_now
from tidemark.change_streams.worker.definitions import watch
from tidemark.change_streams.worker.groups import create_group, drop_group, group_status
from tidemark.change_streams.worker.reading import BundleResult, read_chunks
from tidemark.change_streams.worker.sinks import require_target
from tidemark.change_streams.worker.waves import commit_wave, finish, plan_wave
from tidemark.control.store import ControlStore
from tidemark.delivery.driver.exactly_once import Delivering
from tidemark.delivery.model.marks import MarkKind
from tidemark.errors import (
    ChangeStreamRefused,
    ChunkChanged,
    InvalidArgument,
    JobDied,
    JobFailed,
    PartitionsFailed,
    TargetForgetsTransactions,
)
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import TableRef
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

PATHS = JobPaths("file:///lake/_tidemark", "/tmp/jobs")
KEY = TransactionKey("dag", "run", "read", 0)


@dataclass
class Reading:
    """A change stream with load in both of its partitions, a group `g`, and a target for its sink."""

    world: ChangeStreamWorld
    target: CountingTable
    asks: list[ReadRequest] = field(default_factory=list)

    @property
    def store(self) -> ControlStore:
        return self.world.store

    def load(self) -> None:
        at = self.world.clock.now + timedelta(seconds=1)
        self.world.batch(*(segment(one.token, at, 5) for one in self.world.active()))

    def plan(self, run: str = "r", group: str = "g") -> tuple[Chunk, ...]:
        return plan_wave(self.store, "s", group, run=run, max_chunks=9, max_rows=9).chunks

    def read(
        self,
        chunks: Sequence[Chunk],
        answer: Callable[[ReadRequest], JobResult],
        run: str = "r",
        target: CountingTable | None = None,
    ) -> BundleResult:
        def job(spec: JobSpec) -> JobResult:
            self.asks.append(from_plain(ReadRequest, spec.request))
            return answer(self.asks[-1])

        sink = Sink(SinkKind.APPEND, (target or self.target).ref)
        return read_chunks(Runtime(self.store, run=job, paths=PATHS, tables=tables), chunks, sink, run=run, key=KEY)

    def finish(self, run: str = "r") -> int:
        commit_wave(self.store, "s", "g", run=run)
        return finish(self.store, "s", "g", run=run)


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    world = ChangeStreamWorld(ControlStore(f"sqlite:///{tmp_path}/control.db"), tmp_path)
    create_group(world.store, "s", "g", "earliest")
    made = Reading(world, world.new_table("target"))
    made.load()
    return made


def written(ask: ReadRequest) -> JobResult:
    answers = [ChunkAnswer(one.chunk.token, one.chunk.number, 5, facts={"version": "1"}) for one in ask.writes]
    return JobResult({"chunks": to_plain(answers)})


def first_fails(ask: ReadRequest) -> JobResult:
    error = JobFailed(error="ValueError", message="it is bad").to_record()
    answers = [replace(ChunkAnswer(one.chunk.token, one.chunk.number, 5)) for one in ask.writes]
    return JobResult({"chunks": to_plain([replace(answers[0], rows=None, error=error), *answers[1:]])})


def dies(ask: ReadRequest) -> JobResult:
    raise JobDied(key=str(KEY), exit_code=-9, tail="")


def refuses(ask: ReadRequest) -> JobResult:
    return JobResult(error=JobFailed(error="ValueError", message="all is bad").to_record())


def test_what_a_job_answered_is_kept_and_a_second_task_starts_none(reading: Reading) -> None:
    chunks = reading.plan()
    assert reading.read(chunks, written) == BundleResult(chunks=2, rows=10, found=0, failed=())
    assert reading.read(chunks, dies) == BundleResult(chunks=2, rows=0, found=2, failed=())
    assert (len(reading.asks), reading.finish()) == (1, 0)
    assert reading.read(chunks, dies).found == 2


def test_a_chunk_that_fails_waits_for_another_run_and_its_sibling_goes_on(reading: Reading) -> None:
    chunks = reading.plan()
    failed = reading.read(chunks, first_fails).failed
    assert [token for token, _ in failed] == [chunks[0].token]
    assert reading.plan() == ()
    with pytest.raises(PartitionsFailed, match="it is bad"):
        reading.finish()
    (again,) = reading.plan("another")
    assert (again.token, again.start, again.end) == (chunks[0].token, chunks[0].start, chunks[0].end)
    reading.read([again], written, "another")
    assert reading.finish("another") == 0


def test_a_task_that_is_tried_again_in_its_run_mends_it(reading: Reading) -> None:
    chunks = reading.plan()
    reading.read(chunks, first_fails)
    assert reading.read(chunks, written).found == 1
    assert reading.finish() == 0


@pytest.mark.parametrize(("answer", "error"), [(dies, JobDied), (refuses, JobFailed)])
def test_a_job_that_fails_as_a_whole_fails_its_chunks(
    reading: Reading, answer: Callable[[ReadRequest], JobResult], error: type[Exception]
) -> None:
    chunks = reading.plan()
    with pytest.raises(error):
        reading.read(chunks, answer)
    assert set(group_status(reading.store, "s", "g").failed) == {chunk.token for chunk in chunks}
    with pytest.raises(PartitionsFailed):
        reading.finish()


def test_each_attempt_looks_for_its_marks_from_the_same_version_on(reading: Reading) -> None:
    chunks = reading.plan()
    with pytest.raises(JobDied):
        reading.read(chunks, dies)
    for _ in range(3):
        reading.target.commit(reading.world.clock.go())
    reading.read(chunks, written)
    assert [[one.base_version for one in ask.writes] for ask in reading.asks] == [[0, 0], [0, 0]]


def test_a_chunk_that_goes_to_another_table_is_looked_for_in_that_one(reading: Reading) -> None:
    chunks = reading.plan()
    other = reading.world.new_table("other")
    other.commit(reading.world.clock.go())
    for target in (reading.target, other):
        with pytest.raises(JobDied):
            reading.read(chunks, dies, target=target)
    assert [[one.base_version for one in ask.writes] for ask in reading.asks] == [[0, 0], [1, 1]]


def test_other_bounds_under_the_same_number_start_no_job(reading: Reading) -> None:
    chunk = reading.plan()[0]
    later = replace(chunk.end, at=chunk.end.at + timedelta(seconds=1))
    with pytest.raises(ChunkChanged):
        reading.read([replace(chunk, end=later)], written)
    assert reading.asks == []


def test_a_target_that_forgets_is_refused_before_a_job_starts(reading: Reading) -> None:
    table = reading.target
    forgets = {"delta.setTransactionRetentionDuration": "interval 1 hour"}
    schema = '{"type": "struct", "fields": []}'
    described = {"id": table.table_id, "schemaString": schema, "partitionColumns": [], "configuration": forgets}
    table.commit(reading.world.clock.go(), {"metaData": described})
    with pytest.raises(TargetForgetsTransactions):
        reading.read(reading.plan(), written)
    assert reading.asks == []


def test_a_table_that_is_watched_by_name_is_no_sink_of_its_own_stream(reading: Reading) -> None:
    chunks, target = reading.plan(), reading.target.ref
    watch(reading.store, "s", [reading.world.table.watched(), reading.target.watched()], everything=False)
    moved = replace(target, path="file:///elsewhere")
    for one in (target, moved):
        with pytest.raises(InvalidArgument, match=r"change stream s watches it.*without end"):
            require_target(reading.store, "s", one)
    with pytest.raises(InvalidArgument, match="remove this one from the watch list"):
        reading.read(chunks, written)
    assert reading.asks == []
    watch(reading.store, "s", [reading.world.table.watched()], everything=False)
    require_target(reading.store, "s", target)
    assert reading.read(chunks, written).rows == 10


def test_nobody_but_capture_writes_the_log_and_no_table_gets_its_own_records(reading: Reading) -> None:
    log = TableRef("log", reading.world.stream.log_path, "id of the log")
    with pytest.raises(InvalidArgument, match="it is the log of change stream s"):
        require_target(reading.store, "s", log)
    with pytest.raises(InvalidArgument, match="the table whose records are read"):
        require_target(reading.store, "s", reading.target.ref, of_table=reading.target.table_id)
    require_target(reading.store, "s", None)


@pytest.mark.parametrize("ended", [False, True])
def test_what_a_group_writes_all_does_not_watch_and_who_names_it_is_refused(reading: Reading, ended: bool) -> None:
    both = [reading.world.table.watched(), reading.target.watched()]
    watch(reading.store, "s", both, everything=True)
    assert reading.read(reading.plan(), written).rows == 10
    assert [one.table.name for one in reading.world.stream.tables] == ["db.t"]
    if ended:
        drop_group(reading.store, "s", "g")

    reading.target.commit(reading.world.clock.go())
    assert reading.world.opened(new_tables=lambda *_: [reading.target.watched(-1)]) is None
    assert [one.table.name for one in reading.world.stream.tables] == ["db.t"]
    watch(reading.store, "s", both, everything=True)
    assert [one.table.name for one in reading.world.stream.tables] == ["db.t"]
    if ended:
        watch(reading.store, "s", both, everything=False)
        assert [one.table.name for one in reading.world.stream.tables] == ["db.t", "db.target"]
        return
    with pytest.raises(ChangeStreamRefused, match=r"consumer group 'g' of this change stream writes db\.target"):
        watch(reading.store, "s", both, everything=False)


def test_a_table_that_becomes_a_sink_while_a_capture_looks_at_it_is_not_taken_up(reading: Reading) -> None:
    watch(reading.store, "s", [reading.world.table.watched()], everything=True)
    chunks = reading.plan()
    reading.target.commit(reading.world.clock.go())
    reading.world.table.commit(reading.world.clock.go())

    def new_tables(*_: object) -> Sequence[WatchedTable]:
        reading.read(chunks, written)
        return [reading.target.watched(-1)]

    batch = reading.world.opened(new_tables=new_tables)
    assert [one.watched.table.name for one in batch.ranges] == ["db.t"]
    assert [one.table.name for one in batch.stream.tables] == ["db.t"]


def test_a_batch_that_is_open_when_its_table_becomes_a_sink_is_captured_and_none_after_it(reading: Reading) -> None:
    watch(reading.store, "s", [reading.world.table.watched(), reading.target.watched()], everything=True)
    chunks = reading.plan()
    reading.target.commit(reading.world.clock.go())
    batch = reading.world.opened()
    reading.read(chunks, written)
    assert reading.world.close(batch).tables == tuple(one for one in batch.stream.tables if one.table.name == "db.t")
    reading.target.commit(reading.world.clock.go())
    assert reading.world.opened(new_tables=lambda *_: [reading.target.watched(-1)]) is None


def test_a_child_is_woken_by_the_last_of_its_parents(reading: Reading) -> None:
    world = reading.world
    parents = world.active()
    world.batch(*(segment(one.token, world.clock.now, 5) for one in parents), closed=parents, opened=[(0, 65_536)])
    (child,) = world.active()
    world.batch(segment(child.token, world.clock.now + timedelta(seconds=1), 5))
    ready = ready_now(reading.store, "s", "g", run="c", max_chunks=9, max_rows=99)
    assert set(ready) == {one.token for one in parents}
    woken = []
    for parent in parents:
        chunks = plan_wave(reading.store, "s", "g", run="r", max_chunks=9, max_rows=99, token=parent.token).chunks
        reading.read(chunks, written)
        commit_wave(reading.store, "s", "g", run="r")
        woken.append(ready_after(reading.store, "s", "g", parent.token, run="r", max_rows=99))
    assert woken == [[], [child.token]]
    assert ready_after(reading.store, "s", "g", parents[0].token, run="r", max_rows=99) == [child.token]


def test_a_chunk_is_looked_for_in_the_whole_log_of_a_table_that_forgets(reading: Reading) -> None:
    """Its number may have expired, and a store that was put back pins the table as it is now, with the chunk in it."""
    table = reading.target
    chunks = reading.plan()
    sink = Sink(SinkKind.APPEND, table.ref)
    statement = statement_of(reading.store.store_id, sink, ChunkWrite(chunks[0]))
    delivering = Delivering(reading.store.store_id, None, ())
    mark = delivering.mark(statement, MarkKind.WRITE).to_text()
    table.commit(reading.world.clock.go(), {"txn": {"appId": statement.app_id, "version": statement.txn_version}})
    path = table.root / "_delta_log" / f"{table.versions - 1:020d}.json"
    first, *rest = path.read_text().splitlines()
    info = json.loads(first)
    info["commitInfo"]["userMetadata"] = mark
    path.write_text("\n".join([json.dumps(info), *rest]) + "\n")
    forgets = {"delta.setTransactionRetentionDuration": "interval 365 days"}
    schema = '{"type": "struct", "fields": []}'
    described = {"id": table.table_id, "schemaString": schema, "partitionColumns": [], "configuration": forgets}
    table.commit(reading.world.clock.go(), {"metaData": described})
    with pytest.raises(JobDied):
        reading.read(chunks, dies)
    write = reading.asks[-1].writes[0]
    late = replace(statement, base_version=write.base_version)
    assert write.base_version == 2
    assert _delivered(delivering, late) is None
    assert _delivered(delivering, late, write.searched_from) is not None
