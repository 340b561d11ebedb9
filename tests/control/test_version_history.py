"""A stream's offset over its table's commits: from the store alone, by the versions that looks have seen. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark.control.history import drop_step
from tidemark.control.object_histories import Point, ShownPart, history_of
from tidemark.control.samples import newest_seen
from tidemark.control.schema import samples
from tidemark.control.store import ControlStore
from tidemark.model.streams import StreamMode, TableRef
from tidemark.streams.store.heads import keep_heads, new_heads
from tidemark.streams.store.schema import offset_moves
from tidemark.streams.worker.look_turns import look_in_turn
from tidemark.streams.worker.object_needs import NOTHING_KNOWN
from tidemark.streams.worker.open_looks import OpenLooks
from tidemark.streams.worker.sources import open_table
from tidemark.streams.worker.streams import create_stream

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def uid(copied_store: ControlStore) -> str:
    """A stream that was created at version 5, a day before NOW."""
    copied_store.clock = lambda: NOW - 24 * HOUR
    table = TableRef("shop.orders", "file:///lake/orders", "t")
    return create_stream(
        copied_store, name="s", source=table, mode=StreamMode.STANDARD, at_version=5, who="ana"
    ).uid  # fmt: skip


def seen(store: ControlStore, uid: str, head: int, at: datetime) -> None:
    found = store.read(lambda c: new_heads(c, {uid: head}, at))
    store.write(lambda c: keep_heads(c, found))


def moved(store: ControlStore, uid: str, version: int, at: datetime) -> None:
    row = {"stream_uid": uid, "from_version": 0, "to_version": version, "moved_at": at, "who": "r", "why": "w"}
    store.write(lambda c: c.execute(offset_moves.insert().values(**row)))


def shown(store: ControlStore, uid: str, cursor: str | None = None, limit: int = 100) -> ShownPart:
    (found,) = store.read(lambda c: history_of(c, "stream", uid, part="versions", cursor=cursor, limit=limit))
    return found


def told(points: tuple[Point, ...]) -> list[tuple[float, int | None, int | None, int | None]]:
    """Hours since NOW, offset, head and versions behind, the oldest first."""
    return [
        ((one.values["at"] - NOW) / HOUR, *(one.values[name] for name in ("offset", "head", "behind")))
        for one in reversed(points)
    ]


def test_a_look_keeps_the_newest_version_of_a_table_once(copied_store: ControlStore, tmp_path: Path) -> None:
    table = SyntheticTable(tmp_path / "orders")
    source = TableRef("shop.orders", table.uri, table.table_id)
    made = create_stream(copied_store, name="s", source=source, mode=StreamMode.STANDARD, at_version=0, who="ana")
    for _ in range(3):
        table.append()
    for _ in range(2):
        look_in_turn(copied_store, open_table, NOTHING_KNOWN, [("stream", made.uid)], open_looks=OpenLooks())
    found = shown(copied_store, made.uid).points
    assert [(one.values["offset"], one.values["head"], one.values["behind"]) for one in found] == [(0, 3, 3), (0, 0, 0)]


def test_looks_at_500_streams_are_kept_in_two_statements(copied_store: ControlStore) -> None:
    heads = {f"{number:036}": number for number in range(400)}
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement.split()[0])

    sa.event.listen(copied_store._engine, "before_cursor_execute", note)
    for minute, more in ((0, {}), (1, {}), (2, {f"new {number}": 1 for number in range(100)})):
        wanted, at = {**{uid: head + minute for uid, head in heads.items()}, **more}, NOW + timedelta(minutes=minute)
        found = copied_store.read(lambda c, wanted=wanted, at=at: new_heads(c, wanted, at))  # type: ignore[misc]
        copied_store.write(lambda c, found=found: keep_heads(c, found))  # type: ignore[misc]
    assert [one for one in asked if one in ("INSERT", "UPDATE")] == ["INSERT", "UPDATE", "INSERT", "UPDATE"]
    seen = copied_store.read(lambda c: newest_seen(c, "stream", [*heads, *more]))
    assert {uid: one.figures["head"] for uid, one in seen.items()} == wanted


def test_a_table_that_goes_on_is_drawn_over_an_offset_that_stands_still(copied_store: ControlStore, uid: str) -> None:
    seen(copied_store, uid, 7, NOW)
    seen(copied_store, uid, 9, NOW + 2 * HOUR)
    moved(copied_store, uid, 8, NOW + 3 * HOUR)
    moved(copied_store, uid, 12, NOW + 4 * HOUR)  # no look has seen these commits
    seen(copied_store, uid, 12, NOW + 6 * HOUR)
    assert told(shown(copied_store, uid).points) == [
        (-24, 5, 5, 0), (0, 5, 7, 2), (2, 5, 9, 4), (3, 8, 9, 1), (4, 12, 12, 0), (6, 12, 12, 0),
    ]  # fmt: skip


def test_looks_of_an_hour_are_one_row_and_the_same_version_none(copied_store: ControlStore, uid: str) -> None:
    for minute, head in ((0, 7), (10, 8), (20, 8), (50, 9), (61, 9), (70, 10)):
        seen(copied_store, uid, head, NOW + timedelta(minutes=minute))
    seen(copied_store, uid, 4, NOW)  # a late answer of another process
    assert told(shown(copied_store, uid).points)[1:] == [(50 / 60, 5, 9, 4), (70 / 60, 5, 10, 5)]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_portions_lead_back_and_forth_also_if_clocks_were_wrong(
    copied_store: ControlStore, uid: str, limit: int
) -> None:
    chance = [3, -2, 5, 1, 4, -1, 2]
    for number, hour in enumerate(chance):
        seen(copied_store, uid, 10 + number, NOW + (number * 2 + 10) * HOUR)
        moved(copied_store, uid, 6 + number, NOW + hour * HOUR)
    whole = shown(copied_store, uid).points
    assert len(whole) == 15
    part = shown(copied_store, uid, limit=limit)
    down = list(part.points)
    while part.cursor is not None:
        part = shown(copied_store, uid, part.cursor, limit)
        down += part.points
    assert [one.key for one in down] == [one.key for one in whole]
    assert down == list(whole)
    up = list(part.points)
    while part.newer is not None:
        part = shown(copied_store, uid, part.newer, limit)
        up = [*part.points, *up]
    assert sorted(one.values["at"] for one in up) == sorted(one.values["at"] for one in whole)


def test_what_came_since_is_among_the_newer_points(copied_store: ControlStore, uid: str) -> None:
    for number in range(3):
        moved(copied_store, uid, 6 + number, NOW + number * HOUR)
    first = shown(copied_store, uid, limit=1)
    assert first.cursor is not None
    second = shown(copied_store, uid, first.cursor, limit=1)
    seen(copied_store, uid, 30, NOW + 9 * HOUR)
    assert second.newer is not None
    newer = shown(copied_store, uid, second.newer, limit=9)
    assert told(newer.points) == [(2, 8, 8, 0), (9, 8, 30, 22)]
    assert newer.newer is None


def test_old_looks_are_dropped_with_other_history_and_the_newest_stays(store: ControlStore) -> None:
    for hour in range(5):
        seen(store, "u", hour, NOW + hour * HOUR)
    late = NOW + 99 * HOUR
    step = store.write(lambda c: drop_step(c, "samples of objects", before=late, after=None, most=100))
    assert step.dropped == 4
    assert store.read(lambda c: c.execute(sa.select(samples.c.moved_at)).scalar_one()) == NOW + 4 * HOUR
