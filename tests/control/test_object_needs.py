"""The list of what needs attention, read from the store: places, findings, and a bounded number of queries."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.control.change_stream_model import ChangeStreamWorld, Clock
from tests.control.kept_objects import drifted
from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark.change_streams.worker.groups import create_group, pause_group
from tidemark.control.looks import turns_of
from tidemark.control.object_list import ObjectsWish
from tidemark.control.object_needs import Place, place_of_cursor
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument
from tidemark.model.streams import StreamMode, TableRef
from tidemark.plugins.monitor.watch import Watch
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, Known, NeedsPage, look_at, needs_page
from tidemark.streams.worker.object_states import list_objects
from tidemark.streams.worker.risks import Limit, risk_report
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.streams import create_stream


def page(store: ControlStore, *, limit: int = 50, after: Place | None = None, **wish: str) -> NeedsPage:
    how: dict[str, Any] = {"after": after, "limit": limit, "now": store.clock()}
    return store.read(lambda connection: needs_page(connection, NOTHING_KNOWN, ObjectsWish(**wish), **how))


def queries(store: ControlStore, **how: Any) -> int:
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    sa.event.listen(store._engine, "before_cursor_execute", note)
    page(store, **how)
    sa.event.remove(store._engine, "before_cursor_execute", note)
    return len(seen)


def test_many_paused_groups_take_as_many_queries_as_one(copied_store: ControlStore, tmp_path: Path) -> None:
    world = ChangeStreamWorld(copied_store, tmp_path)
    for number in range(12):
        create_group(copied_store, "s", f"g{number:02}", "now")
        pause_group(copied_store, "s", f"g{number:02}")
    world.clock.go()
    found = page(copied_store)
    assert [(one.need, one.shown.name) for one in found.needs] == [("stopped", f"s/g{n:02}") for n in range(12)]
    assert found.needs[3].advice.commands == ("airflow tidemark consumer-groups resume s g03",)
    assert [one.name for one in found.needs[3].acts] == ["resume", "reset", "drop"]
    assert all(one.shown.lag_seconds is not None for one in found.needs)
    assert queries(copied_store, limit=1) == queries(copied_store, limit=50)
    assert drifted(copied_store) == []


def test_what_is_well_is_not_walked_over(sqlite_store: str, tmp_path: Path) -> None:
    """By SQLite's plans: neither streams without a window nor partitions without a failure."""
    store = ControlStore(sqlite_store, keep_connections=True)
    world = ChangeStreamWorld(store, tmp_path)
    create_group(store, "s", "g", "now")
    pause_group(store, "s", "g")
    world.clock.go()
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        asked.append((statement, values))

    sa.event.listen(store._engine, "before_cursor_execute", note)
    assert [one.shown.name for one in page(store).needs] == ["s/g"]
    sa.event.remove(store._engine, "before_cursor_execute", note)

    def plans(connection: sa.Connection) -> str:
        told = (connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {said}", values) for said, values in asked)
        return "\n".join(row[3] for one in told for row in one)

    plan = store.read(plans)
    for index in ("tidemark_object_live", "tidemark_group_partition_failed", "tidemark_stream_held_by"):
        assert f"ix_{index}" in plan
    assert "SCAN tidemark_object" not in plan
    assert "SCAN tidemark_stream" not in plan


def test_an_object_that_is_fixed_between_two_parts_moves_no_other_one(
    copied_store: ControlStore, tmp_path: Path
) -> None:
    from tidemark.change_streams.worker.groups import resume_group

    ChangeStreamWorld(copied_store, tmp_path)
    for name in "abcd":
        create_group(copied_store, "s", name, "now")
        pause_group(copied_store, "s", name)
    first = page(copied_store, limit=2)
    assert first.following is not None
    for fixed in "ab":
        resume_group(copied_store, "s", fixed)
    second = page(copied_store, limit=2, after=place_of_cursor(first.following.cursor))
    assert [one.shown.name for one in (*first.needs, *second.needs)] == ["s/a", "s/b", "s/c", "s/d"]
    assert (second.total, second.following) == (2, None)


@pytest.mark.parametrize("cursor", ["", "x", "bnVsbA", "e30", Place(0, "a", "b", "c").cursor[:-3], "é"])
def test_a_text_that_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidArgument):
        place_of_cursor(cursor)


def test_a_cursor_is_its_place() -> None:
    place = Place(1, "stream", "ärger's", "uid")
    assert place_of_cursor(place.cursor) == place


def test_a_stream_that_no_look_has_an_answer_of_is_counted_as_not_looked_at(
    copied_store: ControlStore, tmp_path: Path
) -> None:
    """Also if an earlier look had one, and then its lake hangs."""
    goes_on = threading.Event()
    _streams(copied_store, tmp_path, "ab")
    keys = sorted(copied_store.read(turns_of))

    def left(known: Known, **wish: str) -> int:
        how: dict[str, Any] = {"after": None, "limit": 1, "now": copied_store.clock()}
        return copied_store.read(lambda c: needs_page(c, known, ObjectsWish(**wish), **how)).not_looked_at

    def hanging(table: TableRef) -> Any:
        goes_on.wait(30)
        return open_table(table)

    one = look_at(copied_store, open_table, NOTHING_KNOWN, keys[:1])
    both = look_at(copied_store, open_table, one, keys)
    assert [left(known) for known in (NOTHING_KNOWN, one, both)] == [2, 1, 0]
    assert left(NOTHING_KNOWN, kind="pipe") == 0
    now_hanging = look_at(copied_store, hanging, both, keys, patience=timedelta(seconds=0.2))
    goes_on.set()
    assert left(now_hanging) == 2
    assert now_hanging.seen == both.seen


def test_a_log_that_fails_unexpectedly_is_told_in_words_and_keeps_no_other_from_being_looked_at(
    copied_store: ControlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _streams(copied_store, tmp_path, "ab")

    def damaged(table: TableRef) -> Any:
        if table.name == "shop.a":
            raise KeyError("add")
        return open_table(table)

    found = {one.name: one for one in list_objects(copied_store, damaged, ObjectsWish())}
    assert found["a"].state == "unreadable"
    assert found["a"].notice == "Its log could not be read: KeyError. The log of the process has the details."
    assert (found["b"].notice, found["b"].lag_amount) == (None, 0)
    assert "KeyError: 'add'" in caplog.text
    report = risk_report(copied_store, None, damaged, Limit(timedelta(hours=1)))
    assert report.unknown == (("a", found["a"].notice),)


def test_a_round_that_fails_is_logged_and_the_next_one_begins_with_other_objects(
    copied_store: ControlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _streams(copied_store, tmp_path, "abc")
    _, *others = sorted(copied_store.read(turns_of))
    clock, asked = copied_store.clock, iter([True])

    def failing_once() -> datetime:
        if next(asked, False):
            raise ValueError("a fault")
        return clock()

    copied_store.clock = failing_once
    watch = Watch(every=0, most=1, rest=0)
    until = time.monotonic() + 30
    while len(watch.known.looked) < 2 and time.monotonic() < until:
        watch.wake(copied_store, open_table)
        time.sleep(0.01)
    assert watch.known.looked >= set(others)
    assert "ValueError: a fault" in caplog.text


def _streams(store: ControlStore, root: Path, names: str) -> None:
    for name in names:
        table = SyntheticTable(root / name)
        source = TableRef(f"shop.{name}", table.uri, table.table_id)
        create_stream(store, name=name, source=source, mode=StreamMode.STANDARD, at_version=0, who="ana")


def test_soon_stale_streams_are_dated_by_the_retention_and_others_by_the_look(
    copied_store: ControlStore, tmp_path: Path
) -> None:
    table = SyntheticTable(tmp_path / "orders")
    source = TableRef("shop.orders", table.uri, table.table_id)
    gone = TableRef("shop.gone", (tmp_path / "gone").as_uri(), "gone")
    clock = Clock()
    copied_store.clock = clock
    for name, of in (("orders", source), ("gone", gone)):
        create_stream(copied_store, name=name, source=of, mode=StreamMode.STANDARD, at_version=0, who="ana")
    created, week = clock.now, timedelta(days=7)
    clock.now = created + week - timedelta(hours=5)
    known = look_at(copied_store, open_table, NOTHING_KNOWN, sorted(copied_store.read(turns_of)))
    how: dict[str, Any] = {"after": None, "limit": 5, "now": clock.now}
    found = copied_store.read(lambda c: needs_page(c, known, ObjectsWish(), **how))
    dated = {one.shown.name: (one.since, one.since_seen) for one in found.needs}
    assert dated["orders"] == (created + week - timedelta(days=1), False)
    assert dated["gone"][1]
