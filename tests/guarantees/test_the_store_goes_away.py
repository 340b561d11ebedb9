"""The connection to the store breaks at any state move, before or after the commit: each change is delivered once.

A short break is survived inside the attempt. A long one fails it with StoreUnreachable, and the next attempt, with the
same key, ends as if nothing had been. A real server, and a wire that breaks at a chosen commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from tests.cutting_proxy import Cut, CuttingProxy
from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.errors import JobDied, StoreUnreachable, StreamNotFound, TransactionNotFound
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.consume import consume
from tidemark.streams.worker.replan import replan
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.streams import advance_stream, drop_stream, get_stream

from .world import LONG, SHORT, World, key_of

PATIENT = timedelta(seconds=20)
IMPATIENT = timedelta(milliseconds=50)
CONSUMING = ("begin writes ahead", "submit", "job ended, with its evidence", "commit")
FAILING = ("begin writes ahead", "submit", "job ended", "rollback")


@pytest.fixture
def wire(postgresql: PostgresServer) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(postgresql.port)
    yield proxy
    proxy.close()


@pytest.fixture
def far(postgresql_store: str, wire: CuttingProxy, postgresql: PostgresServer, tmp_path: Path) -> World:
    """A world whose store is behind the wire."""
    made = World(tmp_path, postgresql_store.replace(f":{postgresql.port}/", f":{wire.port}/"))
    made.stream()
    made.source.append()
    return made


def store_of(world: World, patience: timedelta) -> ControlStore:
    return ControlStore(world.url, clock=world.clock, patience=patience)


def failing(world: World) -> Callable[[], object]:
    """Consumption whose job dies before it writes."""

    def die(spec: JobSpec) -> JobResult:
        raise JobDied(key=str(spec.key), exit_code=1, tail="")

    return lambda: consume(
        Runtime(world.store, run=die, paths=world.paths),
        key=key_of("one"),
        streams=("s",),
        writes=world.writes(),
        owner="worker of one",
    )


def ended_right(world: World) -> None:
    """The change of version 1 is in both targets, once; the offset moved once; the result is kept."""
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})
    assert [(m.from_version, m.to_version) for m in world.history()] == [(0, 0), (0, 1)]
    assert get_transaction(world.store, key_of("one")).result is not None


def test_these_are_all_the_moves(far: World, wire: CuttingProxy) -> None:
    wire.cut(0, Cut.BEFORE_COMMIT, lasting=False)
    with pytest.raises(JobDied):
        failing(far)()
    assert wire.writes == len(FAILING)
    far.clock.go(timedelta(hours=7))
    wire.cut(0, Cut.BEFORE_COMMIT, lasting=False)
    far.consume("one")
    assert wire.writes == len(CONSUMING)  # begin takes up what it had written ahead
    ended_right(far)


@pytest.mark.parametrize("how", Cut)
@pytest.mark.parametrize("move", CONSUMING)
def test_a_short_break_is_not_noticed(far: World, wire: CuttingProxy, move: str, how: Cut) -> None:
    far.store = store_of(far, PATIENT)
    wire.cut(CONSUMING.index(move) + 1, how, lasting=False)
    assert far.consume("one").result.windows[0].to_version == 1
    assert wire.happened
    ended_right(far)
    assert len(far.drivers) == 1  # no job was run twice


@pytest.mark.parametrize("how", Cut)
@pytest.mark.parametrize("move", CONSUMING)
def test_after_a_long_break_the_next_attempt_ends_right(far: World, wire: CuttingProxy, move: str, how: Cut) -> None:
    far.store = store_of(far, IMPATIENT)
    wire.cut(CONSUMING.index(move) + 1, how, lasting=True)
    with pytest.raises(StoreUnreachable):
        far.consume("one")
    assert wire.happened
    wire.mend()
    far.store = store_of(far, PATIENT)
    assert far.consume("one").result.windows[0].to_version == 1
    ended_right(far)


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("how", Cut)
@pytest.mark.parametrize("move", FAILING)
def test_a_failing_attempt_is_rolled_back_or_resumed(
    far: World, wire: CuttingProxy, move: str, how: Cut, lasting: bool
) -> None:
    far.store = store_of(far, IMPATIENT if lasting else PATIENT)
    wire.cut(FAILING.index(move) + 1, how, lasting=lasting)
    with pytest.raises((JobDied, StoreUnreachable)) as failed:
        failing(far)()
    assert wire.happened
    assert lasting == isinstance(failed.value, StoreUnreachable)
    wire.mend()
    far.store = store_of(far, PATIENT)
    far.consume("one")
    ended_right(far)


@pytest.mark.parametrize("how", Cut)
@pytest.mark.parametrize("write", range(3, 10))  # from the takeover itself to the taker's own window written ahead
def test_a_takeover_that_breaks_off_is_finished_by_the_takers_retry(
    far: World, wire: CuttingProxy, write: int, how: Cut
) -> None:
    late = far.zombie(far.open("one"), steps=2)
    far.clock.go(SHORT)
    far.source.append()
    far.store = store_of(far, IMPATIENT)
    wire.cut(write, how, lasting=True)
    with pytest.raises(StoreUnreachable):
        far.consume("two")
    assert wire.happened
    wire.mend()
    far.store = store_of(far, PATIENT)
    far.consume("two")
    late.run()
    assert (far.holds(0), far.holds(1), far.offset()) == ({1: 1, 2: 1}, {1: 1, 2: 1}, 2)
    assert [(m.from_version, m.to_version) for m in far.history()] == [(0, 0), (0, 1), (1, 2)]


@pytest.mark.parametrize("how", Cut)
@pytest.mark.parametrize("write", [1, 2, 3])
def test_a_release_that_breaks_off_is_done_by_the_next_one(
    far: World, wire: CuttingProxy, write: int, how: Cut
) -> None:
    def release(patience: timedelta) -> None:
        far.store = store_of(far, patience)
        replan(far.runtime, key_of("one"))

    far.zombie(far.open("one"))
    far.clock.go(LONG)
    wire.cut(write, how, lasting=True)
    with pytest.raises(StoreUnreachable):
        release(IMPATIENT)
    assert wire.happened
    wire.mend()
    with suppress(TransactionNotFound):  # the first one had come to its end
        release(PATIENT)
    far.source.append()
    far.consume("two")
    assert (far.holds(0), far.holds(1), far.offset()) == ({1: 1, 2: 1}, {1: 1, 2: 1}, 2)
    assert [(m.from_version, m.to_version) for m in far.history()] == [(0, 0), (0, 2)]


@pytest.mark.parametrize("how", Cut)
def test_rolling_back_what_was_never_submitted_frees_it(far: World, wire: CuttingProxy, how: Cut) -> None:
    far.store = store_of(far, PATIENT)
    far.open("two")
    wire.cut(1, how, lasting=False)
    rollback(far.store, key_of("two"))
    assert wire.happened
    far.consume("one")
    ended_right(far)


@pytest.mark.parametrize("how", Cut)
def test_an_empty_window_commits_once(far: World, wire: CuttingProxy, how: Cut) -> None:
    far.store = store_of(far, PATIENT)
    far.consume("one")
    wire.cut(1, how, lasting=False)
    assert far.delivered("two").fresh
    assert wire.happened
    assert [m.run for m in far.history()][1:] == [str(key_of("one")), str(key_of("two"))]


@pytest.mark.parametrize("how", Cut)
def test_what_users_do_by_hand_happens_once(far: World, wire: CuttingProxy, how: Cut) -> None:
    far.store = store_of(far, PATIENT)
    for act in (
        lambda: far.stream("t"),
        lambda: far.stream("t", or_replace=True),
        lambda: advance_stream(far.store, "t", 2, "ann", "skipped"),
    ):
        wire.cut(1, how, lasting=False)
        act()
        assert wire.happened
    assert [m.why for m in far.history("t")] == ["created", "skipped"]
    wire.cut(1, how, lasting=False)
    drop_stream(far.store, "t", "ann")
    with pytest.raises(StreamNotFound):
        get_stream(far.store, "t")


def test_a_server_that_restarts_while_the_job_runs_is_not_noticed(far: World, postgresql: PostgresServer) -> None:
    def restart_and_run(spec: JobSpec) -> JobResult:
        postgresql.stop()
        threading.Timer(1.0, postgresql.start).start()
        return far.run(spec)

    far.store = store_of(far, PATIENT)
    transaction = far.open("one")
    far.submit(transaction, restart_and_run)
    far.finish(transaction)
    ended_right(far)


def test_a_backend_that_is_ended_by_its_administrator_is_not_noticed(far: World, postgresql: PostgresServer) -> None:
    ended: list[int] = []

    def work(connection: object) -> int:
        number = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()  # type: ignore[attr-defined]
        if not ended:
            postgresql.sql(f"SELECT pg_terminate_backend({number})")
            ended.append(number)
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())  # type: ignore[attr-defined]

    assert store_of(far, PATIENT).write(work) not in ended
    assert len(ended) == 1
