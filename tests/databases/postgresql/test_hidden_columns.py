"""Events of columns that are hidden: by number and by pattern, whatever they are called when the log is read."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.databases.postgresql.captured import ROW, SourceWorld
from tests.postgresql import PostgresServer
from tidemark.model.codec import from_plain
from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import Selection, TableSchema
from tidemark.replication.planning.seen_tables import carried
from tidemark.replication.planning.showing import chosen_columns, held_columns
from tidemark.replication.planning.types import change_of
from tidemark.replication.sources.postgresql.catalog import columns_of
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.fingerprints import seen_tables

SECRET = "a secret of sixteen"
PRIVATE = "123-45-6789"


def hashed(text: str) -> str:
    return hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()


@pytest.fixture
def world(source_server: PostgresServer) -> Iterator[SourceWorld]:
    world = SourceWorld(source_server, "hidden")
    world.hash_secret = SECRET
    yield world
    world.close()


def looked_at(world: SourceWorld, rules: ColumnRules) -> TableSchema:
    """Table t with these rules, as a run has looked at it; what the lake has of it."""
    if not world.captured:
        world.replicate("t")
    (oid,) = world.captured
    one = world.captured[oid]
    with connect(world.address) as connection:
        found, seen = columns_of(connection, int(oid)), seen_tables(connection, [int(oid)])[oid]
    rules = replace(rules, held=held_columns(rules, one.name, found))
    chosen = chosen_columns(rules, one.name, found, ())
    world.captured[oid] = replace(
        one, rules=rules, seen=carried(None, seen), registered=chosen.schema, keys=chosen.schema.keys,
        excluded=tuple(column.name for column in chosen.left),
    )  # fmt: skip
    return chosen.schema


def told(world: SourceWorld) -> list[dict[str, Any]]:
    """The events, with payloads parsed; a schema is one, too."""
    named = [dict(zip(ROW, row, strict=True)) for row in world.rows()]
    return [{**row, "payload": json.loads(row["payload"])} for row in named]


def payloads(world: SourceWorld) -> list[dict[str, Any]]:
    return [row["payload"] for row in told(world) if row["change"] != "SCHEMA"]


EXCLUDED = ColumnRules(Selection(exclude=("public.t.ssn*",)))
MAKE = "CREATE TABLE t (id int PRIMARY KEY, ssn text DEFAULT '123-45-6789', name text)"
ROW_OF_T = f"INSERT INTO t VALUES (1, '{PRIVATE}', 'Ann')"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("ALTER TABLE t RENAME ssn TO social", ROW_OF_T), [{"id": "1", "name": "Ann"}]),
        ((ROW_OF_T, "ALTER TABLE t RENAME ssn TO social", "UPDATE t SET name = 'B'"),
         [{"id": "1", "name": "Ann"}, {"id": "1", "name": "B"}]),
        (("ALTER TABLE t RENAME ssn TO social", ROW_OF_T, "ALTER TABLE t DROP social"), [{"id": "1", "name": "Ann"}]),
        (("ALTER TABLE t RENAME ssn TO x", "ALTER TABLE t RENAME name TO ssn", "ALTER TABLE t RENAME x TO name",
          ROW_OF_T), [{"id": "1"}]),
        (("ALTER TABLE t ADD ssn_2 text", f"INSERT INTO t VALUES (1, 'x', 'Ann', '{PRIVATE}')"),
         [{"id": "1", "name": "Ann"}]),
        (("ALTER TABLE t RENAME ssn TO social", ROW_OF_T, "DROP TABLE t"), [{"id": "1", "name": "Ann"}]),
        (("ALTER TABLE t REPLICA IDENTITY FULL", "ALTER TABLE t RENAME ssn TO social", ROW_OF_T, "DELETE FROM t"),
         [{"id": "1", "name": "Ann"}, {"id": "1", "name": "Ann"}]),
    ],
)  # fmt: skip
def test_an_excluded_column_stays_out_whatever_it_is_called(
    world: SourceWorld, texts: tuple[str, ...], expected: list[dict[str, str]]
) -> None:
    world.sql(MAKE)
    looked_at(world, EXCLUDED)
    world.sql(*texts)
    assert payloads(world) == expected
    assert PRIVATE not in str(told(world))


def test_a_column_of_which_nobody_knows_which_it_was_is_left_out_beside_hidden_ones(world: SourceWorld) -> None:
    world.sql(MAKE)
    known = looked_at(world, EXCLUDED)
    world.sql(  # two columns went and came: which was called what when is nowhere
        "ALTER TABLE t RENAME ssn TO a", "ALTER TABLE t ADD b text", f"INSERT INTO t VALUES (1, '{PRIVATE}', 'A', 'b')",
        "ALTER TABLE t DROP b", "ALTER TABLE t DROP a", "ALTER TABLE t ADD a text",
    )  # fmt: skip
    events = told(world)
    assert PRIVATE not in str(events)
    assert next(row["payload"] for row in events if row["change"] != "SCHEMA")["id"] == "1"
    assert known.keys == ("id",)


def test_masked_and_hashed_values_are_nowhere_in_the_events(world: SourceWorld) -> None:
    world.sql(
        "CREATE TABLE t (id text PRIMARY KEY, n int, b bytea, f bool, a text[], name text, free text)",
        "ALTER TABLE t REPLICA IDENTITY FULL", "ALTER TABLE t ALTER name SET STORAGE EXTERNAL",
    )  # fmt: skip
    rules = ColumnRules(
        mask=("public.t.name",), hash=("public.t.id", "public.t.n", "public.t.b", "public.t.f", "public.t.a")
    )
    schema = looked_at(world, rules)
    assert [one.shown.value for one in schema.columns] == [*["hashed"] * 5, "masked", "plain"]
    assert schema.keys == ("id",)
    world.sql(
        f"INSERT INTO t VALUES ('{PRIVATE}', 7, '\\x00ff', true, '{{a,\"b c\",NULL}}', 'Ann {PRIVATE}', 'x')",
        f"UPDATE t SET id = '{PRIVATE}+', name = NULL, n = NULL",
        "DELETE FROM t",
    )
    events = told(world)
    assert PRIVATE not in str(events)
    inserted, gone, moved, deleted = (row for row in events if row["change"] != "SCHEMA")
    assert inserted["payload"] == {
        "id": hashed(PRIVATE), "n": hashed("7"), "b": hashed("00ff"), "f": hashed("true"),
        "a": hashed('["a","b c",null]'), "name": "****", "free": "x",
    }  # fmt: skip
    assert (gone["key"], moved["old_key"]) == (f'["{hashed(PRIVATE)}"]',) * 2
    assert moved["key"] == deleted["key"] == f'["{hashed(PRIVATE + "+")}"]'
    assert (moved["payload"]["name"], moved["payload"]["n"]) == (None, None)


def test_a_default_of_a_hidden_column_is_in_no_schema(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    rules = ColumnRules(Selection(exclude=("public.t.e",)), mask=("public.t.m",), hash=("public.t.h",))
    known = looked_at(world, rules)
    added = "ALTER TABLE t ADD {} text DEFAULT '123-45-6789'"
    world.sql(*(added.format(name) for name in "emh"), "INSERT INTO t VALUES (2)")
    schema, event = told(world)
    assert PRIVATE not in str((schema, event))
    assert event["payload"] == {"id": "2", "m": "****", "h": hashed(PRIVATE)}
    change = change_of(known, from_plain(TableSchema, schema["payload"]))
    assert change.needs_backfill == "column m was added with a default that its log does not have"


def test_a_column_that_is_hidden_from_now_on_asks_for_a_backfill(world: SourceWorld) -> None:
    world.sql(MAKE, ROW_OF_T)
    plain = looked_at(world, ColumnRules())
    for rules, how in ((ColumnRules(mask=("public.t.ssn",)), "masked"), (ColumnRules(hash=("*.t.ssn",)), "hashed")):
        assert change_of(plain, looked_at(world, rules)).needs_backfill == f"column ssn is {how} now, and was plain"


def test_a_key_that_comes_to_have_a_masked_or_excluded_column_is_none(world: SourceWorld) -> None:
    world.sql(MAKE.replace("ssn text", "ssn text NOT NULL"))
    for rules in (EXCLUDED, ColumnRules(mask=("public.t.ssn",))):
        known = looked_at(world, rules)
        world.sql("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, ssn)", ROW_OF_T, "DELETE FROM t")
        schemas = [row["payload"] for row in told(world) if row["change"] == "SCHEMA"]
        assert change_of(known, from_plain(TableSchema, schemas[-1])).needs_backfill == "it no longer has a key"
        assert PRIVATE not in str(told(world))
        world.sql("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id)")
