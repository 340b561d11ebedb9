"""The monitor's view of the store: pages of streams in one query, whatever their number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from tidemark.control.cursors import Part
from tidemark.control.object_histories import Portion
from tidemark.control.store import ControlStore
from tidemark.errors import CursorInvalid, StreamNotFound
from tidemark.model.streams import Stream, StreamMode, StreamOffset, TableRef
from tidemark.streams.store import overview, schema, streams
from tidemark.streams.store.overview import SortBy

START = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
MANY = 10_000


def stream(number: int, name: str, source: str = "shop.orders") -> Stream:
    return Stream(
        uid=f"uid-{number:05}",
        name=name,
        source=TableRef(source, f"file:///lake/{source.replace('.', '/')}", "table-1"),
        mode=StreamMode.STANDARD,
        offset=StreamOffset("table-1", number % 7),
        initial_rows_pending=False,
        serial=0,
        created_at=START,
        anchor=START + timedelta(minutes=number),
    )


def fill(store: ControlStore, *made: Stream) -> None:
    store.write(lambda connection: [streams.insert(connection, one, who="test") for one in made])


def names(store: ControlStore, **wish: object) -> list[str]:
    found = store.read(lambda connection: overview.page(connection, **wish))  # type: ignore[arg-type]
    return [row.stream.name for row in found.rows]


def walked(store: ControlStore, **wish: object) -> list[str]:
    """All names, by cursors of pages of 2."""
    found, part = list[str](), Part(2)
    while True:
        shown = store.read(lambda connection, at=part: overview.page(connection, part=at, **wish))  # type: ignore[arg-type]
        found += [row.stream.name for row in shown.rows]
        if shown.cursor is None:
            return found
        part = Part(2, cursor=shown.cursor)


def test_a_cursor_of_another_order_is_refused(store: ControlStore) -> None:
    fill(store, *(stream(n, f"s{n}") for n in range(3)))
    first = store.read(lambda connection: overview.page(connection, part=Part(1)))
    with pytest.raises(CursorInvalid):
        names(store, descending=True, part=Part(1, cursor=first.cursor))


def hold(store: ControlStore, uid: str, *, since: datetime) -> None:
    held = schema.transactions.insert().values(
        id=f"t-{uid}", dag_id="d", run_id="r", task_id=uid, map_index=-1, state="open", serial=1,
        owner="d/r/t/-1#2@h:1", lease_until=since + timedelta(minutes=10), submitted=False, opened_at=since,
    )  # fmt: skip
    store.write(lambda connection: connection.execute(held))
    assert store.write(lambda connection: streams.hold(connection, uid, f"t-{uid}"))


@contextmanager
def counted() -> Iterator[list[str]]:
    seen: list[str] = []

    def see(_c: object, _u: object, statement: str, *_: object) -> None:
        if statement.lstrip().upper().startswith("SELECT"):
            seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", see)
    yield seen
    sa.event.remove(sa.Engine, "before_cursor_execute", see)


def test_a_page_has_its_streams_and_the_number_of_all(store: ControlStore) -> None:
    fill(store, *(stream(n, f"s{n:02}") for n in range(25)))
    found = store.read(lambda connection: overview.page(connection, part=Part(10, 20)))
    assert [row.stream for row in found.rows] == [stream(n, f"s{n:02}") for n in range(20, 25)]
    assert found.total == 25


def test_a_page_past_the_end_has_the_number_of_all_too(store: ControlStore) -> None:
    fill(store, stream(1, "a"))
    assert store.read(lambda connection: overview.page(connection, part=Part(50, 50))) == overview.StreamsPage(1, ())
    assert store.read(lambda connection: overview.page(connection, search="zzz")) == overview.StreamsPage(0, ())


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("ORDER", ["b_Orders", "c"]),
        ("50%", ["a 50%"]),
        ("%", ["a 50%"]),
        ("_orders", ["b_Orders"]),
        ("/lake/shop", ["a 50%", "b_Orders", "c"]),
    ],
)
def test_the_search_is_literal_and_in_any_case(store: ControlStore, search: str, found: list[str]) -> None:
    fill(store, stream(1, "a 50%", "shop.stock"), stream(2, "b_Orders", "shop.stock"), stream(3, "c", "shop.ORDERS"))
    assert names(store, search=search) == found


@pytest.mark.parametrize("search", ["ÄPFEL", "straße", "shop.ÄPFEL_straße"])
def test_the_search_finds_letters_outside_ascii_as_they_are_typed(store: ControlStore, search: str) -> None:
    fill(store, stream(1, "a", "shop.stock"), stream(2, "b", "shop.ÄPFEL_straße"))
    assert names(store, search=search) == ["b"]


def test_every_order_is_total_and_can_be_turned_round(store: ControlStore) -> None:
    fill(store, *(stream(n, f"s{n}", f"t{n % 3}") for n in range(9)))
    hold(store, "uid-00004", since=START)
    hold(store, "uid-00002", since=START + timedelta(hours=1))
    for sort in SortBy:
        for descending in (False, True):
            paged = [
                name
                for at in range(0, 9, 2)
                for name in names(store, sort=sort, descending=descending, part=Part(2, at))
            ]
            assert sorted(paged) == [f"s{n}" for n in range(9)], sort
            assert walked(store, sort=sort, descending=descending) == paged
    assert names(store, sort=SortBy.ADVANCED, descending=True, part=Part(2)) == ["s8", "s7"]
    assert names(store, sort=SortBy.HELD, part=Part(3)) == ["s4", "s2", "s0"]
    assert names(store, sort=SortBy.HELD, descending=True, part=Part(3)) == ["s2", "s4", "s0"]
    assert names(store, only_held=True) == ["s2", "s4"]


def test_a_row_says_who_holds_the_stream_and_which_run_moved_it_last(store: ControlStore) -> None:
    fill(store, stream(3, "a"))
    moves = ((3, 5, "x", "d/r1/t/-1"), (5, 6, "x", "d/r2/t/-1"), (6, 8, streams.PROVEN_EMPTY, "d/r3/t/-1"))
    for expected, to, why, run in (*moves, (8, 9, "x", None)):
        at = START + timedelta(minutes=to)
        assert store.write(
            lambda c, e=expected, t=to, r=run, a=at, y=why: streams.advance_offset(
                c, uid="uid-00003", expected=e, to=t, at=a, who="w", why=y, run=r
            )
        )
    hold(store, "uid-00003", since=START)
    (row,) = store.read(overview.page).rows
    assert row == store.read(lambda connection: overview.find_row(connection, "uid-00003"))
    assert row.commit is not None
    assert (row.commit.to_version, row.commit.run) == (6, "d/r2/t/-1")  # later ones passed no row, or were by hand
    assert row.held is not None
    assert (str(row.held.key), row.held.owner, row.held.since) == ("d/r/uid-00003/-1", "d/r/t/-1#2@h:1", START)


def test_dropped_streams_are_on_no_page(store: ControlStore) -> None:
    fill(store, stream(1, "a"), stream(2, "b"))
    store.write(lambda connection: streams.drop(connection, stream(1, "a"), at=START, who="w", why="dropped"))
    assert names(store) == ["b"]


def test_moves_come_newest_first_and_in_parts(store: ControlStore) -> None:
    fill(store, stream(0, "a"))
    for version in range(1, 6):
        store.write(
            lambda c, v=version: streams.advance_offset(
                c, uid="uid-00000", expected=v - 1, to=v, at=START, who="w", why="x", run=None
            )
        )
    first = store.read(lambda connection: overview.moves_in(connection, "uid-00000", Portion(None, 4)))
    rest = store.read(lambda connection: overview.moves_in(connection, "uid-00000", Portion((first[-1].number,), 4)))
    assert [one.move.to_version for one in (*first, *rest)] == [5, 4, 3, 2, 1, 0]


def test_a_stream_that_never_was_is_not_found(store: ControlStore) -> None:
    with pytest.raises(StreamNotFound):
        store.read(lambda connection: overview.find_row(connection, "nobody"))


def test_a_page_of_10000_streams_is_one_query(store: ControlStore) -> None:
    rows = [stream(n, f"stream_{n:05}") for n in range(MANY)]
    store.write(lambda connection: streams.insert(connection, rows[0], who="test"))
    like = store.read(lambda c: dict(c.execute(sa.select(schema.streams)).mappings().one()))
    more = [{**like, "uid": s.uid, "name": s.name, "folded_name": s.name, "anchor": s.anchor} for s in rows[1:]]
    store.write(lambda connection: connection.execute(schema.streams.insert(), more))
    cursor = store.read(lambda connection: overview.page(connection, part=Part(9_950))).cursor
    for wish in (
        {}, {"part": Part(offset=9_950)}, {"part": Part(cursor=cursor)}, {"search": "9"}, {"sort": SortBy.ADVANCED},
        {"sort": SortBy.HELD},
    ):  # fmt: skip
        with counted() as queries:
            found = store.read(lambda connection, w=wish: overview.page(connection, **w))
        assert len(found.rows) == 50
        assert len(queries) == 1
