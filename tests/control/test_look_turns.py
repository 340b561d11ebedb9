"""Turns of looks: new objects are first, a restart continues, and a log that hangs delays no other one. No Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark.control.looks import NEVER, looked_kinds, not_looked_at, note_looks, note_turns, turns_of
from tidemark.control.schema import looks
from tidemark.control.store import ControlStore
from tidemark.errors import StoreRefused
from tidemark.model.streams import StreamMode, TableRef
from tidemark.plugins.monitor.watch import Watch
from tidemark.streams.worker import look_turns
from tidemark.streams.worker.gauges import look_for_gauges
from tidemark.streams.worker.look_turns import look_in_turn, next_turns
from tidemark.streams.worker.object_needs import NOTHING_KNOWN, longest_ago, look_at
from tidemark.streams.worker.open_looks import OpenLooks
from tidemark.streams.worker.questions import LogQuestion
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.streams import create_stream, drop_stream

SHORT = timedelta(seconds=0.3)
HOUR = timedelta(hours=1)


@pytest.fixture
def goes_on() -> Iterator[threading.Event]:
    """Set when tables that hang answer, at the end of a test at the latest."""
    found = threading.Event()
    yield found
    found.set()


def streams(store: ControlStore, root: Path, *names: str, on: str = "") -> dict[str, tuple[str, str]]:
    """Streams, each on a table of its own, or all on one; their keys by name."""
    made = {}
    tables = {}
    for name in names:
        path = on or name
        table = tables.setdefault(path, None) or SyntheticTable(root / path)
        tables[path] = table
        source = TableRef(f"shop.{path}", table.uri, table.table_id)
        made[name] = ("stream", create_stream(
            store, name=name, source=source, mode=StreamMode.STANDARD, at_version=0, who="ana"
        ).uid)  # fmt: skip
    return made


def hanging(goes_on: threading.Event, *tables: str) -> Callable[[TableRef], Any]:
    def opened(table: TableRef) -> Any:
        if table.name.removeprefix("shop.") in tables:
            goes_on.wait(60)
        return open_table(table)

    return opened


def kept(store: ControlStore) -> dict[str, tuple[bool, bool]]:
    """Whether each object has had its turn, and an answer, by uid."""
    rows = store.read(lambda c: c.execute(sa.select(looks)).mappings().all())
    return {row["uid"]: (row["turn_at"] is not None, row["looked_at"] is not None) for row in rows}


def test_turns_are_kept_and_move_only_forward(copied_store: ControlStore, tmp_path: Path) -> None:
    found = streams(copied_store, tmp_path, "a", "b")
    now = copied_store.clock()
    assert copied_store.read(turns_of) == {key: NEVER for key in found.values()}
    for at in (now, now, now - HOUR):
        copied_store.write(lambda c, at=at: note_turns(c, [found["a"]], at))  # type: ignore[misc]
    assert copied_store.read(turns_of) == {found["a"]: now, found["b"]: NEVER}
    for at in (now, now, now - HOUR):
        copied_store.write(lambda c, at=at: note_looks(c, [found["a"]], [], at))  # type: ignore[misc]
    copied_store.write(lambda c: note_turns(c, list(found.values()), now + HOUR))
    copied_store.write(lambda c: note_looks(c, [], list(found.values()), now + HOUR))
    assert copied_store.read(turns_of) == {found["a"]: now, found["b"]: NEVER}


def test_objects_without_a_look_in_time_are_counted_by_kind(copied_store: ControlStore, tmp_path: Path) -> None:
    found = streams(copied_store, tmp_path, "a", "b", "gone")
    drop_stream(copied_store, "gone", who="ana")
    now = copied_store.clock()
    assert copied_store.read(lambda c: not_looked_at(c, now)) == {"stream": 2, "landing_table": 0}
    for name, at in (("a", now), ("b", now - HOUR)):
        copied_store.write(lambda c, name=name: note_turns(c, [found[name]], now))  # type: ignore[misc]
        copied_store.write(lambda c, name=name, at=at: note_looks(c, [found[name]], [], at))  # type: ignore[misc]
    assert copied_store.read(lambda c: not_looked_at(c, now - HOUR / 2))["stream"] == 1
    assert set(looked_kinds()) == {"stream", "landing_table"}


def test_who_never_had_a_turn_is_first_and_those_in_trouble_are_every_second(tmp_path: Path) -> None:
    now = NEVER + HOUR
    turns = {("stream", name): now + HOUR * number for number, name in enumerate("abcdef")} | {("stream", "z"): NEVER}
    assert [name for _, name in next_turns(turns, {}, (), 3)] == ["z", "a", "b"]
    own = {("stream", "z"): 5.0, ("stream", "a"): 3.0}
    assert [name for _, name in next_turns(turns, own, (), 99)] == ["b", "c", "d", "e", "f", "a", "z"]
    late = {("stream", name) for name in "def"}
    assert [name for _, name in next_turns(turns, {}, late, 4)] == ["d", "z", "e", "a"]
    assert [name for _, name in next_turns(turns, {}, late, 1)] == ["z"]
    assert len(next_turns(turns, {}, set(turns), 99)) == 7


def test_objects_without_logs_do_not_go_before_logs_after_a_restart() -> None:
    now = NEVER + HOUR
    logs = {("stream", name): now + HOUR * number for number, name in enumerate("ab")}
    turns = {**{("pipe", str(number)): NEVER for number in range(500)}, **logs, ("stream", "new"): NEVER}
    assert [name for _, name in next_turns(turns, {}, (), 3)] == ["new", "a", "b"]
    assert {kind for kind, _ in next_turns(turns, dict.fromkeys(logs, 1.0), (), 3)} == {"stream", "pipe"}


def test_a_process_that_begins_goes_on_where_another_ended(copied_store: ControlStore, tmp_path: Path) -> None:
    keys = set(streams(copied_store, tmp_path, *"abcde").values())
    looked: set[tuple[str, str]] = set()
    for _ in range(5):
        watch = Watch(every=0, most=1, rest=0)
        watch.wake(copied_store, open_table)
        until = time.monotonic() + 30
        while watch.known.looked_at is None and time.monotonic() < until:
            time.sleep(0.01)
        looked |= watch.known.looked
    assert looked == keys


def test_a_table_that_hangs_keeps_no_other_from_its_turn(
    copied_store: ControlStore, tmp_path: Path, goes_on: threading.Event
) -> None:
    """Eight of them keep all threads of the first round; in the next one, nobody waits for them."""
    stuck = streams(copied_store, tmp_path, *(f"stuck{number}" for number in range(8)))
    well = streams(copied_store, tmp_path, *(f"well{number}" for number in range(8)))
    tables = hanging(goes_on, *stuck)
    opened, order = OpenLooks(), [*stuck.values(), *well.values()]
    first = look_at(copied_store, tables, NOTHING_KNOWN, order, patience=SHORT, open_looks=opened)
    assert (first.looked, first.waiting) == (frozenset(), frozenset(well.values()))
    second = look_at(copied_store, tables, first, order, patience=HOUR, open_looks=opened)
    assert (second.looked, second.waiting) == (frozenset(well.values()), frozenset())


def test_streams_on_a_table_that_hangs_are_put_off_and_not_kept_first(
    copied_store: ControlStore, tmp_path: Path, goes_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_turns, "look_at", lambda *given, **how: look_at(*given, **how, patience=SHORT))
    stuck = streams(copied_store, tmp_path, *(f"stuck{number}" for number in range(6)), on="stuck")
    well = streams(copied_store, tmp_path, "well")
    tables, opened = hanging(goes_on, "stuck"), OpenLooks()
    before = set(threading.enumerate())
    for most in (6, 6):
        turn = longest_ago(copied_store.read(turns_of))
        order = [key for key in turn if key in set(stuck.values())][:most]
        look_in_turn(copied_store, tables, NOTHING_KNOWN, order, open_looks=opened)
    assert len(set(threading.enumerate()) - before) < 30
    assert set(kept(copied_store).values()) == {(True, False)}
    assert longest_ago(copied_store.read(turns_of))[0] == well["well"]


def test_a_lake_that_is_down_keeps_a_bounded_number_of_threads_and_comes_back(
    copied_store: ControlStore, tmp_path: Path, goes_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_turns, "look_at", lambda *given, **how: look_at(*given, **how, patience=SHORT))
    keys = list(streams(copied_store, tmp_path, *"abcdefgh").values())
    asked: list[str] = []
    hangs, opened = hanging(goes_on, *"abcdefgh"), OpenLooks(most=4)

    def tables(table: TableRef) -> Any:
        asked.append(table.name)
        return hangs(table)

    for some in (keys[:4], keys[4:], keys[4:]):
        found = look_in_turn(copied_store, tables, NOTHING_KNOWN, some, open_looks=opened)
        assert found.waiting == frozenset()
    assert len(asked) == 4
    assert set(longest_ago(copied_store.read(turns_of))[:4]) == set(keys[:4])
    goes_on.set()
    until = time.monotonic() + 30
    while not found.looked >= set(keys) and time.monotonic() < until:
        found = look_in_turn(copied_store, tables, found, keys, open_looks=opened)
    assert found.looked == frozenset(keys)
    assert set(kept(copied_store).values()) == {(True, True)}


def test_a_storage_that_is_down_keeps_no_other_storage_from_its_looks() -> None:
    opened = OpenLooks(most=2)
    paths = {"a": "s3://down/a", "b": "s3://down/b", "c": "s3://down/c", "d": "s3://well/d", "e": "/lake/e"}
    of = {uid: LogQuestion(uid, (), frozenset({path}), lambda _: None) for uid, path in paths.items()}
    with opened.opened(of["a"]), opened.opened(of["b"]):
        asked = opened.next_round(of)
        assert asked.questions.keys() == {"d", "e"}
        assert [uid for uid in of if asked.waits(uid)] == ["d", "e"]
    assert opened.next_round(of).questions == of


def test_a_look_that_fails_ends_as_others(copied_store: ControlStore) -> None:
    opened = OpenLooks(most=1)
    question = LogQuestion("u", (), frozenset({"/t"}), lambda _: None)
    for _ in range(2):
        asked = opened.next_round({"u": question})
        assert asked.questions == {"u": question}
        with asked.opened(question):
            assert opened.next_round({"u": question}).questions == {}
        with pytest.raises(OSError, match="gone"), asked.opened(question):
            raise OSError("gone")
        assert not asked.waits("u")


def test_a_store_that_refuses_to_keep_turns_costs_no_look_and_one_line_of_the_log(
    copied_store: ControlStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = list(streams(copied_store, tmp_path, "a").values())

    refusals = []

    def refused(_: object) -> None:
        refusals.append(1)
        raise StoreRefused(url="postgresql://db", problem="permission denied for table tidemark_look")

    monkeypatch.setattr(copied_store, "write", refused)
    now = copied_store.clock()
    for later, asked in ((0, 1), (5, 1), (11, 2), (12, 2)):
        copied_store.clock = lambda later=later: now + timedelta(minutes=later)  # type: ignore[misc]
        found = look_in_turn(copied_store, open_table, NOTHING_KNOWN, keys, open_looks=OpenLooks())
        assert (found.looked, len(refusals)) == (frozenset(keys), asked)
    assert caplog.text.count("does not keep when logs were looked at") == 1
    monkeypatch.undo()
    copied_store.clock = lambda: now + timedelta(hours=1)
    look_in_turn(copied_store, open_table, NOTHING_KNOWN, keys, open_looks=OpenLooks())
    assert set(kept(copied_store).values()) == {(True, True)}


def test_gauges_count_who_had_no_answer_and_begin_with_them(
    copied_store: ControlStore, tmp_path: Path, goes_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_turns, "look_at", lambda *given, **how: look_at(*given, **how, patience=SHORT))
    found = streams(copied_store, tmp_path, "a", "b")

    def missing(tables: Callable[[TableRef], Any]) -> float:
        told = look_for_gauges(copied_store, tables, within=HOUR)
        (one,) = [one.value for one in told if one.name == "objects_not_looked_at" and one.tags["kind"] == "stream"]
        return one

    assert missing(hanging(goes_on, "a")) == 1
    assert kept(copied_store) == {found["a"][1]: (True, False), found["b"][1]: (True, True)}
    goes_on.set()
    until = time.monotonic() + 30
    while missing(open_table) and time.monotonic() < until:
        time.sleep(0.05)
    assert missing(open_table) == 0


def test_turns_of_10000_objects_are_kept_in_few_statements(copied_store: ControlStore) -> None:
    keys = [("stream", f"{number:036}") for number in range(10_000)]
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    with _listening(copied_store, note):
        copied_store.write(lambda c: note_turns(c, keys, copied_store.clock()))
        copied_store.write(lambda c: note_looks(c, keys, keys, copied_store.clock()))
    assert len([one for one in seen if "tidemark_look" in one]) <= 20 * 5


@contextmanager
def _listening(store: ControlStore, note: Callable[..., None]) -> Iterator[None]:
    sa.event.listen(store._engine, "before_cursor_execute", note)
    yield
    sa.event.remove(store._engine, "before_cursor_execute", note)
