"""V6, I4: a window ends where its transaction began, never before its start, and its bounds are kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidemark.errors import InvalidArgument, LakeError, StorageRefused, StorageUnreachable
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import StreamWindow, TableRef, WindowKind
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.has_data import has_data, has_rows
from tidemark.streams.worker.sources import SourceHead, open_table, window_from
from tidemark.streams.worker.streams import get_stream

from .world import World, key_of


def test_a_head_that_was_read_too_early_gives_an_empty_window_v6(world: World) -> None:
    world.source.append()
    world.source.append()
    world.consume("one")
    window = window_from(get_stream(world.store, "s"), [1], world.clock.now)
    assert (window.start, window.end, window.empty) == (2, 2, True)


def test_a_consumer_that_looked_before_another_committed_gets_nothing_v6(world: World) -> None:
    world.source.append()
    raced = []

    def slow(table):  # type: ignore[no-untyped-def]
        log = open_table(table)
        head = log.head()
        if not raced:
            raced.append(head)
            world.source.append()
            world.consume("two")
        log.head = lambda: head
        return log

    begun = world.begin("one", tables=slow)
    assert [(w.from_version, w.to_version) for w in begun.result.windows] == [(2, 2)]
    assert (world.offset(), world.holds(0)) == (2, {1: 1, 2: 1})


def test_an_empty_window_starts_no_job_and_renews_the_anchor(world: World) -> None:
    world.clock.go(timedelta(hours=1))
    world.delivered("one")
    assert get_stream(world.store, "s").anchor == world.clock.now
    assert world.drivers == []


def test_commits_that_change_no_data_are_passed_without_a_job_r89(world: World) -> None:
    world.source.optimize()
    world.source.configure(delta__anything="1")
    assert not has_data(world.store, "s")
    assert (world.delivered("one").fresh, world.offset(), world.drivers) == (True, 2, [])


def test_has_data_sees_every_change(world: World) -> None:
    assert not has_data(world.store, "s")
    world.source.append()
    world.source.optimize()
    assert has_data(world.store, "s")


def test_max_commits_bounds_the_window(world: World) -> None:
    for _ in range(5):
        world.source.append()
    ends = []
    for run in ("one", "two", "three"):
        transaction = world.open(run, bound=Bound(max_commits=2))
        ends.append(transaction.windows[0].end)
        world.finish(transaction)
    assert ends == [2, 4, 5]
    assert world.holds(0) == dict.fromkeys(range(1, 6), 1)
    with pytest.raises(InvalidArgument):
        world.begin("four", bound=Bound(max_commits=0))


def test_initial_rows_come_once_and_the_offset_stays_r10(world: World) -> None:
    world.stream("t", initial_rows=True)
    world.source.append()
    assert has_data(world.store, "t")
    transaction = world.open("one", streams=("t",))
    (window,) = transaction.windows
    assert (window.kind, window.start, window.end) == (WindowKind.INITIAL_ROWS, 0, 0)
    result = world.finish(transaction)
    assert (result.windows[0].initial_rows, world.offset("t")) == (True, 0)
    following = world.open("two", streams=("t",))
    assert (following.windows[0].kind, following.windows[0].end) == (WindowKind.CHANGES, 1)
    world.finish(following)
    assert world.holds(0, "t") == {1: 1}


def test_every_move_is_kept_with_who_when_why_and_run(world: World) -> None:
    world.source.append()
    world.clock.go(timedelta(minutes=5))
    world.consume("one")
    made, moved = world.history()
    assert (made.why, made.to_version) == ("created", 0)
    assert (moved.from_version, moved.to_version, moved.moved_at) == (0, 1, world.clock.now)
    assert (moved.who, moved.run) == ("worker of one", str(key_of("one")))


def test_lag_is_measured_from_the_last_version_delivered(world: World) -> None:
    world.source.append()
    for version in (0, 1):
        world.source.set_time(version, world.clock.now.timestamp() + version - 1)
    world.clock.go(timedelta(seconds=90))
    assert world.consume("one").result.windows[0].lag_seconds == pytest.approx(90)


@pytest.mark.parametrize("kind", [StorageUnreachable, StorageRefused])
def test_a_written_window_is_committed_while_the_storage_of_its_source_does_not_answer(
    world: World, kind: type[LakeError]
) -> None:
    world.source.append()
    transaction = world.open("one")
    world.submit(transaction)

    def silent(table: TableRef | str) -> DeltaLog:
        raise kind(place="s3://lake", problem="it does not answer")

    (window,) = commit(world.store, transaction.key, tables=silent).windows
    assert (window.to_version, window.lag_seconds, world.offset()) == (1, None, 1)


def test_a_look_at_another_window_does_not_call_it_silent(world: World) -> None:
    world.source.append()
    stream = get_stream(world.store, "s")
    head = SourceHead(stream.uid, offset=5, head=9, ends=(9,), quiet_until=9, quiet_time=None)
    assert not head.silent(window_from(stream, [9], world.clock.now))


def test_a_window_ends_before_rows_change_under_ids_that_they_got_in_it(world: World) -> None:
    world.source.append()
    world.source.rewrite("OPTIMIZE")  # keeps ids
    world.source.rewrite()
    world.source.append()
    world.source.truncate(at=0)
    offsets = [(world.consume(run), world.offset())[1] for run in ("one", "two")]
    assert (offsets, has_data(world.store, "s")) == ([4, 5], False)


def test_a_sensor_that_reads_rows_is_given_the_window_that_a_consumption_takes(world: World) -> None:
    world.source.append()
    world.source.rewrite()
    world.source.truncate(at=0)
    read: list[StreamWindow] = []
    assert has_rows(world.store, "s", holds_rows=lambda window: read.append(window) is None)
    assert (tuple(read), read[0].end) == (world.open("one").windows, 2)


def test_an_exact_look_without_rows_does_not_say_no_for_what_comes_behind_the_window(world: World) -> None:
    world.source.append()
    world.source.rewrite()
    world.source.truncate(at=0)
    assert has_rows(world.store, "s", holds_rows=lambda _: False)
    assert not has_rows(world.store, "s", holds_rows=lambda _: False, pass_as="run")
    assert (world.offset(), has_rows(world.store, "s", holds_rows=lambda _: True)) == (2, True)


def test_a_rewrite_that_keeps_ids_ends_no_window(world: World) -> None:
    world.source.append()
    world.source.rewrite("OPTIMIZE")
    world.source.truncate(at=0)
    world.consume("one")
    assert world.offset() == 3
