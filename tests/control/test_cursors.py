"""Parts of lists: any order, walked by cursors, has each row once, whatever comes and goes meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.postgresql import PostgresServer
from tidemark.control.cursors import Listed, ListOrder, Ordered, Part, cursor_after, key_of
from tidemark.control.schema import UtcDateTime
from tidemark.control.words import word_of
from tidemark.errors import CursorInvalid

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
KINDS = (datetime | None, str, int)

rows_of = sa.Table(
    "walked",
    sa.MetaData(),
    sa.Column("at", UtcDateTime),
    sa.Column("name", sa.String(20), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
)

Row = tuple[datetime | None, str, int]
times = st.none() | st.integers(0, 2).map(lambda hours: NOON + timedelta(hours=hours))
rows = st.lists(st.tuples(times, st.sampled_from(["a", "ä", "b's", "%"]), st.integers(-2, 2)), unique=True, max_size=12)


@pytest.fixture(scope="module")
def engines(postgresql: PostgresServer) -> Iterator[tuple[sa.Engine, ...]]:
    made = (sa.create_engine("sqlite://"), sa.create_engine(postgresql.url(postgresql.new_database())))
    for engine in made:
        rows_of.create(engine)
    yield made
    for engine in made:
        engine.dispose()


def order_of(*descending: bool) -> ListOrder:
    of = zip((rows_of.c.at, rows_of.c.name, rows_of.c.number), KINDS, descending, strict=True)
    return ListOrder(f"walked {descending}", tuple(Ordered(column, kind, down) for column, kind, down in of))


def part(connection: sa.Connection, order: ListOrder, asked: Part) -> tuple[list[Row], str | None]:
    query = order.taken(sa.select(rows_of, *order.key), asked)
    found = connection.execute(query).mappings().all()
    shown = [(row["at"], row["name"], row["number"]) for row in found[: asked.limit]]
    return shown, order.cursor(found, asked.limit)


def insert(connection: sa.Connection, made: list[Row]) -> None:
    if made:
        names = ("at", "name", "number")
        connection.execute(rows_of.insert(), [dict(zip(names, row, strict=True)) for row in made])


@settings(max_examples=40, deadline=None)
@given(rows, rows, st.tuples(st.booleans(), st.booleans(), st.booleans()), st.integers(1, 4), st.data())
def test_a_walk_by_cursor_has_each_row_that_stays_once(
    engines: tuple[sa.Engine, ...],
    made: list[Row],
    others: list[Row],
    down: tuple[bool, bool, bool],
    limit: int,
    data: st.DataObject,
) -> None:
    order = order_of(*down)
    comes = [row for row in others if row not in made]
    goes = data.draw(st.lists(st.sampled_from(made), unique=True)) if made else []
    for engine in engines:
        with engine.connect() as connection:
            insert(connection, made)
            whole, none = part(connection, order, Part(limit=100))
            assert (sorted(whole, key=repr), none) == (sorted(made, key=repr), None)
            walked, cursor = part(connection, order, Part(limit))
            for row in goes:
                gone = [c.is_not_distinct_from(value) for c, value in zip(rows_of.c, row, strict=True)]
                connection.execute(rows_of.delete().where(*gone))
            insert(connection, comes)
            while cursor is not None:
                shown, cursor = part(connection, order, Part(limit, cursor=cursor))
                walked += shown
            assert len(walked) == len(set(walked))
            assert [row for row in walked if row in made and row not in goes] == [
                row for row in whole if row not in goes
            ]
            connection.rollback()


def test_nulls_are_last_in_either_direction(engines: tuple[sa.Engine, ...]) -> None:
    made: list[Row] = [(None, "a", 1), (NOON, "b", 1), (NOON + timedelta(hours=1), "c", 1)]
    for engine in engines:
        with engine.connect() as connection:
            insert(connection, made)
            for down, names in ((False, "bca"), (True, "cba")):
                shown, _ = part(connection, order_of(down, False, False), Part())
                assert "".join(name for _, name, _ in shown) == names
            connection.rollback()


def test_an_offset_counts_from_the_cursor_on(engines: tuple[sa.Engine, ...]) -> None:
    order = order_of(False, False, False)
    with engines[0].connect() as connection:
        insert(connection, [(NOON, "a", number) for number in range(6)])
        _, cursor = part(connection, order, Part(2))
        assert part(connection, order, Part(2, 1, cursor))[0] == [(NOON, "a", 3), (NOON, "a", 4)]
        connection.rollback()


@pytest.mark.parametrize("number", [1 << 40, -(1 << 40), (1 << 62) - 1])
def test_a_cursor_with_a_number_beyond_its_column_is_answered(engines: tuple[sa.Engine, ...], number: int) -> None:
    order = order_of(False, False, False)
    for engine in engines:
        with engine.connect() as connection:
            insert(connection, [(NOON, "a", 1)])
            shown, _ = part(connection, order, Part(cursor=cursor_after(order.name, (NOON, "a", number))))
            assert shown == ([(NOON, "a", 1)] if number < 0 else [])
            connection.rollback()


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=3)), unique=True), st.integers(1, 3), st.integers(0, 2))
def test_a_list_in_memory_is_walked_the_same_way(items: list[tuple[int, str]], limit: int, offset: int) -> None:
    try:
        json.dumps(items, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    items = [item for item in items if "\0" not in item[1]]
    listed = Listed[tuple[int, str]]("items", (int, str), lambda item: item)
    walked, cursor = listed.taken(items, Part(limit))
    while cursor is not None:
        shown, cursor = listed.taken(items, Part(limit, cursor=cursor))
        walked += shown
    assert list(walked) == sorted(items)
    assert listed.taken(items, Part(limit, offset))[0] == tuple(sorted(items)[offset : offset + limit])


KEY = (NOON, "ä\u00a0's", -3)


def test_a_cursor_keeps_its_key() -> None:
    assert key_of(cursor_after("l", KEY), "l", KINDS) == KEY
    assert key_of(cursor_after("l", (None, "", 0)), "l", KINDS) == (None, "", 0)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "é", "bnVsbA", "e30", "W10", cursor_after("l", KEY)[:-3], cursor_after("other", KEY),
        cursor_after("l", KEY[:2]), "[" * 4000,
        *(
            word_of(json.dumps(["l", *key]))
            for key in (
                ["2026-11-21T12:00:00", "a", 1], ["noon", "a", 1], [3, "a", 1], [True, "a", 1], [None, None, 1],
                [None, "a", None], [None, "a", True], [None, "a", 1.5], [None, "a", 1 << 63], [None, "a\0", 1],
                [None, "a", -(1 << 63)], ["0001-01-01T00:00:00+14:00", "a", 1], ["9999-12-31T23:00:00-14:00", "a", 1],
                [None, "\ud800", 1], [None, ["a"], 1], [None, {"a": 1}, 1], [None, "a", "1"], [None, 1, 1],
            )
        ),
    ],
)  # fmt: skip
def test_a_text_that_the_list_has_not_given_is_refused(text: str) -> None:
    with pytest.raises(CursorInvalid, match="Begin without a cursor"):
        key_of(text, "l", KINDS)


def test_what_an_order_cannot_compare_is_no_cursor_of_a_list_in_memory() -> None:
    listed: Any = Listed("items", (int, str), lambda item: item)
    with pytest.raises(CursorInvalid):
        listed.taken([], Part(cursor=cursor_after("items", ("a", 1))))
