"""One table has the objects of all subjects, and shows what becomes of each: owner, severity, problem."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from tests.control.change_stream_model import ChangeStreamWorld, Clock, segment
from tests.control.kept_objects import drifted, rows_of
from tests.control.replication_model import Ends, World, found
from tidemark.change_streams.store.schema import group_partitions
from tidemark.change_streams.worker.definitions import drop_change_stream, suspend
from tidemark.change_streams.worker.groups import create_group, drop_group, pause_group, resume_group
from tidemark.change_streams.worker.waves import begin_chunks, chunk_failed, plan_wave
from tidemark.control import object_list
from tidemark.control.cursors import Part
from tidemark.control.object_kinds import Severity, kind_named
from tidemark.control.object_list import ObjectOrder, ObjectsWish, ShownObject
from tidemark.control.objects import dag_of, touch
from tidemark.control.schema import objects
from tidemark.control.store import ControlStore
from tidemark.errors import IncompatibleSchemaChange, InvalidArgument, SourceUnreachable
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import StreamMode, TableRef
from tidemark.replication.model.replication import Actor
from tidemark.replication.store import replication_errors
from tidemark.replication.worker import lifecycle
from tidemark.replication.worker.definitions import begin_drop, drop_replication
from tidemark.streams.store import health
from tidemark.streams.worker.statistics import count_failure
from tidemark.streams.worker.streams import create_stream, drop_stream, get_stream

RUN = TransactionKey("shop_mirror", "scheduled__1", "deliver")
ERROR = IncompatibleSchemaChange(table="shop.t", start=0, end=1, problem="a column has another type")


@pytest.fixture
def clock(copied_store: ControlStore) -> Clock:
    copied_store.clock = Clock()
    return copied_store.clock


def stream(store: ControlStore, name: str = "orders", who: str = "ana") -> None:
    source = TableRef("shop.t", "file:///t", "id")
    create_stream(store, name=name, source=source, mode=StreamMode.STANDARD, at_version=3, who=who)


def deliver(store: ControlStore, name: str = "orders") -> None:
    uid = get_stream(store, name).uid
    store.write(lambda connection: health.count_delivery(connection, uid, rows=1, empty=False))


def shown(store: ControlStore, **wish: object) -> dict[str, ShownObject]:
    now = store.clock()
    found = store.read(lambda c: object_list.show_all(c, ObjectsWish(**wish), now=now))  # type: ignore[arg-type]
    return {f"{one.kind} {one.name}": one for one in found}


def test_a_stream_shows_its_state_and_since_when(copied_store: ControlStore, clock: Clock) -> None:
    created = clock.now
    stream(copied_store)
    row = rows_of(copied_store)["stream orders"]
    assert (row["state"], row["severity"], row["since"], row["owner_dag"]) == ("undelivered", "waiting", created, None)
    failed = clock.go()
    count_failure(copied_store, ["orders"], ERROR, run=RUN)
    clock.go()
    count_failure(copied_store, ["orders"], ERROR, run=RUN)
    row = rows_of(copied_store)["stream orders"]
    assert (row["state"], row["severity"], row["since"], row["owner_dag"]) == ("failing", "failed", failed, RUN.dag_id)
    assert "a column has another type" in str(row["problem"])
    delivered = clock.go()
    deliver(copied_store)
    row = rows_of(copied_store)["stream orders"]
    assert (row["state"], row["severity"], row["since"]) == ("delivering", "ok", delivered)
    assert (row["problem"], row["problem_dags"], row["owner_dag"]) == (None, None, RUN.dag_id)
    drop_stream(copied_store, "orders", "ana")
    assert rows_of(copied_store) == {}
    stream(copied_store)
    assert rows_of(copied_store)["stream orders"]["state"] == "undelivered"


def test_what_is_rolled_back_or_rehearsed_leaves_no_trace(copied_store: ControlStore) -> None:
    def fail(connection: sa.Connection) -> None:
        touch(connection, "stream", ("x",))
        raise RuntimeError

    stream(copied_store)
    before = rows_of(copied_store)
    stream(copied_store.rehearsal(), "other")
    with pytest.raises(RuntimeError):
        copied_store.write(fail)
    copied_store.write(lambda connection: None)
    assert rows_of(copied_store) == before


def test_a_second_run_writes_nothing(copied_store: ControlStore, clock: Clock) -> None:
    stream(copied_store)
    uid, before = get_stream(copied_store, "orders").uid, rows_of(copied_store)
    clock.go()
    written: list[str] = []
    sa.event.listen(copied_store._engine, "before_cursor_execute", lambda *seen: written.append(seen[2]))
    copied_store.write(lambda connection: touch(connection, "stream", (uid, uid, "nobody")))
    assert rows_of(copied_store) == before
    assert not [text for text in written if text.startswith(("UPDATE", "INSERT", "DELETE"))]


def test_problems_are_kept_without_secrets(copied_store: ControlStore) -> None:
    copied_store.hide = lambda text: text.replace("column", "***")
    stream(copied_store)
    uid = get_stream(copied_store, "orders").uid

    def failed(connection: sa.Connection) -> None:
        health.count_failure(connection, uid, at=copied_store.clock(), error_type="E", error="a column", run=None)

    copied_store.write(failed)
    assert rows_of(copied_store)["stream orders"]["problem"] == "E: a ***"


@pytest.mark.parametrize(
    ("said", "dag"),
    [
        ("shop/run/task/-1", "shop"),
        ("shop/manual__2026-11-22T10:00/x/task/3#2@host:1", "shop"),
        ("client/0a/transaction/-1", None),
        ("client/0a/finish/-1", None),
        ("client/0a/replay/-1", None),
        ("client/0a/consume_partitions/-1", None),
        ("client/0a/load/-1", "client"),
        ("ana", None),
        ("ops/ana", None),
        (None, None),
    ],
)
def test_the_owner_is_the_dag_of_a_run(said: str | None, dag: str | None) -> None:
    assert dag_of(said) == dag


def test_change_streams_and_their_groups_show_what_becomes_of_them(world: ChangeStreamWorld) -> None:
    store = world.store
    create_group(store, "s", "g", "earliest")
    assert {name: one.state for name, one in shown(store).items()} == {
        "change_stream s": "watching",
        "consumer_group s/g": "running",
    }
    pause_group(store, "s", "g")
    assert shown(store)["consumer_group s/g"].severity is Severity.WAITING
    resume_group(store, "s", "g")
    token = world.active()[0].token
    world.batch(segment(token, world.clock.now, 1))
    run = str(RUN)
    (chunk,) = plan_wave(store, "s", "g", run=run, max_chunks=10, max_rows=100).chunks
    begin_chunks(store, [chunk], run)
    chunk_failed(store, chunk, run=run, error="no space left")
    group = shown(store)["consumer_group s/g"]
    assert (group.state, group.owner_dag, group.problem_dags) == ("failing", "shop_mirror", ("shop_mirror",))
    assert group.problem == f"a partition failed, {token}: no space left"
    drop_group(store, "s", "g")
    suspend(store, "s")
    assert {name: one.state for name, one in shown(store).items()} == {"change_stream s": "suspended"}
    drop_change_stream(store, "s")
    assert shown(store) == {}


def test_of_many_failed_partitions_one_row_is_read_which_counts_them_and_quotes_the_first(
    world: ChangeStreamWorld,
) -> None:
    create_group(world.store, "s", "g", "earliest")
    like = world.store.read(lambda c: dict(c.execute(sa.select(group_partitions)).mappings().first() or {}))
    rows = [
        {**like, "token": f"!{number:03}", "failed_run": f"dag{number}/run/task/-1", "error": f"error {number}"}
        for number in range(400)
    ]

    def insert(connection: sa.Connection) -> None:
        connection.execute(group_partitions.insert(), rows)
        touch(connection, "consumer_group", [like["group_uid"]])

    world.store.write(insert)
    entries = kind_named("consumer_group").entries
    (entry,) = world.store.read(lambda c: entries(c, [like["group_uid"]]))
    assert entry.problem == "400 partitions failed, !000: error 0"
    assert entry.met_in == ("dag0/run/task/-1",)


def test_a_group_that_may_soon_lose_records_is_a_warning_by_the_time_alone(world: ChangeStreamWorld) -> None:
    create_group(world.store, "s", "g", "earliest")
    before = rows_of(world.store)
    assert shown(world.store, problems=True) == {}
    world.clock.go(timedelta(days=1))
    late = shown(world.store, problems=True)["consumer_group s/g"]
    assert (late.severity, late.state, late.problem) == (Severity.WARNING, "running", None)
    assert "may soon lose" in str(late.notice)
    assert late.lag_seconds == timedelta(days=1).total_seconds()
    assert rows_of(world.store) == before


def test_replications_and_their_tables_show_what_becomes_of_them(replication_world: World) -> None:
    world, by = replication_world, Actor("me", run=str(RUN))
    world.start("s.a", "s.b")
    world.register(found("s.a"), found("s.b"), found("s.c", unsupported="it is too wide"))
    with pytest.raises(SourceUnreachable):
        world.backfill("s.a", Ends.ERROR, by=by)
    world.backfill("s.b", by=by)
    found_ones = shown(world.store)
    name = world.replication.name
    assert {one: (it.state, it.severity.value) for one, it in found_ones.items()} == {
        f"replicated_table {name}/s.a": ("failed", "failed"),
        f"replicated_table {name}/s.c": ("unsupported", "warning"),
        f"replicated_table {name}/s.b": ("completed", "ok"),
        f"replication {name}": ("running", "ok"),
    }
    assert "it went away" in str(found_ones[f"replicated_table {name}/s.a"].problem)
    assert found_ones[f"replicated_table {name}/s.b"].owner_dag == "shop_mirror"
    assert found_ones[f"replication {name}"].lag_unit == "bytes"
    lifecycle.pause(world.store, name, by=by, at_once=True)
    assert shown(world.store)[f"replication {name}"].severity is Severity.WAITING
    begin_drop(world.store, name, by=by, force=True)
    drop_replication(world.store, name, by=by)
    assert shown(world.store) == {}


def test_the_error_of_a_replication_was_met_by_the_run_that_met_this_one(replication_world: World) -> None:
    """Another error of the replication as a whole, which it does not show, may be newer."""
    world, by = replication_world, Actor("me", run=str(RUN))
    world.start("s.a")
    lifecycle.failed(world.store, world.replication.name, error="no room", by=by)
    other = Actor("me", run="other/run/task/-1")
    at, uid = world.store.clock() + timedelta(hours=1), world.replication.uid
    world.store.write(lambda c: replication_errors.keep(c, uid, None, reason="E", message="no table", at=at, by=other))
    (entry,) = world.store.read(lambda c: kind_named("replication").entries(c, [uid]))
    assert (entry.problem, entry.met_in) == ("no room", (str(RUN),))


def test_the_worst_come_first_and_can_be_chosen(copied_store: ControlStore, clock: Clock) -> None:
    for name in ("a", "B", "c", "d_%"):
        stream(copied_store, name, who=str(RUN))
        clock.go()
    count_failure(copied_store, ["c"], ERROR, run=RUN)
    deliver(copied_store, "a")
    assert [one.name for one in shown(copied_store).values()] == ["c", "B", "d_%", "a"]
    assert list(shown(copied_store, state="failing")) == list(shown(copied_store, state="failed")) == ["stream c"]
    assert list(shown(copied_store, problems=True)) == ["stream c"]
    assert list(shown(copied_store, search="_%")) == ["stream d_%"]
    assert list(shown(copied_store, kind="replication")) == []
    with pytest.raises(InvalidArgument, match="one of stream"):
        ObjectsWish(kind="table")


def test_a_page_is_a_part_in_the_order_that_is_asked_for(copied_store: ControlStore, clock: Clock) -> None:
    for name in ("a", "B", "c"):
        stream(copied_store, name)
        clock.go()
    count_failure(copied_store, ["c"], ERROR, run=RUN)

    def names(sort: ObjectOrder, *, descending: bool = False, limit: int = 3, offset: int = 0) -> list[str]:
        how = {"sort": sort, "descending": descending, "part": Part(limit, offset), "now": clock.now}
        page = copied_store.read(lambda c: object_list.page(c, ObjectsWish(), **how))  # type: ignore[arg-type]
        assert page.total == 3
        if page.cursor is not None:
            how["part"] = Part(3, cursor=page.cursor)
            rest = copied_store.read(lambda c: object_list.page(c, ObjectsWish(), **how))  # type: ignore[arg-type]
            assert (len(rest.objects), rest.total, rest.cursor) == (3 - limit - offset, 3, None)
            assert {one.name for one in (*page.objects, *rest.objects)} <= {"a", "B", "c"}
            assert names(sort, descending=descending)[offset + limit :] == [one.name for one in rest.objects]
        return [one.name for one in page.objects]

    assert names(ObjectOrder.STATE) == ["c", "a", "B"]
    assert names(ObjectOrder.STATE, descending=True) == ["a", "B", "c"]
    assert names(ObjectOrder.NAME, descending=True) == ["c", "B", "a"]
    assert names(ObjectOrder.SINCE, limit=2) == ["a", "B"]
    assert names(ObjectOrder.STATE, limit=2, offset=2) == ["B"]
    assert names(ObjectOrder.KIND, offset=3) == []


@pytest.mark.parametrize("others", [0, 15_000])
def test_a_page_has_what_a_look_has_found_among_the_worst(
    copied_store: ControlStore, clock: Clock, others: int
) -> None:
    for name in ("a", "b", "c", "d"):
        stream(copied_store, name)
    count_failure(copied_store, ["d"], ERROR, run=RUN)
    uid = {name: get_stream(copied_store, name).uid for name in "abcd"}
    late = {("stream", uid["b"]): Severity.WARNING, ("stream", uid["c"]): Severity.FAILED}
    late |= {("stream", uid["d"]): Severity.WARNING, ("pipe", uid["a"]): Severity.FAILED}
    late |= {("stream", f"~{number}"): Severity.WARNING for number in range(others)}  # which have ended

    def names(wish: ObjectsWish, *, descending: bool = False) -> tuple[int, str]:
        how = {"descending": descending, "part": Part(4), "now": clock.now, "late": late}
        page = copied_store.read(lambda c: object_list.page(c, wish, sort=ObjectOrder.STATE, **how))  # type: ignore[arg-type]
        shown, part = "", Part(1)
        while True:
            one = copied_store.read(
                lambda c, at=part: object_list.page(c, wish, sort=ObjectOrder.STATE, **{**how, "part": at})  # type: ignore[arg-type]
            )
            shown += "".join(found.name for found in one.objects)
            if one.cursor is None:
                break
            part = Part(1, cursor=one.cursor)
        assert shown == "".join(found.name for found in page.objects)
        return page.total, shown

    assert names(ObjectsWish()) == (4, "cdba")
    assert names(ObjectsWish(), descending=True) == (4, "abcd")
    assert names(ObjectsWish(problems=True)) == (3, "cdb")
    assert names(ObjectsWish(state="failed")) == (2, "cd")
    assert names(ObjectsWish(state="warning")) == (1, "b")
    assert names(ObjectsWish(state="waiting")) == (1, "a")


def test_problem_notice_and_lag_are_told_as_sentences_of_a_person() -> None:
    one = ShownObject("stream", "a", "u", None, None, "stale", Severity.FAILED, None, "It failed.", notice="late")
    assert (one.trouble, one.lag_words) == ("It failed. late", None)
    assert replace(one, problem="it failed").trouble == "it failed; late"
    assert (replace(one, problem=None).trouble, replace(one, notice=None).trouble) == ("late", "It failed.")
    assert replace(one, problem=None, notice=None).trouble is None
    assert replace(one, lag_amount=1, lag_unit="versions").lag_words == "1 version"
    assert replace(one, lag_amount=2, lag_unit="versions").lag_words == "2 versions"


def test_an_object_is_found_by_its_name_in_any_case_and_by_its_uid(copied_store: ControlStore, clock: Clock) -> None:
    stream(copied_store, "Orders")

    def find(name: str) -> ShownObject:
        return copied_store.read(lambda c: object_list.find(c, "stream", name, now=copied_store.clock()))

    assert find("ORDERS") == find("Orders") == find(get_stream(copied_store, "orders").uid)
    with pytest.raises(InvalidArgument, match="no stream has that name"):
        find("payments")


def test_many_objects_are_settled_in_one_transaction(copied_store: ControlStore, clock: Clock) -> None:
    stream(copied_store, "s0")
    one = get_stream(copied_store, "s0")

    def many(connection: sa.Connection) -> None:
        from tidemark.streams.store import streams

        for number in range(1, 1_201):
            made = replace(one, uid=f"u{number}", name=f"s{number}")
            streams.insert(connection, made, who="ana")

    copied_store.write(many)
    count = copied_store.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(objects)).scalar_one())
    assert count == 1_201
    assert drifted(copied_store) == []


def test_the_time_of_an_object_is_that_of_the_store(copied_store: ControlStore, clock: Clock) -> None:
    stream(copied_store)
    since = rows_of(copied_store)["stream orders"]["since"]
    assert isinstance(since, datetime)
    assert since == clock.now


def test_the_worst_10000_of_a_look_fit_into_one_statement_of_sqlite(sqlite_store: str) -> None:
    """SQLite takes 32,766 values a statement, unless a distribution says otherwise."""
    store = ControlStore(sqlite_store, keep_connections=True)
    stream(store)
    like = store.read(lambda c: dict(c.execute(sa.select(objects)).mappings().one()))
    names = [f"o{number:05}" for number in range(10_001)]
    store.write(lambda c: c.execute(objects.insert(), [{**like, "uid": n, "name": n, "folded_name": n} for n in names]))
    late = {("stream", name): Severity.WARNING for name in names[:-1]} | {("stream", names[-1]): Severity.FAILED}

    def limited(connection: sa.Connection, **how: object) -> object_list.ObjectsPage:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)
        wish = ObjectsWish(state="warning", problems=True, search="o")
        common = {"sort": ObjectOrder.STATE, "descending": False, "now": like["since"], "late": late}
        return object_list.page(connection, wish, **common, **how)  # type: ignore[arg-type]

    first = store.read(lambda c: limited(c, part=Part(2)))
    after = store.read(lambda c: limited(c, part=Part(2, 0, first.cursor)))
    assert first.total == after.total == 9_999  # the failed one is among the worst 10,000
    assert [one.name for one in (*first.objects, *after.objects)] == names[:4]
