"""Old history leaves the store in small steps; what safety needs stays, and consumers do not wait for long."""

from __future__ import annotations

import inspect
import re
import threading
import time
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.control.rights import documented_rights, let_prune
from tests.guarantees.world import LONG, World, key_of
from tests.postgresql import PASSWORD, PostgresServer
from tidemark.control import history
from tidemark.control.schema import SUBJECTS, all_tables
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, StoreRefused
from tidemark.streams.planning.history import keep_of
from tidemark.streams.worker.begin import get_transaction
from tidemark.streams.worker.has_data import has_rows
from tidemark.streams.worker.pruning import CLAIMED_FOR, prune, prune_in_passing
from tidemark.streams.worker.rollback import rollback
from tidemark.streams.worker.streams import advance_stream, stream_history

DAY = timedelta(days=1)
KEEP = 90 * DAY


@pytest.fixture(autouse=True)
def may_prune(request: pytest.FixtureRequest) -> None:
    """In each copy of the store."""
    if "copied_store" in request.fixturenames:
        let_prune(request.getfixturevalue("copied_store"), request)


@pytest.fixture
def world(copied_store: ControlStore, tmp_path: Path) -> World:
    """Two streams in each kind of store; the clock stands still."""
    copied_store.close()
    url = copied_store._engine.url.render_as_string(hide_password=False)
    made = World(tmp_path, url)
    made.stream()
    made.stream("t", "other")
    return made


def test_the_documented_rights_are_those_of_the_histories_that_are_deleted() -> None:
    named: set[str] = set()
    for place in history.DROPPED_BY.values():
        module, _, function = place.partition(":")
        code = inspect.getsource(getattr(import_module(f"tidemark.{module}"), function))
        named.update(re.findall(r"(\w+)\s*\.delete\(\)", code))
        named.update(re.findall(r"drop_by_number\(connection, (\w+)", code))
        named.update(name for names in re.findall(r"for table in \(([\w, ]+)\)", code) for name in names.split(", "))
    tables = {name: table for one in SUBJECTS for name, table in vars(import_module(one)).items()}
    tables |= {name: all_tables().tables[f"tidemark_{name[:-1]}"] for name in ("samples", "acts")}
    deleted = {tables[name].name for name in named - {"table"}}
    assert deleted == set(re.findall(r"tidemark_\w+", documented_rights()))


def rows_of(world: World) -> dict[str, int]:
    def count(connection: sa.Connection) -> dict[str, int]:
        tables = all_tables().tables.values()
        return {t.name: connection.execute(sa.select(sa.func.count()).select_from(t)).scalar_one() for t in tables}

    return {name: number for name, number in world.store.read(count).items() if number}


def pruned(world: World, keep: timedelta = KEEP, at_once: int = 3) -> dict[str, int]:
    dropped = prune(world.store, keep, at_once=at_once, pause=lambda _: None)
    return {kind: count for kind, count in dropped.items() if count}


def consumed(world: World, count: int, name: str, streams: tuple[str, ...] = ("s",)) -> None:
    for number in range(count):
        for source in world.sources.values():
            source.append()
        world.consume(f"{name} {number}", streams=streams)
        world.clock.go(timedelta(minutes=1))


def test_old_history_goes_and_the_streams_go_on_as_if_nothing_had_been(world: World) -> None:
    consumed(world, 7, "old")
    world.clock.go(KEEP + DAY)
    consumed(world, 2, "young")
    before = rows_of(world)
    assert pruned(world) == {"transactions": 7, "offset moves": 7}
    after = rows_of(world)
    per_window = {"tidemark_transaction": 1, "tidemark_window": 1, "tidemark_statement": 2, "tidemark_job": 1}
    per_window |= {"tidemark_job_target": 2, "tidemark_offset_move": 1}
    assert {name: before[name] - after.get(name, 0) for name in before} == {
        name: 7 * per_window.get(name, 0) for name in before
    }
    assert pruned(world) == {}
    consumed(world, 2, "next")
    assert world.holds(0) == world.holds(1) == dict.fromkeys(range(1, 12), 1)
    assert world.delivered("young 0").fresh is False


def test_the_newest_of_each_stream_stays_with_its_evidence_and_acts_by_hand_stay(world: World) -> None:
    consumed(world, 3, "both", ("s", "t"))
    consumed(world, 3, "one")
    world.source.append()
    advance_stream(world.store, "s", world.source.head(), "ann", "skipped")
    world.clock.go(2 * KEEP)
    assert pruned(world) == {"transactions": 4, "offset moves": 7}
    assert get_transaction(world.store, key_of("both 2")).result is not None  # the newest that took from t
    assert len(get_transaction(world.store, key_of("one 2")).plan.statements) == 2
    assert [move.why for move in stream_history(world.store, "s")] == ["created", "consumed", "skipped"]
    assert [move.why for move in stream_history(world.store, "t")] == ["created", "consumed"]


def test_moves_past_windows_that_showed_no_row_go_as_those_of_other_runs(world: World) -> None:
    for number in range(3):
        world.source.append()
        assert not has_rows(world.store, "s", holds_rows=lambda _: False, pass_as=f"dag/{number}/wait/-1")
        world.clock.go(timedelta(minutes=1))
    world.clock.go(2 * KEEP)
    assert pruned(world) == {"offset moves": 2}
    assert [(move.why, move.run) for move in stream_history(world.store, "s")] == [
        ("created", None),
        ("proven empty", "dag/2/wait/-1"),
    ]


def test_what_is_open_stays_however_old_it_is_and_is_finished_once(world: World) -> None:
    world.source.append()
    world.run_unseen(world.open("open"))
    world.clock.go(2 * KEEP)
    assert pruned(world) == {}
    world.consume("open")
    assert (world.holds(0), world.holds(1)) == ({1: 1}, {1: 1})


def test_released_ones_go(world: World) -> None:
    world.source.append()
    for number in range(4):
        world.open(f"given up {number}")
        rollback(world.store, key_of(f"given up {number}"))
    world.clock.go(KEEP + DAY)
    assert pruned(world) == {"transactions": 4}
    world.consume("one")
    assert world.holds(0) == {1: 1}


def test_numbers_of_targets_stay_so_that_an_older_store_is_still_told(world: World) -> None:
    consumed(world, 3, "old")
    world.clock.go(2 * KEEP)
    pruned(world)
    assert rows_of(world)["tidemark_target_number"] == 2
    consumed(world, 1, "next")
    assert world.holds(0) == dict.fromkeys(range(1, 5), 1)


def test_a_run_that_is_stopped_in_the_middle_is_gone_on_with(world: World) -> None:
    consumed(world, 9, "old")
    world.clock.go(KEEP + DAY)
    pauses: list[float] = []  # after two steps of transactions, and of offset moves
    first = prune(world.store, KEEP, at_once=2, stop=lambda: len(pauses) == 4, pause=pauses.append)
    assert first["transactions"] == 4
    assert pruned(world, at_once=2)["transactions"] == 4  # eight of nine: the newest stays
    assert pruned(world, at_once=2) == {}


def recording(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds in the order of their steps."""
    steps: list[str] = []

    def noted(kind: str, drop: history.Drop) -> history.Drop:
        def step(connection: sa.Connection, before: datetime, after: history.Cursor | None, most: int) -> history.Step:
            steps.append(kind)
            return drop(connection, before, after, most)

        return step

    for kind, drop in history.KINDS.items():
        monkeypatch.setitem(history.KINDS, kind, noted(kind, drop))
    return steps


def test_a_kind_with_many_rows_keeps_no_other_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    consumed(world, 20, "old")
    world.clock.go(KEEP + DAY)
    steps, rounds = recording(monkeypatch), len(history.KINDS)
    dropped = prune(world.store, KEEP, at_once=1, stop=lambda: len(steps) == rounds, pause=lambda _: None)
    assert set(steps) == set(history.KINDS)
    assert dropped["transactions"] == 1


def test_runs_that_have_time_for_one_step_reach_each_kind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    consumed(world, 20, "old")
    world.clock.go(KEEP + DAY)
    steps = recording(monkeypatch)
    for number in range(len(history.KINDS)):
        prune(world.store, KEEP, at_once=1, stop=lambda most=number + 1: len(steps) == most, pause=lambda _: None)
        world.clock.go(timedelta(seconds=1))
    assert set(steps) == set(history.KINDS)


def test_a_step_that_fails_in_the_middle_has_dropped_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    consumed(world, 4, "old")
    world.clock.go(KEEP + DAY)
    before = rows_of(world)

    def killed(connection: sa.Connection, *given: object) -> history.Step:
        original(connection, *given)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    original = history.KINDS["transactions"]
    with monkeypatch.context() as patch:
        patch.setitem(history.KINDS, "transactions", killed)
        with pytest.raises(KeyboardInterrupt):
            pruned(world)
    assert rows_of(world) == before
    assert pruned(world)["transactions"] == 3


def test_two_at_once_drop_each_thing_once(world: World) -> None:
    consumed(world, 12, "old")
    world.clock.go(KEEP + DAY)
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda most=most: found.append(pruned(world, at_once=most).get("transactions", 0)))
        for most in (2, 3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found) == 11


def test_a_consumer_that_queues_behind_a_step_is_through_before_the_next(world: World) -> None:
    """Nothing is held between two steps: the consumer that waited for the first ends while the pruner pauses."""
    consumed(world, 12, "old")
    world.clock.go(KEEP + DAY)
    world.source.append()
    held, through = threading.Event(), threading.Event()
    came_through: list[bool] = []
    original = history.KINDS["transactions"]

    def slow(connection: sa.Connection, *given: object) -> history.Step:
        held.set()
        time.sleep(0.2)  # the consumer comes meanwhile
        return original(connection, *given)  # type: ignore[arg-type]

    def prune_slowly() -> None:
        prune(world.store, KEEP, at_once=4, pause=lambda _: came_through.append(through.wait(60)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(history.KINDS, "transactions", slow)
        pruner = threading.Thread(target=prune_slowly)
        pruner.start()
        assert held.wait(60)
        world.consume("between")
        through.set()
        pruner.join()
    assert came_through
    assert all(came_through)
    assert world.offset() == world.source.head()


def test_a_clock_that_was_ahead_once_keeps_no_other_history(world: World) -> None:
    consumed(world, 2, "old")
    world.clock.go(400 * DAY)
    consumed(world, 1, "ahead")
    world.clock.go(-400 * DAY)
    consumed(world, 6, "behind it")
    world.clock.go(KEEP + DAY)
    assert pruned(world)["offset moves"] == 7  # all but the newest, and the one of the future


def test_only_one_task_prunes_at_a_time(world: World) -> None:
    consumed(world, 3, "old")
    world.clock.go(KEEP + DAY)
    first = prune_in_passing(world.store, KEEP)
    assert first is not None
    assert first["transactions"] == 2
    assert prune_in_passing(world.store, KEEP) is None
    world.clock.go(CLAIMED_FOR)
    assert prune_in_passing(world.store, KEEP) == dict.fromkeys(history.KINDS, 0)


@pytest.mark.parametrize("keep", [timedelta(hours=23), timedelta(0), -DAY])
def test_what_may_still_be_pinned_cannot_be_dropped(world: World, keep: timedelta) -> None:
    with pytest.raises(InvalidArgument, match="a day is the shortest"):
        prune(world.store, keep)


def test_a_length_beyond_the_calendar_keeps_everything(world: World) -> None:
    consumed(world, 2, "old")
    world.clock.go(LONG)
    assert pruned(world, timedelta.max) == {}


@pytest.mark.parametrize(("text", "days"), [("90d", 90), (" 36h ", 1.5), ("13W", 91), ("999999d", 999_999)])
def test_lengths_are_read(text: str, days: float) -> None:
    assert keep_of("--keep", text) == timedelta(days=days)


@pytest.mark.parametrize("text", ["90", "", "d", "-1d", "1.5d", "90 days", "23h", "0d", "9999999d", "1y"])
def test_other_lengths_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        keep_of("--keep", text)


def test_without_the_right_to_delete_nothing_is_dropped_and_with_the_documented_ones_it_is(
    postgresql: PostgresServer, migrated_database: str, tmp_path: Path
) -> None:
    database = postgresql.new_database(template=migrated_database)
    ControlStore(postgresql.url(database)).migrate()
    postgresql.sql("DROP ROLE IF EXISTS pruning_task")
    postgresql.sql(f"CREATE ROLE pruning_task LOGIN PASSWORD '{PASSWORD}'")
    for grant in (
        "GRANT USAGE ON SCHEMA public TO pruning_task",
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO pruning_task",
        "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO pruning_task",
    ):
        postgresql.sql(grant, database)
    world = World(tmp_path, postgresql.url(database, user="pruning_task"))
    world.stream()
    consumed(world, 3, "old")
    world.clock.go(KEEP + DAY)
    before = rows_of(world)
    with pytest.raises(StoreRefused, match="permission denied"):
        pruned(world)
    assert rows_of(world) == before
    postgresql.sql(documented_rights().replace("TO tidemark", "TO pruning_task"), database)
    assert pruned(world) == {"transactions": 2, "offset moves": 2}
