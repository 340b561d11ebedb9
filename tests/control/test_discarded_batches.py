"""An open batch is given up when what is watched changes; of the tables that stay nothing is lost or comes twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.control.change_stream_model import ChangeStreamWorld, CountingTable, captured
from tidemark.change_streams.model.change_streams import BatchState, CaptureBatch, ChangeStream
from tidemark.change_streams.store import capture_batches
from tidemark.change_streams.worker.capture import capture, close_batch
from tidemark.change_streams.worker.definitions import suspend, watch
from tidemark.errors import CaptureChanged, DiscardedBatchCaptured, KeyTwiceInTransaction
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime


@pytest.fixture
def log(tmp_path: Path) -> CountingTable:
    """The stream's log, as the first capture makes it."""
    return CountingTable(tmp_path / "log", "log", "id of log")


def altered(world: ChangeStreamWorld, log: CountingTable, *names: CountingTable, captured: int = 0) -> ChangeStream:
    tables = [one.watched(captured) for one in names]
    return watch(world.store, "s", tables, everything=False, open_log=lambda _: DeltaLog.open(log.root.as_uri()))


def enter(log: CountingTable, world: ChangeStreamWorld, number: int, **mark: object) -> None:
    """A commit of capture in the log."""
    said = json.dumps({"tidemark_capture": {"batch": number, **mark}})
    log.commit(world.clock.go(), {"txn": {"appId": world.stream.uid, "version": number + 1}})
    path = log.root / "_delta_log" / f"{log.versions - 1:020d}.json"
    first, *rest = path.read_text().splitlines()
    info = json.loads(first)
    info["commitInfo"]["userMetadata"] = said
    path.write_text("\n".join([json.dumps(info), *rest]) + "\n")


def state(world: ChangeStreamWorld, number: int) -> BatchState:
    stored = world.store.read(lambda c: capture_batches.lookup(c, world.stream.uid, number))
    assert stored is not None
    return stored.state


def opened(world: ChangeStreamWorld) -> CaptureBatch:
    world.table.commit(world.clock.go())
    world.clock.go()
    batch: CaptureBatch = world.opened()
    return batch


def ranges(batch: CaptureBatch) -> list[tuple[str, int, int]]:
    return [(one.watched.table.name, one.start, one.end) for one in batch.ranges]


def test_a_batch_that_is_given_up_leaves_its_versions_to_the_next(world: ChangeStreamWorld, log: CountingTable) -> None:
    other = world.new_table("u")
    altered(world, log, world.table, other)
    other.commit(world.clock.go())
    batch = opened(world)
    assert ranges(batch) == [("db.t", 0, 1), ("db.u", 0, 1)]
    now = altered(world, log, other)
    assert (state(world, 0), now.next_batch, now) == (BatchState.DISCARDED, 1, world.stream)
    following = world.opened()
    assert (following.number, following.discarded, ranges(following)) == (1, (0,), [("db.u", 0, 1)])
    assert following.is_first
    world.close(following)
    assert (world.stream.next_batch, world.stream.tables) == (2, (other.watched(1),))
    other.commit(world.clock.go())
    assert (world.opened().discarded, world.opened().is_first) == ((), False)


def test_the_same_list_again_gives_nothing_up(world: ChangeStreamWorld, log: CountingTable) -> None:
    batch = opened(world)
    altered(world, log, world.table)
    assert (world.opened(), state(world, 0)) == (batch, BatchState.OPEN)


def test_a_batch_that_the_log_has_stays_open_and_is_closed_as_it_was(
    world: ChangeStreamWorld, log: CountingTable
) -> None:
    other = world.new_table("u")
    batch = opened(world)
    enter(log, world, 0)
    altered(world, log, other)
    assert (world.opened(), state(world, 0)) == (batch, BatchState.OPEN)
    assert world.close(batch).tables == (other.watched(0),)


def test_a_batch_whose_number_is_only_barred_is_not_in_the_log(world: ChangeStreamWorld, log: CountingTable) -> None:
    opened(world)
    enter(log, world, 0, barrier=True)
    altered(world, log, world.new_table("u"))
    assert state(world, 0) is BatchState.DISCARDED


def test_nothing_is_promised_before_what_was_given_up_is_barred(world: ChangeStreamWorld, log: CountingTable) -> None:
    opened(world)
    suspend(world.store, "s", open_log=lambda _: DeltaLog.open(log.root.as_uri()))
    until = world.stream.published_until
    world.clock.go()
    empty = world.opened()
    assert (empty.ranges, empty.discarded, world.stream.published_until) == ((), (0,), until)
    world.close(empty)
    assert world.stream.published_until > until
    assert world.opened() is None


def test_a_restarted_table_leaves_out_what_lies_between(world: ChangeStreamWorld, log: CountingTable) -> None:
    opened(world)
    world.table.commit(world.clock.go())
    watch(
        world.store,
        "s",
        [world.table.watched(2)],
        everything=False,
        restarted={world.table.table_id},
        open_log=lambda _: DeltaLog.open(log.root.as_uri()),
    )
    world.table.commit(world.clock.go())
    assert ranges(world.opened()) == [("db.t", 2, 3)]


def test_a_capture_that_came_in_after_all_counts_and_the_one_after_it_is_given_up(
    world: ChangeStreamWorld, log: CountingTable
) -> None:
    late = opened(world)
    altered(world, log, world.table, world.new_table("u"))
    following = world.opened()
    answers: list[CaptureBatch] = []

    def run(spec: JobSpec) -> JobResult:
        batch = from_plain(CaptureBatch, spec.request)
        answers.append(batch)
        if batch == following:
            return JobResult(error=DiscardedBatchCaptured(number=0, stream="s").to_record())
        return JobResult(to_plain(replace(captured(batch), found=True)))

    result = capture(Runtime(world.store, run=run, paths=JobPaths("file:///w", "file:///e"), tables=world.tables), "s")
    assert result is not None
    assert (result.number, answers) == (0, [following, late])
    assert [state(world, number) for number in (0, 1)] == [BatchState.CAPTURED, BatchState.DISCARDED]
    assert [one.captured for one in world.stream.tables] == [1, 0]
    assert opened(world).discarded == (1,)
    assert world.opened().number == 2
    with pytest.raises(CaptureChanged):
        close_batch(world.store, following, captured(following))
    assert world.stream.published_until == result.published_until


def test_what_can_never_be_captured_is_passed_by_a_restart(world: ChangeStreamWorld, log: CountingTable) -> None:
    error = KeyTwiceInTransaction(
        stream="s", version=1, table="db.t", times=2, mod_type="INSERT", key="1", columns="id"
    )
    opened(world)

    def fails(_: JobSpec) -> JobResult:
        return JobResult(error=error.to_record())

    for _ in range(2):
        with pytest.raises(KeyTwiceInTransaction, match=r"restart=\['db.t'\]"):
            capture(Runtime(world.store, run=fails, paths=JobPaths("file:///w", "file:///e"), tables=world.tables), "s")
    altered(world, log)
    assert altered(world, log, world.table, captured=1).tables == (world.table.watched(1),)
    assert world.opened().ranges == ()
