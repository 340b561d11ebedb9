"""What the control store promises of change streams and their captures, whichever database it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.control.change_stream_model import START, ChangeStreamWorld, CountingTable, captured, segment
from tidemark.change_streams.model.change_streams import (
    CLOCKS_DIFFER,
    MICROSECOND,
    CaptureBatch,
    CaptureResult,
    ChangeStreamOptions,
    ValueCaptureType,
    WatchedTable,
)
from tidemark.change_streams.model.jobs import CAPTURE_CHANGES
from tidemark.change_streams.store import partitions
from tidemark.change_streams.worker.capture import capture, close_batch
from tidemark.change_streams.worker.definitions import (
    create_change_stream,
    drop_change_stream,
    get_change_stream,
    list_change_streams,
    set_options,
    suspend,
    watch,
)
from tidemark.change_streams.worker.sinks import request_sink
from tidemark.errors import (
    CaptureChanged,
    ChangeStreamExists,
    ChangeStreamNotFound,
    ChangeStreamRefused,
    InvalidArgument,
    TidemarkError,
    WatchedTableChanged,
)
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.planning.bounds import Bound
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime

MINUTE = timedelta(minutes=1)
SKEW = timedelta(seconds=10)


# --- definitions


def test_a_change_stream_comes_back_as_it_was_defined(world: ChangeStreamWorld) -> None:
    options = ChangeStreamOptions(
        ValueCaptureType.NEW_ROW, timedelta(days=7, microseconds=3), given=("retention_period",)
    )
    made = create_change_stream(
        world.store,
        name="Ünï t",
        tables=[world.table.watched(columns=("x",))],
        everything=False,
        options=options,
        log_path=lambda uid: f"file:///logs/{uid}",
        initial_partitions=3,
    )
    assert get_change_stream(world.store, "üNÏ T") == made
    assert (made.log_path, made.published_until, made.next_batch) == (f"file:///logs/{made.uid}", START, 0)
    assert [stream.name for stream in list_change_streams(world.store)] == ["s", "Ünï t"]
    found = world.store.read(lambda c: partitions.active(c, made.uid))
    assert [(one.lo, one.hi, one.start, one.end) for one in found] == [
        (0, 21845, START, None),
        (21845, 43690, START, None),
        (43690, 65536, START, None),
    ]


def test_names_are_taken_whatever_their_case_and_free_again_after_a_drop(world: ChangeStreamWorld) -> None:
    def create(**how: bool) -> object:
        return create_change_stream(
            world.store, name="S", tables=[], everything=False, options=ChangeStreamOptions(), log_path="l", **how
        )

    first = world.stream
    with pytest.raises(ChangeStreamExists, match="Duplicate name in schema"):
        create()
    assert create(if_not_exists=True) == first
    assert drop_change_stream(world.store, "s") == first
    with pytest.raises(ChangeStreamNotFound, match="These exist: none"):
        drop_change_stream(world.store, "s")
    create()
    assert world.stream.uid != first.uid


@pytest.mark.parametrize("count", [0, -1, 1025])
def test_partitions_are_as_many_as_there_can_be(world: ChangeStreamWorld, count: int) -> None:
    with pytest.raises(InvalidArgument, match="initial_partitions"):
        create_change_stream(
            world.store,
            name="t",
            tables=[],
            everything=False,
            options=ChangeStreamOptions(),
            log_path="l",
            initial_partitions=count,
        )
    assert [stream.name for stream in list_change_streams(world.store)] == ["s"]


def test_a_fourth_change_stream_on_a_column_is_refused(world: ChangeStreamWorld) -> None:
    def create(name: str, columns: tuple[str, ...] | None) -> None:
        create_change_stream(
            world.store,
            name=name,
            tables=[world.table.watched(columns=columns)],
            everything=False,
            options=ChangeStreamOptions(),
            log_path="l",
        )

    create("two", None)
    create("x", ("x",))
    for columns in (("x",), None):
        with pytest.raises(ChangeStreamRefused, match=r"x of table db\.t is watched by 3"):
            create("more", columns)
    create("keys", ())
    create("y", ("y",))
    with pytest.raises(ChangeStreamRefused, match="more than once"):
        watch(world.store, "y", [world.table.watched(), world.table.watched(columns=())], everything=False)
    assert get_change_stream(world.store, "y").tables == (world.table.watched(columns=("y",)),)


def test_a_table_that_stays_watched_goes_on_where_it_was_captured(world: ChangeStreamWorld) -> None:
    world.batch()
    altered = watch(world.store, "s", [world.table.watched(captured=77, columns=("x",))], everything=True)
    assert altered == world.stream
    assert (altered.everything, altered.tables[0].captured, altered.tables[0].columns) == (True, 1, ("x",))
    assert suspend(world.store, "s").tables == ()
    assert watch(world.store, "s", [world.table.watched(captured=9)], everything=False).tables[0].captured == 9


def test_options_hold_from_the_next_batch_on(world: ChangeStreamWorld) -> None:
    world.table.commit(world.clock.go())
    opened = world.opened()
    options = ChangeStreamOptions(retention=timedelta(hours=30), exclude_insert=True, given=("exclude_insert",))
    assert set_options(world.store, "s", options).options == options
    assert world.opened() == opened
    world.close(opened)
    world.table.commit(world.clock.go())
    assert world.opened().stream.options == options


# --- batches


def test_a_batch_is_written_ahead_and_handed_back_unchanged(world: ChangeStreamWorld) -> None:
    world.table.commit(world.clock.go())
    now = world.clock.now
    first = world.opened(split_rows=7, merge_rows=3)
    (taken,) = first.ranges
    assert (taken.watched, taken.start, taken.end) == (world.table.watched(), 0, 1)
    assert (first.number, first.floor, first.safe_until, first.opened_at) == (0, START, now - SKEW, now)
    assert (first.split_rows, first.merge_rows, first.active) == (7, 3, world.active())
    world.table.commit(world.clock.go())
    assert world.opened(split_rows=8, bounds=Bound(max_commits=1)) == first


def test_captures_at_once_open_one_batch(world: ChangeStreamWorld) -> None:
    world.table.commit(world.clock.go())
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(world.opened())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(one == found[0] for one in found)


def test_a_batch_is_closed_once_and_a_second_time_only_with_the_same_result(world: ChangeStreamWorld) -> None:
    left, _ = world.active()
    world.table.commit(world.clock.go())
    batch = world.opened()
    result = captured(batch, [segment(left.token, world.clock.now, 3)], closed=[left], opened=[(0, 9), (9, left.hi)])
    closed = close_batch(world.store, batch, result)
    assert (closed.next_batch, closed.published_until) == (1, result.published_until)
    assert closed.tables == (world.table.watched(captured=1),)
    assert [(one.lo, one.hi, one.quiet) for one in world.active()] == [(0, 9, 0), (9, left.hi, 0), (left.hi, 65536, 1)]
    assert close_batch(world.store, batch, replace(result, found=True)) == closed == world.stream
    world.table.commit(world.clock.go())
    world.opened()
    assert close_batch(world.store, batch, result) == world.stream
    other = replace(result, rows=4)
    with pytest.raises(CaptureChanged, match="another result"):
        close_batch(world.store, batch, other)


Spoil = Callable[[CaptureResult], CaptureResult]
SPOILED: dict[str, Spoil] = {
    "of another batch": lambda result: replace(result, number=result.number + 1),
    "ends at its floor": lambda result: replace(result, published_until=START),
    "leaves keys out": lambda result: replace(result, opened=result.opened[:1]),
    "has keys twice": lambda result: replace(result, closed=()),
    "changes elsewhere": lambda result: replace(result, published_until=result.published_until + MICROSECOND),
    "has load of nobody": lambda result: replace(result, load=(segment("nobody", START, 1),)),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_result_that_cannot_be_is_refused_and_the_batch_stays_open(world: ChangeStreamWorld, name: str) -> None:
    left, _ = world.active()
    world.table.commit(world.clock.go())
    batch, before = world.opened(), world.stream
    sound = captured(batch, [], closed=[left], opened=[(0, 9), (9, left.hi)])
    with pytest.raises(CaptureChanged):
        close_batch(world.store, batch, SPOILED[name](sound))
    assert (world.stream, world.opened(), len(world.active())) == (before, batch, 2)
    close_batch(world.store, batch, sound)


def test_a_batch_of_a_dropped_stream_is_closed_nowhere(world: ChangeStreamWorld) -> None:
    world.table.commit(world.clock.go())
    batch = world.opened()
    drop_change_stream(world.store, "s")
    with pytest.raises(ChangeStreamNotFound):
        close_batch(world.store, batch, captured(batch))


def test_nothing_new_moves_the_promise_without_a_batch(world: ChangeStreamWorld) -> None:
    before = world.clock.go()
    assert world.opened() is None
    assert world.stream.published_until == before - SKEW
    assert world.opened() is None
    assert world.stream.published_until == before - SKEW + MICROSECOND
    world.clock.now = START  # a clock that was set back takes no promise back
    assert world.opened() is None
    assert world.stream.published_until > before - SKEW
    suspend(world.store, "s")
    world.clock.now = before + MINUTE
    assert world.opened() is None
    assert (world.stream.published_until, world.stream.next_batch) == (before + MINUTE - SKEW, 0)


def test_max_commits_counts_the_versions_of_each_table(world: ChangeStreamWorld) -> None:
    other, idle = world.new_table("u"), world.new_table("v")
    watch(world.store, "s", [world.table.watched(), other.watched(), idle.watched()], everything=False)
    for _ in range(3):
        world.table.commit(world.clock.go())
    at = world.clock.now
    other.commit(world.clock.go())
    world.clock.go()
    batch = world.opened(bounds=Bound(max_commits=2))
    assert [(one.watched.table.name, one.start, one.end) for one in batch.ranges] == [("db.t", 0, 2)]
    assert batch.safe_until == at  # a commit that waits is not promised away
    world.close(batch)
    assert [one.captured for one in world.stream.tables] == [2, 0, 0]
    assert [(one.start, one.end) for one in world.opened(bounds=Bound(max_commits=2)).ranges] == [(2, 3), (0, 1)]


def test_max_commits_takes_no_commit_later_than_one_that_waits_in_another_table(world: ChangeStreamWorld) -> None:
    other = world.new_table("u")
    watch(world.store, "s", [world.table.watched(), other.watched()], everything=False)
    for number in range(1, 6):
        world.table.commit(START + number * MINUTE)
    other.commit(START + 2 * MINUTE)
    other.commit(START + 4 * MINUTE)
    world.clock.go(timedelta(hours=1))
    taken = []
    while (batch := world.opened(bounds=Bound(max_commits=2))) is not None:
        taken.append([(one.watched.table.name, one.end) for one in batch.ranges])
        world.close(batch)
    assert taken == [[("db.t", 2), ("db.u", 1)], [("db.t", 4), ("db.u", 2)], [("db.t", 5)]]


def test_max_commits_takes_a_commit_whose_next_one_has_an_earlier_time(world: ChangeStreamWorld) -> None:
    other = world.new_table("u")
    watch(world.store, "s", [world.table.watched(), other.watched()], everything=False)
    world.table.commit(START + 2 * MINUTE)
    world.table.commit(START - timedelta(days=300))
    other.commit(START + MINUTE)
    world.clock.go(timedelta(hours=1))
    one = Bound(max_commits=1)
    assert world.opened(bounds=replace(one, until=START)) is None
    taken = []
    while (batch := world.opened(bounds=one)) is not None:
        taken.append([(taken.watched.table.name, taken.end) for taken in batch.ranges])
        world.close(batch)
    assert taken == [[("db.u", 1)], [("db.t", 1)], [("db.t", 2)]]


def test_a_bound_by_time_takes_the_commits_of_all_tables_in_their_order(world: ChangeStreamWorld) -> None:
    other = world.new_table("u")
    watch(world.store, "s", [world.table.watched(), other.watched()], everything=False)
    world.table.commit(world.clock.go())
    until = world.clock.now
    other.commit(world.clock.go())
    world.clock.go()
    batch = world.opened(bounds=Bound(until=until))
    assert [(one.watched.table.name, one.end) for one in batch.ranges] == [("db.t", 1)]
    world.close(batch)
    waits = world.stream.published_until
    assert world.opened(bounds=Bound(until=until)) is None
    assert world.stream.published_until == max(waits + MICROSECOND, until + MINUTE)


def test_for_all_takes_up_new_tables_once(world: ChangeStreamWorld) -> None:
    watch(world.store, "s", [world.table.watched()], everything=True)
    new = world.new_table("u")
    found = lambda *_: [world.table.watched(5), new.watched(-1)]  # noqa: E731
    batch = world.opened(new_tables=found)
    assert [(one.watched.table.name, one.start, one.end) for one in batch.ranges] == [("db.u", -1, 0)]
    assert world.close(batch).tables == (world.table.watched(0), new.watched(0))
    assert world.opened(new_tables=found) is None
    watch(world.store, "s", [world.table.watched()], everything=False)
    assert world.opened(new_tables=found) is None
    assert world.stream.tables == (world.table.watched(0),)


def test_for_all_goes_on_without_a_table_that_was_dropped_and_takes_up_one_that_was_made_anew(
    world: ChangeStreamWorld,
) -> None:
    gone, anew = world.new_table("gone"), world.new_table("anew")
    watch(world.store, "s", [world.table.watched(), gone.watched(), anew.watched()], everything=True)
    world.table.commit(world.clock.go())
    gone.remove()
    anew.begin_anew("another id", world.clock.go())
    now = WatchedTable(replace(anew.ref, table_id="another id"), ("id",), None, -1)
    batch = world.opened(new_tables=lambda *_: [now])
    assert [(one.watched.table.name, one.start, one.end) for one in batch.ranges] == [
        ("db.t", 0, 1),
        ("db.anew", -1, 0),
    ]
    assert world.close(batch).tables == (world.table.watched(1), replace(now, captured=0))


@pytest.mark.parametrize("closed", [False, True], ids=["while its batch is open", "after its batch"])
def test_a_table_that_a_capture_of_all_takes_up_while_the_list_is_made_is_captured_once(
    world: ChangeStreamWorld, closed: bool
) -> None:
    seen = watch(world.store, "s", [world.table.watched()], everything=True)
    new = world.new_table("u")
    found = lambda *_: [new.watched(-1)]  # noqa: E731
    batch = world.opened(new_tables=found)
    if closed:
        world.close(batch)
    watch(world.store, "s", seen.tables, everything=True, known=seen.tables)
    if not closed:
        world.close(batch)
    assert world.stream.tables == (world.table.watched(0), new.watched(0))
    assert world.opened(new_tables=found) is None
    watch(world.store, "s", (), everything=True, known=world.stream.tables)
    assert world.stream.tables == ()


def test_a_table_taken_off_while_a_batch_is_open_stays_off(world: ChangeStreamWorld) -> None:
    other = world.new_table("u")
    watch(world.store, "s", [world.table.watched(), other.watched()], everything=False)
    world.table.commit(world.clock.go())
    batch = world.opened()
    watch(world.store, "s", [other.watched()], everything=False)
    assert world.opened() == batch
    assert world.close(batch).tables == (other.watched(),)


def test_records_that_are_left_of_a_table_can_be_asked_for_by_its_name(world: ChangeStreamWorld) -> None:
    other = world.new_table("u")
    world.batch()
    watch(world.store, "s", [other.watched()], everything=False)
    other.commit(world.clock.go())
    world.close(world.opened())
    suspend(world.store, "s")
    for table in (world.table, other):
        asked = request_sink(world.store, "s", write_as="merge", target="t", table=table.name, keys="id")
        assert asked.table_id == table.table_id
    with pytest.raises(InvalidArgument, match="does not watch it"):
        request_sink(world.store, "s", write_as="merge", target="t", table="db.v")


Harm = Callable[[CountingTable, ChangeStreamWorld], None]
HARMED: dict[str, tuple[Harm, str]] = {
    "dropped": (lambda table, _: table.remove(), "it no longer exists"),
    "recreated": (lambda table, world: table.begin_anew("other", world.clock.go()), "another table"),
    "set back": (lambda table, world: table.begin_anew(table.table_id, world.clock.go()), "set back to version 0"),
    "without key": (lambda table, world: table.define(table.table_id, world.clock.go(), ("x",)), "lost id"),
    "without column": (lambda table, world: table.define(table.table_id, world.clock.go(), ("id",)), "lost x"),
    "key rewritten": (
        lambda table, world: table.define(table.table_id, world.clock.go(), ("id", "x"), id="double"),
        "id has become double, and was long",
    ),
    "log cleaned": (lambda table, world: table.lose(2), "lacks version 2"),
}


@pytest.mark.parametrize("how", HARMED)
def test_a_table_that_cannot_be_captured_any_more_is_named(world: ChangeStreamWorld, how: str) -> None:
    watch(world.store, "s", [world.table.watched(columns=("x",))], everything=False)
    world.batch()
    for _ in range(2):
        world.table.commit(world.clock.go())
    before, (harm, said) = world.stream, HARMED[how]
    harm(world.table, world)
    with pytest.raises(WatchedTableChanged, match=said) as caught:
        world.opened()
    assert (caught.value.stream, caught.value.table, caught.value.version) == ("s", "db.t", 2)
    assert world.stream == before
    suspend(world.store, "s")
    assert world.opened() is None


def test_other_columns_and_whole_keys_may_be_widened(world: ChangeStreamWorld) -> None:
    world.table.define(world.table.table_id, world.clock.go(), ("id", "x"), id="decimal(20,2)", x="double")
    assert world.opened().ranges[0].end == 1


def test_what_came_before_a_column_was_lost_is_captured(world: ChangeStreamWorld) -> None:
    world.table.commit(world.clock.go())
    world.table.define(world.table.table_id, world.clock.go(), ("x",))
    assert world.opened(bounds=Bound(max_commits=1)).ranges[0].end == 1


# --- capture by a job


def paths() -> JobPaths:
    return JobPaths("file:///w", "file:///e")


def test_a_capture_is_one_job_and_none_where_nothing_is_new(world: ChangeStreamWorld) -> None:
    specs: list[JobSpec] = []

    def run(spec: JobSpec) -> JobResult:
        specs.append(spec)
        batch = CAPTURE_CHANGES.requested(spec)
        assert batch == world.opened()
        return JobResult(to_plain(captured(batch)))

    def once() -> CaptureResult | None:
        return capture(Runtime(world.store, run=run, paths=paths(), tables=world.tables), "s")

    assert (once(), specs) == (None, [])
    world.table.commit(world.clock.go())
    result = once()
    assert result is not None
    assert (result.number, result.published_until) == (0, world.stream.published_until)
    (spec,) = specs
    assert (spec.kind, spec.entry, spec.store_id) == (
        CAPTURE_CHANGES.name,
        CAPTURE_CHANGES.entry,
        world.store.store_id,
    )
    assert once() is None


def test_a_clock_that_is_ahead_is_said_and_the_promise_stays_with_this_clock(
    world: ChangeStreamWorld, caplog: pytest.LogCaptureFixture
) -> None:
    def run(spec: JobSpec) -> JobResult:
        batch = from_plain(CaptureBatch, spec.request)
        result = captured(batch, until=batch.latest + MICROSECOND)
        return JobResult(to_plain(replace(result, ahead={"db.t": timedelta(hours=1)})))

    world.table.commit(world.clock.go())
    result = capture(Runtime(world.store, run=run, paths=paths(), tables=world.tables), "s")
    assert result is not None
    assert result.published_until == world.clock() + CLOCKS_DIFFER + MICROSECOND
    (said,) = [record.getMessage() for record in caplog.records if "ahead" in record.getMessage()]
    assert "commits of db.t have times up to 1:00:00 ahead of this clock" in said


def test_a_job_that_failed_leaves_the_batch_open_for_the_next(world: ChangeStreamWorld) -> None:
    world.table.commit(world.clock.go())
    error = WatchedTableChanged(stream="s", table="t", version=1, problem="no", remedy="none")

    def fails(_: JobSpec) -> JobResult:
        return JobResult(error=error.to_record())

    with pytest.raises(TidemarkError, match="no"):
        capture(Runtime(world.store, run=fails, paths=paths(), tables=world.tables), "s")
    batch = world.opened()
    world.table.commit(world.clock.go())
    assert world.opened() == batch
    assert world.stream.next_batch == 0
