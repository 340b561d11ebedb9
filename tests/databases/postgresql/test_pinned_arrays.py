"""A backfill reads an array as its events have it, whatever its items are and however many dimensions it has."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.databases.postgresql.captured import SourceWorld
from tests.postgresql import PostgresServer
from tidemark.databases.postgresql.catalog import columns_of
from tidemark.databases.postgresql.connection import connect
from tidemark.databases.postgresql.pinned import as_read

ITEMS = {  # type → two items as literals of SQL
    "mood": ("sad", "it''s {so}, \"so\""),
    "char(3)": ("a", "b c"),
    "padded": ("a", "b c"),
    "inet": ("10.0.0.1", "10.0.0.0/8"),
    "cidr": ("10.0.0.0/8", "::/0"),
    "bytea": ("\\x01", "\\xff00"),
    "pair": ("(1,x)", '(,"a ""b"" \\\\")'),
    "cents": ("1.10", "2"),
    "box": ("(1,1),(0,0)", "(2,2),(1,1)"),
    "bit(3)": ("101", "000"),
    '"char"': ("a", " "),
    "money": ("1", "2"),
    "xml": ("<a/>", "<b c=\"d\"/>"),
    "int": ("1", "2"),
    "bool": ("t", "f"),
    "text": ("a,b", "NULL"),
    "timestamptz": ("2024-02-29 12:00+09", "infinity"),
    "numeric": ("1.10", "NaN"),
    "float8": ("0.1", "-Infinity"),
}  # fmt: skip


@pytest.fixture
def world(source_server: PostgresServer) -> Iterator[SourceWorld]:
    made = SourceWorld(source_server, "arrays")
    yield made
    made.close()


def test_a_backfill_reads_arrays_as_events_have_them(world: SourceWorld) -> None:
    world.sql(
        "CREATE TYPE mood AS ENUM ('sad', 'it''s {so}, \"so\"')", "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN padded AS char(3)", "CREATE DOMAIN cents AS numeric(9, 2)",
        f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(f'c{n} {kind}[]' for n, kind in enumerate(ITEMS))})",
    )  # fmt: skip
    world.replicate("t")
    for number, form in enumerate(("{0}, NULL, {1}", "[{0}, NULL], [{1}, {0}]", "[[{0}]], [[{1}]]", None, "")):
        arrays = []
        for kind, items in ITEMS.items():
            literals = [f"'{one}'::{kind}" for one in items]
            text = "NULL" if form is None else f"ARRAY[{form.format(*literals)}]::{kind}[]"
            arrays.append(text)
        world.sql(f"INSERT INTO t VALUES ({number}, {', '.join(arrays)})")
    events = [json.loads(event["payload"]) for event in world.events()]
    assert len(events) == 5
    with connect(world.address) as connection, connection.cursor() as cursor:
        columns = columns_of(connection, int(next(iter(world.captured)))).columns[1:]
        cursor.execute(f"SELECT {', '.join(as_read(column) for column in columns)} FROM public.t ORDER BY id")
        rows = cursor.fetchall()
    for event, row in zip(events, rows, strict=True):
        for column, read in zip(columns, row, strict=True):
            logged = event[column.name]
            assert (None if read is None else json.loads(read), column.native) == (
                None if logged is None else json.loads(logged),
                column.native,
            )
