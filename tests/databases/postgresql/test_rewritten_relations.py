"""What relations in the log say of old rows, with the last look at the catalog: no NULL that is none, less doubt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.databases.postgresql.captured import ROW, SourceWorld
from tests.postgresql import PostgresServer
from tidemark.model.codec import from_plain
from tidemark.replication.model.replication import TableSchema
from tidemark.replication.planning.seen_tables import beyond, carried
from tidemark.replication.planning.types import SchemaChange, change_of
from tidemark.replication.sources.postgresql.catalog import columns_of
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.fingerprints import seen_tables

UNKNOWN = "column c was added with a default that its log does not have"


@pytest.fixture
def world(source_server: PostgresServer) -> Iterator[SourceWorld]:
    world = SourceWorld(source_server, "rewritten")
    world.sql("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 10)")
    world.replicate("t")
    yield world
    world.close()


def look(world: SourceWorld) -> TableSchema:
    """As a run does it, with what the one before has seen."""
    (oid,) = world.captured
    one = world.captured[oid]
    with connect(world.address) as connection:
        found = columns_of(connection, int(oid))
        seen = carried(one.seen, seen_tables(connection, [int(oid)])[oid])
    registered = found if one.registered is None else one.registered
    world.captured[oid] = replace(one, registered=registered, seen=seen)
    return registered


def change(world: SourceWorld) -> SchemaChange:
    """The last one that the log has, to what was registered; jobs are told no more than they need."""
    (oid,) = world.captured
    one = world.captured[oid]
    if one.seen is not None:
        world.captured[oid] = replace(one, seen=beyond(one.seen, one.registered))
    rows = [dict(zip(ROW, row, strict=True)) for row in world.rows()]
    schemas = [json.loads(row["payload"]) for row in rows if row["change"] == "SCHEMA"]
    assert one.registered is not None
    return change_of(one.registered, from_plain(TableSchema, schemas[-1]))


DEFAULT = ("ALTER TABLE t ADD c int DEFAULT 5", "ALTER TABLE t ALTER c DROP DEFAULT")


def test_a_default_that_was_dropped_before_a_rewrite_needs_a_backfill_and_is_not_taken_for_null(
    world: SourceWorld,
) -> None:
    look(world)
    world.sql(*DEFAULT, "VACUUM FULL t", "INSERT INTO t VALUES (2)")
    assert change(world).needs_backfill == UNKNOWN


def test_without_a_look_nothing_tells_of_the_rewrite(world: SourceWorld) -> None:
    """The fault as it was, and as it is for an object of which nothing was seen yet."""
    look(world)
    (oid,) = world.captured
    world.captured[oid] = replace(world.captured[oid], seen=None)
    world.sql(*DEFAULT, "VACUUM FULL t", "INSERT INTO t VALUES (2)")
    assert change(world).needs_backfill is None


def test_a_look_before_the_rewrite_remembers_the_value(world: SourceWorld) -> None:
    look(world)
    world.sql(*DEFAULT)
    look(world)
    world.sql("VACUUM FULL t")
    look(world)
    world.sql("INSERT INTO t VALUES (2)")
    told = change(world)
    assert (told.needs_backfill, [(one.name, one.filled) for one in told.added]) == (None, [("c", "5")])


@pytest.mark.parametrize(
    "texts",
    [
        ("ALTER TABLE t ALTER c SET DEFAULT 7",),
        ("UPDATE t SET c = 1", "ALTER TABLE t ALTER c SET NOT NULL"),
        ("ALTER TABLE t ALTER c SET DEFAULT 7", "INSERT INTO t (id) VALUES (3)", "ALTER TABLE t ALTER c DROP DEFAULT"),
    ],
)
@pytest.mark.parametrize("looked", [True, False])
def test_a_column_that_got_its_default_later_is_null_in_old_rows_without_a_doubt(
    world: SourceWorld, texts: tuple[str, ...], looked: bool
) -> None:
    look(world)
    world.sql("ALTER TABLE t ADD c int")
    if looked:
        look(world)
    world.sql(*texts, "INSERT INTO t VALUES (2, 2, 2)")
    told = change(world)
    assert (told.needs_backfill, [(one.name, one.filled) for one in told.added]) == (None, [("c", None)])


def test_a_type_that_a_rewrite_made_needs_a_backfill_and_one_without_does_not(world: SourceWorld) -> None:
    world.sql("ALTER TABLE t ADD v varchar(3)")
    look(world)
    world.sql("ALTER TABLE t ALTER v TYPE text", "INSERT INTO t VALUES (2)")
    assert change(world).needs_backfill is None
    world.sql("ALTER TABLE t ALTER n TYPE bigint USING n * 100", "INSERT INTO t VALUES (3)")
    told = change(world)
    assert told.needs_backfill == "column n changed its type from integer to bigint, and its rows were rewritten"
