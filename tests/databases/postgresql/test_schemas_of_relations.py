"""What a backlog's relations say of columns that the catalog of now has otherwise: sure numbers, or a backfill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.databases.postgresql.captured import ROW, SourceWorld
from tests.postgresql import PostgresServer
from tidemark.model.codec import from_json
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import (
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
    TableSchema,
)
from tidemark.replication.planning.selection import select
from tidemark.replication.planning.types import SchemaChange, change_of
from tidemark.replication.sources.postgresql.catalog import columns_of, discover
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.source import PostgresSource

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def world(source_server: PostgresServer) -> Iterator[SourceWorld]:
    world = SourceWorld(source_server, "relations")
    yield world
    world.close()


def now(world: SourceWorld) -> TableSchema:
    with connect(world.address) as connection:
        return columns_of(connection, int(next(iter(world.captured))))


def changes(world: SourceWorld, known: TableSchema, *, in_the_log: bool = True) -> list[SchemaChange]:
    """Of each SCHEMA event, as an apply that has `known` sees it."""
    (oid,) = world.captured
    if not in_the_log:
        world.captured[oid] = replace(world.captured[oid], registered=known)
    found = []
    for row in world.rows(schemas={oid: known} if in_the_log else None):
        told = dict(zip(ROW, row, strict=True))
        if told["change"] == "SCHEMA":
            schema = from_json(TableSchema, told["payload"])
            found.append(change_of(known, schema))
            known = schema
    return found


def table(world: SourceWorld, *texts: str) -> TableSchema:
    """Table t, which is replicated, as it is before what the log has."""
    world.sql(*texts)
    world.replicate("t")
    return now(world)


@pytest.mark.parametrize("in_the_log", [True, False])
@pytest.mark.parametrize("before", [(), ("INSERT INTO t VALUES (3, 30)",)])
def test_a_last_column_that_was_made_anew_asks_for_a_backfill(
    world: SourceWorld, in_the_log: bool, before: tuple[str, ...]
) -> None:
    known = table(world, "CREATE TABLE t (id int PRIMARY KEY, c int)", "INSERT INTO t VALUES (1, 10)")
    world.sql(*before, "ALTER TABLE t DROP c, ADD c int DEFAULT 7", "INSERT INTO t VALUES (4, 40)")
    (told,) = [one for one in changes(world, known, in_the_log=in_the_log) if one.is_something]
    assert told.needs_backfill is not None
    assert [one.number for one in told.added] == [3]
    again = now(world)  # as a backfill finds it
    assert not change_of(again, told.new).is_something
    world.sql("INSERT INTO t VALUES (5, 50)")
    assert changes(world, told.new) == []


def test_a_name_that_went_to_another_column_in_one_backlog_is_the_old_column_until_then(world: SourceWorld) -> None:
    known = table(world, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 10)")
    world.sql(
        "ALTER TABLE t ADD z int", "INSERT INTO t VALUES (2, 20, 1)", "ALTER TABLE t RENAME v TO v_old",
        "ALTER TABLE t ADD v int", "INSERT INTO t VALUES (3, 30, 1, 7)",
    )  # fmt: skip
    came, renamed = changes(world, known)
    assert ([one.name for one in came.added], came.dropped, came.needs_backfill) == (["z"], (), None)
    assert [(old.name, new.name) for old, new in renamed.renamed] == [("v", "v_old")]
    assert ([one.number for one in renamed.added], renamed.dropped, renamed.needs_backfill) == ([4], (), None)


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (("ALTER TABLE t RENAME v TO w",), [["id", "w", "x"]]),
        (("ALTER TABLE t DROP v",), [["id", "x"]]),
        (("ALTER TABLE t ADD more int DEFAULT 7",), [["id", "v", "x", "more"]]),
        (("ALTER TABLE t DROP v", "INSERT INTO t DEFAULT VALUES", "ALTER TABLE t ADD z int"),
         [["id", "x"], ["id", "x", "z"]]),
        (("ALTER TABLE t DROP v", "INSERT INTO t DEFAULT VALUES", "ALTER TABLE t DROP x"), [["id", "x"], ["id"]]),
    ],
)  # fmt: skip
def test_an_ordinary_change_in_the_midst_of_a_backlog_asks_for_nothing(
    world: SourceWorld, texts: tuple[str, ...], names: list[list[str]]
) -> None:
    known = table(world, "CREATE TABLE t (id serial PRIMARY KEY, v int, x text)")
    world.sql("INSERT INTO t DEFAULT VALUES", *texts, "INSERT INTO t DEFAULT VALUES")
    told = changes(world, known)
    assert [[column.name for column in one.new.columns] for one in told] == names
    assert {one.needs_backfill for one in told} == {None}


@pytest.mark.parametrize(
    "texts",
    [
        ("ALTER TABLE t ADD z int DEFAULT 7", "INSERT INTO t VALUES (2)", "ALTER TABLE t DROP z"),
        ("ALTER TABLE t ADD z int", "INSERT INTO t VALUES (2)", "ALTER TABLE t DROP z", "ALTER TABLE t ADD z int"),
        ("ALTER TABLE t ADD z uuid NOT NULL DEFAULT gen_random_uuid()", "ALTER TABLE t ALTER z DROP DEFAULT",
         "INSERT INTO t (id, z) VALUES (2, gen_random_uuid())"),
        ("ALTER TABLE t ALTER g DROP EXPRESSION",),
    ],
)  # fmt: skip
def test_a_new_column_whose_old_rows_the_catalog_does_not_tell_asks_for_a_backfill(
    world: SourceWorld, texts: tuple[str, ...]
) -> None:
    known = table(
        world,
        "CREATE TABLE t (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED, v int)",
        "INSERT INTO t VALUES (1)",
    )
    world.sql(*texts, "INSERT INTO t (id) VALUES (3)" if "uuid" not in texts[0] else "DELETE FROM t")
    assert changes(world, known)[0].needs_backfill is not None


def test_the_last_events_of_a_table_that_is_gone_are_of_the_columns_that_were_known(world: SourceWorld) -> None:
    known = table(world, "CREATE TABLE t (id int PRIMARY KEY, v int)")
    world.sql("INSERT INTO t VALUES (1, 1)", "ALTER TABLE t DROP v", "INSERT INTO t VALUES (2)", "DROP TABLE t")
    (dropped,) = changes(world, known)
    assert ([one.name for one in dropped.dropped], dropped.added, dropped.needs_backfill) == (["v"], (), None)


def test_a_column_that_is_not_excluded_any_more_asks_for_a_backfill(world: SourceWorld) -> None:
    known = table(world, "CREATE TABLE t (id int PRIMARY KEY, secret text, v int)", "INSERT INTO t VALUES (1, 's')")
    world.sql("INSERT INTO t VALUES (2, 's')")
    without = TableSchema(tuple(one for one in known.columns if one.name != "secret"))
    (told,) = changes(world, without)
    assert told.needs_backfill == "column secret was added with a default that its log does not have"


def test_the_key_of_a_whole_row_is_the_catalogs_and_one_that_is_less_sure_asks_for_a_backfill(
    world: SourceWorld,
) -> None:
    known = table(
        world,
        "CREATE TABLE t (tenant int NOT NULL DEFAULT 1, id int NOT NULL, CONSTRAINT pk PRIMARY KEY (id))",
        "ALTER TABLE t REPLICA IDENTITY FULL",
    )
    world.sql(
        "ALTER TABLE t DROP CONSTRAINT pk, ADD CONSTRAINT pk PRIMARY KEY (tenant, id)", "INSERT INTO t VALUES (2, 1)"
    )
    (wider,) = changes(world, known)
    assert (wider.new.keys, wider.rekeyed, wider.needs_backfill) == (("tenant", "id"), True, None)
    world.sql("ALTER TABLE t DROP CONSTRAINT pk, ADD CONSTRAINT pk PRIMARY KEY (id)", "INSERT INTO t VALUES (2, 2)")
    (narrower,) = changes(world, wider.new)
    assert (narrower.new.keys, narrower.needs_backfill) == (
        ("id",),
        "its key changed at a time that its log does not show",
    )
    assert not change_of(now(world), narrower.new).is_something
    world.sql("ALTER TABLE t DROP CONSTRAINT pk", "INSERT INTO t VALUES (2, 2)")
    (keyless,) = changes(world, narrower.new)
    assert keyless.needs_backfill == "it no longer has a key"


def test_a_deferrable_key_is_no_key(world: SourceWorld) -> None:
    table(
        world,
        "CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    )
    with connect(world.address) as connection:
        (found,) = discover(connection)
    assert (found.problem, found.keys, found.schema.keys) == (None, (), ())
    world.sql("UPDATE t SET id = id + 1")
    assert {event["key"] for event in world.events()} == {None}


def test_generated_columns_count_as_excluded_so_that_one_that_is_generated_no_more_is_noticed(
    world: SourceWorld,
) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED)")
    options = ReplicationOptions(target="t")
    replication = Replication(
        "u", "r", SourceKind.POSTGRESQL, "c", Selection(), options, "/log", "slot", "p", ReplicationState.RUNNING, AT
    )
    source = PostgresSource(world.address)
    (found,) = select(Selection(), source.discover(replication))
    assert ([column.name for column in found.schema.columns], found.excluded) == (["id"], ("g",))
    assert source.publish(replication, [found]) != ()
    world.sql("ALTER TABLE t ALTER g DROP EXPRESSION")
    (found,) = select(Selection(), source.discover(replication))
    assert ([column.name for column in found.schema.columns], found.excluded) == (["id", "g"], ())
