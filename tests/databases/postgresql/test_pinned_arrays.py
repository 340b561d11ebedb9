"""A backfill reads an array as its events have it, whatever its items are and however many dimensions it has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.databases.postgresql.captured import SourceWorld
from tests.postgresql import PostgresServer
from tidemark.replication.model.replication import Shown
from tidemark.replication.planning.hiding import hasher
from tidemark.replication.sources.postgresql.catalog import columns_of
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.pinned import as_read, hash_properties

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


@pytest.mark.parametrize("secret", ["a secret of sixteen", "long " * 20, "ż" * 32])
def test_a_hash_in_a_copy_is_that_in_events(world: SourceWorld, secret: str) -> None:
    """To the byte, as of another text there would be another hash, and another key."""
    world.hash_secret = secret
    world.sql("CREATE TYPE mood AS ENUM ('sad', 'it''s {so}, \"so\"')", "CREATE TYPE pair AS (a int, b text)",
              "CREATE DOMAIN padded AS char(3)", "CREATE DOMAIN cents AS numeric(9, 2)")  # fmt: skip
    kinds = [*ITEMS, *(f"{kind}[]" for kind in ITEMS)]
    world.sql(f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(f'c{n} {kind}' for n, kind in enumerate(kinds))})")
    world.replicate("t")
    for number in range(2):
        items = [f"'{found[number]}'::{kind}" for kind, found in ITEMS.items()]
        arrays = [f"ARRAY[{one}, NULL, {one}]::{kind}[]" for one, kind in zip(items, ITEMS, strict=True)]
        world.sql(f"INSERT INTO t VALUES ({number}, {', '.join((*items, *arrays))})")
    controls = "E'\\x01\\x7f\\u2028\\t\\\\\"/'"
    both = f"c{kinds.index('text')}, c{kinds.index('text[]')}"
    world.sql(f"INSERT INTO t (id, {both}) VALUES (2, {controls}, ARRAY[{controls}])")
    events = [json.loads(event["payload"]) for event in world.events()]
    told = hasher(secret)
    events = [{name: text if text is None else told(text) for name, text in event.items()} for event in events]
    address = replace(world.address, parameters=hash_properties(secret))  # as the driver of a backfill is told
    with connect(address) as connection, connection.cursor() as cursor:
        columns = columns_of(connection, int(next(iter(world.captured)))).columns
        texts = [as_read(replace(column, shown=Shown.HASHED)) for column in columns]
        cursor.execute(f"SELECT {', '.join(texts)} FROM public.t ORDER BY id")
        copied = [dict(zip((one.name for one in columns), row, strict=True)) for row in cursor.fetchall()]
    assert copied == events
