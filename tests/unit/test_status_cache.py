"""The monitor's looks at logs: in the background, bounded in threads, told with their age, whatever the lake does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import born, commit
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import BaseOffset, Stream, StreamMode, StreamOffset, TableRef
from tidemark.plugins.monitor.status_cache import CachedStatus, NotYet, StatusCache, Unreadable
from tidemark.streams.worker.object_states import ask_logs
from tidemark.streams.worker.questions import LogQuestion
from tidemark.streams.worker.status import StreamStatus

START = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


class Lake:
    """One table of five versions, whose log answers when `open` is set; counts how often it is asked at once."""

    def __init__(self, root: Path) -> None:
        born(root, **{"delta.enableRowTracking": "true"})
        for version in range(1, 5):
            commit(root, version)
        self.path = str(root)
        self.open = threading.Event()
        self.open.set()
        self.asked = 0

    def tables(self, table: TableRef | str) -> DeltaLog:
        self.asked += 1
        self.open.wait(30)
        return DeltaLog.open(table.path if isinstance(table, TableRef) else table)

    def stream(self, number: int, path: str | None = None) -> Stream:
        source = TableRef("t", path or self.path, "id-1")
        offset = StreamOffset("id-1", 2)
        return Stream(f"uid-{number}", f"s{number}", source, StreamMode.STANDARD, offset, False, 0, START, START)


def on_view(stream: Stream, *lakes: Lake) -> Stream:
    """A stream on a view of the lakes' tables; as all of those, it has no path of its own."""
    bases = tuple(BaseOffset(replace(stream.source, path=lake.path), 2) for lake in lakes)
    return replace(stream, source=replace(stream.source, path=""), view_bases=bases)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path / "t")
    yield made
    made.open.set()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def status_cache(clock: Clock) -> StatusCache:
    return StatusCache(threads=2, keep=5.0, usable=60.0, clock=clock)


def look(status_cache: StatusCache, streams: list[Stream], lake: Lake, *, patience: float) -> dict[str, CachedStatus]:
    return dict(asyncio.run(status_cache.statuses(streams, lake.tables, patience=patience)).answers)


def at_once(status_cache: StatusCache, lake: Lake) -> tuple[CachedStatus, float | None]:
    """As a page asks: the answer of stream 1, and how old it is."""
    looks = asyncio.run(status_cache.statuses([lake.stream(1)], lake.tables))
    (status,) = looks.answers.values()
    return status, looks.ago


def until(seen: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not seen():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_status_is_seen_and_kept_for_a_while(lake: Lake, status_cache: StatusCache, clock: Clock) -> None:
    for now, asked in ((0, 1), (4, 1), (6, 2)):
        clock.now = now
        (status,) = look(status_cache, [lake.stream(1)], lake, patience=10).values()
        assert isinstance(status, StreamStatus)
        assert (status.head, status.behind, lake.asked) == (4, 2, asked)


def test_who_does_not_wait_gets_the_last_look_with_its_age_and_another_one_begins(
    lake: Lake, status_cache: StatusCache, clock: Clock
) -> None:
    lake.open.clear()
    assert at_once(status_cache, lake) == (NotYet(0), None)
    clock.now = 2
    assert at_once(status_cache, lake) == (NotYet(2), None)
    lake.open.set()
    until(lambda: at_once(status_cache, lake)[1] is not None)
    commit(Path(lake.path), 5)
    lake.open.clear()  # the next look hangs
    for now in (10, 40, 61):
        clock.now = now
        status, ago = at_once(status_cache, lake)
        assert isinstance(status, StreamStatus)
        assert (status.head, ago, lake.asked) == (4, now - 2, 2)
    clock.now = 63  # the look before is too old to be told
    assert at_once(status_cache, lake) == (NotYet(53), None)
    lake.open.set()
    until(lambda: getattr(at_once(status_cache, lake)[0], "head", None) == 5)


def test_a_look_that_nobody_wants_any_more_does_not_take_place(
    lake: Lake, status_cache: StatusCache, clock: Clock
) -> None:
    lake.open.clear()
    look(status_cache, [lake.stream(number) for number in range(9)], lake, patience=0)
    until(lambda: lake.asked == 2)
    clock.now = 61
    look(status_cache, [lake.stream(8)], lake, patience=0)
    lake.open.set()
    (status,) = look(status_cache, [lake.stream(8)], lake, patience=10).values()
    assert isinstance(status, StreamStatus)
    assert lake.asked == 3
    (again,) = look(status_cache, [lake.stream(5)], lake, patience=10).values()
    assert isinstance(again, StreamStatus)


def test_a_stream_that_moved_is_asked_anew(lake: Lake, status_cache: StatusCache) -> None:
    look(status_cache, [lake.stream(1)], lake, patience=10)
    moved = replace(lake.stream(1), offset=StreamOffset("id-1", 4))
    (status,) = look(status_cache, [moved], lake, patience=10).values()
    assert isinstance(status, StreamStatus)
    assert status.behind == 0


def test_a_dead_lake_takes_two_threads_and_no_more_time_than_allowed(lake: Lake, status_cache: StatusCache) -> None:
    lake.open.clear()
    for _ in range(3):  # the page is read anew
        statuses = look(status_cache, [lake.stream(n) for n in range(50)], lake, patience=0.05)
        assert all(isinstance(status, NotYet) for status in statuses.values())
    assert lake.asked == 2
    assert len(status_cache._entries) == 50  # one look each: nothing piles up


def test_a_table_that_hangs_does_not_keep_others_from_being_read(lake: Lake, clock: Clock, tmp_path: Path) -> None:
    good = Lake(tmp_path / "good")
    lake.open.clear()
    status_cache = StatusCache(threads=4, each=2, clock=clock)
    bad = {f"uid-{n}" for n in range(20)}

    def tables(table: TableRef | str) -> DeltaLog:
        return (lake if table == lake.stream(0).source else good).tables(table)

    streams = [*(lake.stream(n) for n in range(20)), *(good.stream(n) for n in range(20, 30))]
    for _ in range(2):
        asyncio.run(status_cache.statuses(streams, tables, patience=0.05))
    statuses = asyncio.run(status_cache.statuses(streams[20:], tables, patience=10)).answers
    assert all(isinstance(status, StreamStatus) for status in statuses.values())
    assert (lake.asked, set(statuses) & bad) == (2, set())


def test_views_on_a_table_that_hangs_do_not_keep_other_views_from_being_read(
    lake: Lake, clock: Clock, tmp_path: Path
) -> None:
    good = Lake(tmp_path / "good")
    lake.open.clear()

    def tables(table: TableRef | str) -> DeltaLog:
        return (good if isinstance(table, TableRef) and table.path == good.path else lake).tables(table)

    on_bad = [on_view(lake.stream(number), lake) for number in range(2)]
    on_good = [on_view(good.stream(number), good) for number in range(2, 5)]
    status_cache = StatusCache(threads=4, each=2, clock=clock)
    asyncio.run(status_cache.statuses(on_bad, tables, patience=0.05))
    statuses = asyncio.run(status_cache.statuses(on_good, tables, patience=10)).answers
    assert all(isinstance(status, StreamStatus) for status in statuses.values())


def test_a_view_waits_for_its_turn_at_each_of_its_tables(lake: Lake, status_cache: StatusCache) -> None:
    lake.open.clear()
    look(status_cache, [on_view(lake.stream(number), lake) for number in range(5)], lake, patience=0.05)
    look(status_cache, [lake.stream(number) for number in range(5, 9)], lake, patience=0.05)
    assert lake.asked == 2


def test_an_answer_that_comes_late_is_taken(lake: Lake, status_cache: StatusCache, clock: Clock) -> None:
    lake.open.clear()
    look(status_cache, [lake.stream(1)], lake, patience=0.05)
    clock.now = 100
    (late,) = look(status_cache, [lake.stream(1)], lake, patience=0.05).values()
    assert late == NotYet(100)
    lake.open.set()
    (status,) = look(status_cache, [lake.stream(1)], lake, patience=10).values()
    assert isinstance(status, StreamStatus)
    assert lake.asked == 1


def test_what_cannot_be_read_is_said_in_words(lake: Lake, status_cache: StatusCache, tmp_path: Path) -> None:
    gone, garbled = lake.stream(1, str(tmp_path / "nowhere")), lake.stream(2, str(tmp_path / "garbled"))
    born(tmp_path / "garbled")
    (tmp_path / "garbled" / "_delta_log" / f"{0:020d}.json").write_text("{")
    statuses = look(status_cache, [gone, garbled], lake, patience=10)
    for status, said in zip(statuses.values(), ("No table exists", "part of a Delta log"), strict=True):
        assert isinstance(status, Unreadable)
        assert said in status.words


def test_a_look_in_the_background_rests_after_each_log() -> None:
    asked: list[float] = []
    question = LogQuestion("", (), frozenset(), lambda _: asked.append(time.monotonic()))
    behind = {str(number): replace(question, about=frozenset({str(number)})) for number in range(24)}
    ask_logs(behind, lambda _: pytest.fail("no table is asked for"), rest=0.1)
    assert len(asked) == len(behind)
    assert max(asked) - min(asked) >= 0.2  # 24 questions by 8 threads
