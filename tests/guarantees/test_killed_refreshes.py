"""A refresh is in the kept table once, whatever is killed, repeated, done at once, or done to its bases."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.control.kept_objects import drifted
from tests.played_yarn import played_yarn
from tests.tiers import some
from tidemark.errors import (
    DriverDied,
    JobFailed,
    KeptViewOutdated,
    KeptViewSuspended,
    RefreshesFailed,
    StreamLocked,
    StreamOfAView,
    TargetChanged,
)
from tidemark.failpoints import KILL_AT
from tidemark.materialized.model.definitions import KeptKind, RefreshMode, TargetLag
from tidemark.materialized.model.refreshes import RefreshState
from tidemark.materialized.store.schema import kept_views
from tidemark.materialized.worker.refresh import refresh_level, refresh_view, transaction_keys
from tidemark.materialized.worker.views import suspend_view, view_history
from tidemark.materialized.worker.waves import plan_due
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import RefreshHow
from tidemark.streams.worker.clusters import DriverGoesOn
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.left_drivers import end_left
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.streams import drop_stream, list_streams

from .drivers import WorkerDied
from .test_left_drivers_are_waited_for import Cluster
from .view_world import ViewWorld
from .world import LONG, key_of

WORKER_POINTS = ["begin.before", "begin.stored", "submit.stored", "commit.before", "commit.stored"]


STORES = some(["sqlite", "postgresql"], now=["postgresql"], reason="the other store")
BOTH = pytest.mark.parametrize("world", STORES, indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ViewWorld]:
    """Tables of its own, and a store in SQLite, or in the database that the test names."""
    made = ViewWorld(tmp_path, request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_store"))
    yield made
    assert drifted(made.store) == []
    made.store.close()


def all_of(last: int, base: str = "0") -> dict[tuple[str, int], int]:
    return {(base, version): 1 for version in range(1, last + 1)}


def killed(world: ViewWorld, point: str) -> int:
    """Refresh in a process group of its own that is killed at `point`; returns the signal."""
    child = os.fork()
    if child == 0:
        os.setpgrp()
        os.environ[KILL_AT] = point
        try:
            world.refresh("v", "two")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    for table in (*world.by_uri.values(), *world.kept.values()):
        table.reload()
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@BOTH
@pytest.mark.parametrize("point", WORKER_POINTS)
def test_a_killed_refresh_is_finished_once_by_its_retry(world: ViewWorld, point: str) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    world.source.append()
    assert killed(world, point) == signal.SIGKILL
    assert world.rows("v") in (all_of(1), all_of(2))  # a reader sees a state that the query had
    world.source.append()  # of the next refresh: the wave was written ahead
    (done,) = world.refresh("v", "two")
    assert (done.state, done.how) == (RefreshState.DONE, RefreshHow.CHANGES)
    assert world.rows("v") == all_of(2)
    world.refresh("v", "three")
    assert world.rows("v") == all_of(3)
    assert [one.state for one in (world.last("v"),)] == [RefreshState.DONE]


def test_a_first_refresh_that_was_killed_shows_the_point_that_its_wave_had(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    assert killed(world, "submit.stored") == signal.SIGKILL
    world.source.append()
    world.refresh("v", "two")
    assert world.rows("v") == all_of(1)


def test_a_repeated_refresh_changes_nothing(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    first = world.refresh("v", "one")
    head, jobs = world.kept["v"].head(), len(world.drivers)
    world.source.append()
    assert world.refresh("v", "one") == first
    assert (world.kept["v"].head(), len(world.drivers)) == (head, jobs)


def test_a_view_whose_bases_stand_still_starts_no_job_and_is_fresh(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    world.source.optimize()
    world.clock.go(timedelta(minutes=5))
    jobs = len(world.drivers)
    (done,) = world.refresh("v", "two")
    assert (done.state, len(world.drivers)) == (RefreshState.UNCHANGED, jobs)
    assert world.stored("v").fresh_at == world.clock.now


@BOTH
def test_two_refreshes_at_once_are_one_after_the_other(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    world.source.append()
    refused: list[StreamLocked] = []

    def meanwhile(spec: JobSpec) -> None:
        world.before_job = None
        with pytest.raises(StreamLocked) as locked:
            world.refresh("v", "three")
        refused.append(locked.value)

    world.before_job = meanwhile
    world.refresh("v", "two")
    assert len(refused) == 1
    assert world.rows("v") == all_of(2)
    assert world.stored("v").problem is None
    world.source.append()
    world.refresh("v", "three")  # the retry, with the bases of its own wave
    assert world.rows("v") == all_of(2)
    world.refresh("v", "four")
    assert world.rows("v") == all_of(3)


def test_a_refresh_that_was_written_and_left_is_finished_by_the_next_run(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    world.source.append()

    def die(spec: JobSpec) -> JobResult:
        world.driver(spec).run()  # it has written, and nobody hears of it
        raise WorkerDied

    with pytest.raises(WorkerDied):
        refresh_view(world.with_job(die), "v", key=key_of("two"))
    assert world.rows("v") == all_of(1)
    world.source.append()
    (done,) = world.refresh("v", "three")
    assert done.how is RefreshHow.CHANGES
    assert world.rows("v") == all_of(3)


@pytest.mark.parametrize("harm", ["recreated", "restored", "cleaned up"])
def test_a_window_that_is_lost_means_all_rows_and_the_history_says_so(world: ViewWorld, harm: str) -> None:
    world.view("v", "source")
    world.source.append()
    world.source.append()
    world.refresh("v", "one")
    if harm == "recreated":
        world.source.recreate()
        world.source.append()
    elif harm == "restored":
        world.source.restore(1)
    else:
        world.source.append()
        world.source.append()
        world.source.checkpoint()
        world.source.clean_up(before=world.source.head())
    (done,) = world.refresh("v", "two")
    assert (done.state, done.how) == (RefreshState.DONE, RefreshHow.WHOLE)
    words = {"recreated": "SourceRecreated", "restored": "was restored", "cleaned up": "StreamStale"}
    assert words[harm] in str(world.last("v").why)
    assert world.rows("v") == all_of(world.source.head())
    world.source.append()
    (after,) = world.refresh("v", "three")
    assert after.how is RefreshHow.CHANGES
    assert world.rows("v") == all_of(world.source.head())


def test_a_column_that_the_query_names_suspends_the_view_and_others_do_not(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    kept = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    more = {"name": "more", "type": "string", "nullable": True, "metadata": {}}
    world.sources["source"].with_columns(kept, more)  # type: ignore[attr-defined]
    world.source.append()
    assert world.refresh("v", "two")[0].how is RefreshHow.CHANGES
    world.sources["source"].with_columns({**kept, "type": "string"}, more)  # type: ignore[attr-defined]
    with pytest.raises(KeptViewSuspended, match="its column id has the type string, and had long"):
        world.refresh("v", "three")
    assert "its column id" in str(world.stored("v").suspended)
    world.sources["source"].with_columns(more)  # type: ignore[attr-defined]
    assert world.refresh_due("four", if_changed=True) == ()


def test_another_writer_of_the_kept_table_means_all_rows(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    world.kept["v"].append()
    world.source.append()
    (done,) = world.refresh("v", "two")
    assert done.how is RefreshHow.WHOLE
    assert "another writer" in str(done.why)
    assert world.rows("v") == all_of(2)


@pytest.mark.parametrize("mode", [RefreshMode.INCREMENTAL, RefreshMode.FULL])
def test_another_writers_rows_leave_also_while_no_base_changes(world: ViewWorld, mode: RefreshMode) -> None:
    world.view("v", "source", mode=mode)
    world.source.append()
    world.refresh("v", "one")
    assert world.refresh("v", "two")[0].state is RefreshState.UNCHANGED
    world.kept["v"].append()
    (done,) = world.refresh("v", "three")
    assert (done.how, done.why) == (RefreshHow.WHOLE, "another writer has changed the kept table")
    assert world.rows("v") == all_of(1)
    assert world.refresh("v", "four")[0].state is RefreshState.UNCHANGED


def test_all_rows_are_written_if_a_refresh_asks_for_them(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()
    world.refresh("v", "one")
    (done,) = refresh_view(world.runtime, "v", key=key_of("two"), mode=RefreshMode.FULL)
    assert (done.state, done.how, done.why) == (RefreshState.DONE, RefreshHow.WHOLE, "REFRESH_MODE = FULL")
    assert world.refresh("v", "three")[0].state is RefreshState.UNCHANGED
    assert world.rows("v") == all_of(1)


@BOTH
def test_views_that_read_each_other_show_one_point_in_time(world: ViewWorld) -> None:
    world.view("first", "source")
    world.view("second", "first", "source")
    world.view("third", "second", "other")
    world.source.append()
    world.sources["other"].append()
    jobs: list[int] = []

    def more_comes(spec: JobSpec) -> None:
        jobs.append(len(jobs))
        world.source.append()  # while the wave is under way
        world.sources["other"].append()

    world.before_job = more_comes
    done = world.refresh("third", "one")
    assert [one.view for one in done] == ["first", "second", "third"]
    assert len({one.as_of for one in done}) == 1
    assert jobs == [0, 1, 2]  # a job for each level
    assert world.rows("first") == all_of(1)
    kept = world.last("first").kept_version
    assert world.rows("second") == {**all_of(kept or 0), ("1", 1): 1}
    assert world.last("third").versions[world.sources["other"].uri] == 1


def test_views_of_a_level_share_a_job_and_one_that_fails_stops_its_readers_alone(world: ViewWorld) -> None:
    world.view("a", "source")
    world.view("b", "source")
    world.view("of_a", "a", lag=TargetLag(timedelta(minutes=1)))
    world.view("of_b", "b", lag=TargetLag(timedelta(minutes=1)))
    world.source.append()
    world.refresh_due("one")
    assert len(world.drivers) == 2
    world.source.append()
    world.kept["b"].replace()  # somebody has put another table there
    world.clock.go(timedelta(minutes=2))
    with pytest.raises(RefreshesFailed, match="2 of 4 refreshes failed") as failed:
        world.refresh_due("two")
    assert "TargetChanged" in str(failed.value)
    assert world.rows("a") == all_of(2)
    assert world.last("of_a").state is RefreshState.DONE
    assert "was not refreshed in the same wave" in str(world.stored("of_b").problem)
    with pytest.raises(TargetChanged):
        world.refresh("b", "three")


@pytest.mark.parametrize("dies", [False, True])
def test_a_refresh_that_waits_elsewhere_leaves_a_job_of_each_level_and_fails_with_its_driver(
    world: ViewWorld, dies: bool
) -> None:
    world.view("first", "source")
    world.view("second", "first")
    world.source.append()
    awaited: str | None = None
    with played_yarn() as yarn:
        cluster = Cluster(world, yarn)
        for _ in range(1 if dies else 2):
            with pytest.raises(DriverGoesOn) as left:
                refresh_view(cluster.seen_by_a_worker(leaves=True, awaited=awaited), "second", key=key_of("one"))
            world.clock.go(timedelta(minutes=3))
            awaited = left.value.job_id
            if dies:
                yarn.end(left.value.application, "FAILED", "FAILED", "Exit status: 137")
            else:
                cluster.goes_on(left.value.application)
        resumed = cluster.seen_by_a_worker(leaves=True, awaited=awaited)
        if dies:
            with pytest.raises(RefreshesFailed, match=DriverDied.__name__):
                refresh_view(resumed, "second", key=key_of("one"))
            assert (len(cluster.drivers), "137" in str(world.stored("first").problem)) == (1, True)
        else:
            done = refresh_view(resumed, "second", key=key_of("one"))
            assert [(one.view, one.state, one.seconds >= 180) for one in done] == [
                (name, RefreshState.DONE, True) for name in ("first", "second")
            ]
            assert (len(cluster.drivers), world.rows("first")) == (2, all_of(1))


def test_a_refresh_whose_wait_elsewhere_failed_has_the_keys_of_its_drivers(world: ViewWorld) -> None:
    world.view("first", "source")
    world.source.append()
    with played_yarn() as yarn:
        cluster = Cluster(world, yarn)
        with pytest.raises(DriverGoesOn) as left:
            refresh_view(cluster.seen_by_a_worker(leaves=True), "first", key=key_of("one"))
        for key in transaction_keys(world.store, str(key_of("one")), key_of("one")):
            end_left(cluster.seen_by_a_worker(), key)
        assert yarn.apps[left.value.application]["state"] == "KILLED"


def test_a_planned_wave_is_refreshed_by_level_by_other_tasks(world: ViewWorld) -> None:
    world.view("first", "source")
    world.view("second", "first", lag=TargetLag(timedelta(minutes=1)))
    world.source.append()
    wave = plan_due(world.store, open_table, "plan")
    assert [(level.number, level.views) for level in wave.levels] == [(0, ("first",)), (1, ("second",))]
    world.source.append()
    assert plan_due(world.store, open_table, "plan") == wave  # a retry of the task that plans
    for level in wave.levels:
        refresh_level(world.runtime, wave.run, level.number, key=key_of(f"level {level.number}"))
    assert world.rows("first") == all_of(1)
    assert world.stored("second").fresh_at == wave.as_of


def test_a_level_refreshes_those_before_it_that_no_task_has_begun(world: ViewWorld) -> None:
    world.view("first", "source")
    world.view("second", "first", lag=TargetLag(timedelta(minutes=1)))
    world.source.append()
    wave = plan_due(world.store, open_table, "plan")
    (second,) = refresh_level(world.runtime, wave.run, 1, key=key_of("l1"))
    (first,) = refresh_level(world.runtime, wave.run, 0, key=key_of("l0"))
    assert [(one.view, one.state, one.as_of) for one in (first, second)] == [
        ("first", RefreshState.DONE, wave.as_of),
        ("second", RefreshState.DONE, wave.as_of),
    ]
    assert world.rows("first") == all_of(1)


def test_a_level_whose_bases_failed_fails_and_succeeds_after_them(world: ViewWorld) -> None:
    world.view("first", "source")
    world.view("second", "first", lag=TargetLag(timedelta(minutes=1)))
    world.source.append()
    wave = plan_due(world.store, open_table, "plan")

    def fail(spec: JobSpec) -> JobResult:
        raise JobFailed(error="ArithmeticException", message="divided by zero")

    with pytest.raises(JobFailed):
        refresh_level(world.with_job(fail), wave.run, 0, key=key_of("l0"))
    with pytest.raises(KeptViewOutdated, match="was not refreshed in the same wave"):
        refresh_level(world.runtime, wave.run, 1, key=key_of("l1"))
    refresh_level(world.runtime, wave.run, 0, key=key_of("l0"))
    (done,) = refresh_level(world.runtime, wave.run, 1, key=key_of("l1"))
    assert done.state is RefreshState.DONE


def test_a_suspended_view_stops_its_readers(world: ViewWorld) -> None:
    world.view("first", "source")
    world.view("second", "first", lag=TargetLag(timedelta(minutes=1)))
    suspend_view(world.store, "first", by="ann")
    assert world.refresh_due("one") == ()
    with pytest.raises(KeptViewSuspended):
        world.refresh("second", "two")


def test_the_stream_of_a_view_is_its_own(world: ViewWorld) -> None:
    view = world.view("v", "source")
    assert list_streams(world.store) == ()
    with pytest.raises(StreamOfAView):
        drop_stream(world.store, view.stream, "ann")
    with pytest.raises(StreamOfAView):
        consume(world.runtime, key=key_of("x"), streams=[view.stream], writes=world.writes(0), owner="ann")


def test_auto_takes_the_cheaper_way_and_keeps_both_estimates(world: ViewWorld) -> None:
    world.view("v", "source", mode=RefreshMode.AUTO, kind=KeptKind.MATERIALIZED_VIEW)
    world.source.append()
    world.refresh("v", "one")
    world.source.append()
    (done,) = world.refresh("v", "two")
    last = world.last("v")
    assert done.how is RefreshHow.WHOLE  # two files of a byte: to read all costs nothing
    assert last.incremental_bytes is not None
    assert last.full_bytes is not None
    assert last.full_bytes < last.incremental_bytes
    assert world.rows("v") == all_of(2)


def test_the_seconds_of_earlier_refreshes_decide(world: ViewWorld) -> None:
    world.view("v", "source")
    world.seconds = {RefreshHow.WHOLE: 100.0, RefreshHow.CHANGES: 0.5}
    modes = (*[RefreshMode.INCREMENTAL] * 3, RefreshMode.FULL, RefreshMode.INCREMENTAL)
    for number, mode in enumerate(modes):
        world.store.write(lambda c, mode=mode: c.execute(kept_views.update().values(mode=mode.value)))
        world.source.append()
        world.refresh("v", str(number))
    reasons = [(one.how, one.write_seconds, one.why or "") for one in view_history(world.store, "v")]
    changes, whole = (RefreshHow.CHANGES, 0.5), (RefreshHow.WHOLE, 100.0)
    assert [reason[:2] for reason in reasons] == [changes, whole, changes, changes, whole]
    assert "by earlier refreshes, changes take 0.5 s, all would" in reasons[0][2]
    assert not any("by earlier refreshes" in reason[2] for reason in reasons[1:])


def test_a_deadline_that_has_passed_lets_the_next_run_go_on(world: ViewWorld) -> None:
    world.view("v", "source")
    world.source.append()

    def die(spec: JobSpec) -> JobResult:
        world.driver(spec)
        raise WorkerDied

    with pytest.raises(WorkerDied):
        refresh_view(world.with_job(die), "v", key=key_of("one"))
    world.clock.go(LONG)
    world.refresh("v", "two")
    assert world.rows("v") == all_of(1)
