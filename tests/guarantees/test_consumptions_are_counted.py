"""Counters of a stream: once for each commit, once for each attempt that failed, and never in the way of the work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.guarantees.world import SHORT, World, key_of
from tidemark.control.store import ControlStore
from tidemark.errors import CommitRefused, StoreUnreachable, StreamLocked, StreamStale
from tidemark.model.statements import Evidence, PlannedWrite, WriteAs
from tidemark.streams.model.health import StreamHealth
from tidemark.streams.worker.commit import commit
from tidemark.streams.worker.replay import find_run, replay
from tidemark.streams.worker.statistics import changes_of, count_failure, stream_health, stream_healths
from tidemark.streams.worker.streams import get_stream

STALE = StreamStale(stream="s", version=1, table="t", reason="gone")


def health(world: World, name: str = "s") -> StreamHealth:
    return stream_health(world.store, name)


def test_a_commit_counts_once_however_often_it_is_asked_for(world: World) -> None:
    world.source.append()
    world.source.append()
    transaction = world.open("r1")
    world.submit(transaction)
    for _ in range(3):
        commit(world.store, transaction.key)
    world.consume("r1")
    assert health(world) == StreamHealth(consumptions=1, rows_delivered=2)  # of two targets


def test_a_window_that_another_run_took_over_counts_once(world: World) -> None:
    world.source.append()
    transaction = world.open("r1")
    world.zombie(transaction)
    world.clock.go(SHORT)
    world.source.append()
    world.consume("r2")
    assert health(world) == StreamHealth(consumptions=2, rows_delivered=2)


def test_windows_without_changes_are_counted_apart(world: World) -> None:
    world.source.optimize()
    world.consume("r1")
    world.consume("r2")
    world.consume("r2")
    assert health(world) == StreamHealth(consumptions=2, empty_windows=2)


def test_rows_belong_to_the_stream_that_a_statement_reads(world: World) -> None:
    world.stream("o", "other")
    for source in world.sources.values():
        source.append()
    one, two = (target.uri for target in world.targets)
    writes = tuple(PlannedWrite(WriteAs.APPEND, target, source="s") for target in (one, two))
    world.finish(world.open("r1", writes, ("s", "o")))
    of_s, of_o = (health(world, name).rows_delivered for name in ("s", "o"))
    assert (of_s > 0, of_o) == (True, 0)


def test_where_only_sql_reads_a_stream_the_target_that_got_most_counts(world: World) -> None:
    world.source.append()
    writes = tuple(PlannedWrite(WriteAs.SQL, target.uri, sql="INSERT") for target in world.targets[:2])
    transaction = world.open("r1", writes)
    world.finish(transaction)
    assert health(world).rows_delivered == 1
    assert changes_of(transaction.windows[0], transaction.plan.statements, ()) is None


def test_the_rows_of_a_change_set_are_those_that_a_merge_has_read_or_an_append_has_written(world: World) -> None:
    world.source.append()
    one, two = (target.uri for target in world.targets[:2])
    merge = PlannedWrite(WriteAs.MERGE, one, source="S", keys=("id",), quarantine="q")
    transaction = world.open("r1", world.writes(0))
    (window,), (base,) = transaction.windows, transaction.plan.statements
    statements = [
        replace(base, number=number, write=write)
        for number, write in enumerate(
            (merge, PlannedWrite(WriteAs.QUARANTINE, "q", source="S"), PlannedWrite(WriteAs.APPEND, two, source="s"))
        )
    ]

    def evidence(number: int, rows: dict[str, int], changes: int | None = None) -> Evidence:
        return Evidence(number, "id", 1, 1, base.digest, rows, changes=changes)

    merged, aside, appended = (
        evidence(0, {"updated": 1}, 5),
        evidence(1, {"quarantined": 2}),
        evidence(2, {"inserted": 7}),
    )
    assert changes_of(window, statements, (merged, aside, appended)) == 7
    assert changes_of(window, statements, (merged, aside)) == 7
    assert changes_of(window, statements, (replace(merged, changes=None), aside, appended)) == 7
    assert changes_of(window, statements, (replace(merged, changes=None), aside)) is None
    assert changes_of(replace(window, end=window.start), statements, ()) == 0


def test_a_replay_and_a_refused_commit_count_nothing(world: World) -> None:
    world.source.append()
    world.consume("r1", 0)
    before = health(world)
    replay(world.runtime, find_run(world.store, "s", "r1"), key=key_of("again"), writes=world.writes(1), owner="me")
    world.source.append()
    transaction = world.open("r2")
    with pytest.raises(CommitRefused):
        commit(world.store, transaction.key)
    assert health(world) == before


def test_failures_are_counted_in_all_and_in_a_row_until_a_commit(world: World) -> None:
    uid = get_stream(world.store, "s").uid
    first = world.clock.now
    assert count_failure(world.store, ["S", "not there"], STALE, run=key_of("r1")) == {"s": 1}
    world.clock.go(SHORT)

    assert count_failure(world.store, ["s"], STALE, run=key_of("r2"), hide=lambda text: text[:20]) == {"s": 2}
    failing = health(world)
    assert (failing.failures, failing.failures_in_row, failing.failing_since) == (2, 2, first)
    assert (failing.last_failed_at, failing.last_failed_run) == (world.clock.now, str(key_of("r2")))
    assert (failing.last_error_type, failing.last_error) == ("StreamStale", str(STALE)[:20])
    world.source.append()
    world.consume("r3")
    well = health(world)
    assert (well.failures, well.failures_in_row, well.failing_since, well.last_error_type) == (
        2, 0, None, "StreamStale",
    )  # fmt: skip
    assert stream_healths(world.store) == {uid: well}


def test_of_an_error_that_is_not_ours_only_the_type_is_kept(world: World) -> None:
    count_failure(world.store, ["s"], ValueError("password=hunter2"), run=key_of("r"))
    assert (health(world).last_error_type, health(world).last_error) == ("ValueError", "")


def test_a_lock_is_no_failure(world: World) -> None:
    locked = StreamLocked(stream="s", holder="k", until=world.clock.now)
    assert count_failure(world.store, ["s"], locked, run=key_of("r")) == {}
    assert health(world) == StreamHealth()


def test_a_task_that_names_no_stream_fails_those_of_its_transaction(world: World) -> None:
    world.source.append()
    transaction = world.open("r1")
    assert count_failure(world.store, (), STALE, run=key_of("task"), transaction=transaction.key) == {"s": 1}


def test_a_store_that_is_away_is_only_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    class Away(ControlStore):
        def write(self, work: object) -> None:  # type: ignore[override]
            raise StoreUnreachable(url="postgresql://h", problem="refused")

    assert count_failure(Away(world.url), ["s"], STALE, run=key_of("r")) == {}
    assert "were not counted" in caplog.text


def test_a_dropped_and_a_new_stream_of_the_name_are_counted_apart(world: World) -> None:
    count_failure(world.store, ["s"], STALE, run=key_of("r"))
    world.stream(or_replace=True)
    assert health(world) == StreamHealth()
    assert get_stream(world.store, "s").serial == 0
