"""A past window can be delivered again into another table, exactly once; the stream stays where it is."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.guarantees.drivers import WorkerDied
from tests.guarantees.world import LONG, World, key_of
from tidemark.errors import (
    InvalidArgument,
    JobDeadlineExceeded,
    LogIncomplete,
    PastWindowLost,
    SerialReused,
    SourceRecreated,
    SplitUnreadable,
    StreamStale,
    TargetChanged,
    TargetRewound,
    TidemarkError,
    TrackingInterrupted,
    TransactionNotFound,
    VersionVacuumed,
    ViewChanged,
)
from tidemark.model.jobs import JobResult
from tidemark.model.statements import PlannedWrite, WriteAs
from tidemark.streams.worker.outcomes import Consumed
from tidemark.streams.worker.replay import find_run, replay
from tidemark.streams.worker.runtime import Runtime


@pytest.fixture
def delivered(world: World) -> World:
    """Runs `one` and `two` have delivered versions 1 and 2 into target 0."""
    for run in ("one", "two"):
        world.source.append()
        world.consume(run, 0)
    return world


def again(world: World, past: str, run: str = "again", target: int = 1, *, runtime: Runtime | None = None) -> Consumed:
    return replay(
        runtime or world.runtime,
        find_run(world.store, "s", past),
        key=key_of(run),
        writes=[PlannedWrite(WriteAs.APPEND, world.targets[target].uri, source="s")],
        owner=f"worker of {run}",
    )


def test_the_window_of_a_run_reaches_another_table_and_no_offset_moves(delivered: World) -> None:
    done = again(delivered, "one")
    assert [(w.from_version, w.to_version) for w in done.result.windows] == [(0, 1)]
    assert (delivered.holds(1), delivered.holds(0), delivered.offset()) == ({1: 1}, {1: 1, 2: 1}, 2)
    last = delivered.history()[-1]
    assert (last.why, last.from_version, last.to_version) == ("replayed (0, 1]", 2, 2)


def test_a_retry_of_a_replay_delivers_nothing_again(delivered: World) -> None:
    again(delivered, "one")
    assert again(delivered, "one").delivered_before
    assert delivered.holds(1) == {1: 1}


def test_a_replay_that_died_after_its_write_is_finished_by_its_retry(delivered: World) -> None:
    def run_and_die(spec):  # type: ignore[no-untyped-def]
        delivered.run(spec)
        raise WorkerDied

    with pytest.raises(WorkerDied):
        replay(
            Runtime(delivered.store, run=run_and_die, paths=delivered.paths),
            find_run(delivered.store, "s", "one"),
            key=key_of("again"),
            writes=[PlannedWrite(WriteAs.APPEND, delivered.targets[1].uri, source="s")],
            owner="one that dies",
        )
    assert not again(delivered, "one").delivered_before
    assert delivered.holds(1) == {1: 1}


def test_replays_and_the_stream_go_on_beside_each_other_in_one_table(delivered: World) -> None:
    delivered.source.append()
    open_window = delivered.open("three", delivered.writes(1))
    again(delivered, "two", "second")
    again(delivered, "one", "first")
    delivered.finish(open_window)
    assert Counter(delivered.holds(1)) == Counter({1: 1, 2: 1, 3: 1})
    assert delivered.offset() == 3


def test_a_table_that_has_the_window_is_refused(delivered: World) -> None:
    with pytest.raises(InvalidArgument, match="it has this window"):
        again(delivered, "one", target=0)
    assert delivered.holds(0) == {1: 1, 2: 1}


def test_a_run_is_found_by_its_id_or_its_whole_key(delivered: World) -> None:
    by_id = find_run(delivered.store, "s", "one")
    assert find_run(delivered.store, "S", str(key_of("one"))) == by_id
    with pytest.raises(TransactionNotFound, match="three"):
        find_run(delivered.store, "s", "three")


def test_a_replay_is_no_run_that_could_be_replayed(delivered: World) -> None:
    again(delivered, "one")
    with pytest.raises(TransactionNotFound):
        find_run(delivered.store, "s", "again")


def die_of(world: World, error: TidemarkError) -> Runtime:
    """A job that reports this error and writes nothing."""
    return Runtime(world.store, run=lambda spec: JobResult(error=error.to_record()), paths=world.paths)


LOST = "cannot be replayed.*oad the target from the"
ANEW = "new run of its DAG.*lake.replay"


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (StreamStale(stream="s", version=0, table="t", reason="gone"), LOST),
        (VersionVacuumed(table="t", start=0, end=1, count=1, first="f"), LOST),
        (LogIncomplete(path="p", version=1, start=0), LOST),
        (SourceRecreated(stream="s", table="t", path="p", found="a", expected="b"), LOST),
        (TrackingInterrupted(table="t", stream="s", problem="it was off"), LOST),
        (ViewChanged(view="v", stream="s"), LOST),
        (TargetRewound(target="t", app_id="a", txn_version=1), ANEW),
        (SerialReused(target="t", app_id="a", txn_version=1, found=2), ANEW),
        (SplitUnreadable(table="t", version=1, count=1, first="f"), ANEW),
        (JobDeadlineExceeded(key="d/r/t", deadline="now"), "longer, raise job_deadline_hours"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, TidemarkError) else "",
)
def test_a_replay_that_fails_names_no_step_of_a_consumption(delivered: World, error: TidemarkError, step: str) -> None:
    with pytest.raises(type(error), match=step) as failed:
        again(delivered, "one", runtime=die_of(delivered, error))
    for other in ("ebase", "e-base", "ecreate the stream", "dvance", "streams redo", "max_commits"):
        assert other not in str(failed.value)
    assert str(error) == str(type(error)(**error.facts)) != str(failed.value)
    assert isinstance(failed.value, PastWindowLost) == isinstance(error, StreamStale)


def test_a_replay_whose_target_was_recreated_is_delivered_by_a_new_run(delivered: World) -> None:
    with pytest.raises(WorkerDied):
        again(delivered, "one", runtime=Runtime(delivered.store, run=die, paths=delivered.paths))
    delivered.targets[1].recreate()
    with pytest.raises(TargetChanged, match=ANEW):
        again(delivered, "one")
    delivered.clock.go(LONG)
    assert not again(delivered, "one", "another run").delivered_before
    assert delivered.holds(1) == {1: 1}


def die(spec: object) -> JobResult:
    raise WorkerDied
