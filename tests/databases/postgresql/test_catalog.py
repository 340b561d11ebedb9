"""What discovery tells of a real database: names, columns, types, keys, and why something is not replicable."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import psycopg2.extensions
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.postgresql import PostgresServer
from tidemark.errors import InvalidArgument, ObjectNotReplicable
from tidemark.replication.model.replication import Column, ObjectName, TypeKind, UnifiedType
from tidemark.replication.sources.postgresql.catalog import (
    CatalogTable,
    columns_of,
    discover,
    read_from,
    server_facts,
    types_of,
)
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.identities import Identity, RelationKind
from tidemark.replication.sources.postgresql.names import qualified, quoted
from tidemark.replication.sources.postgresql.publication import PublishedTable, drop_publication, ensure_publication

K = TypeKind
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=15).filter(
    lambda text: not text.startswith("pg_")
)  # up to 60 bytes
STRING = UnifiedType(K.STRING)
_TABLES = """
CREATE SCHEMA "Ünï ""quoted"" schema";
CREATE SCHEMA shop;
CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text NOT NULL);
CREATE TABLE "Ünï ""quoted"" schema"."Tëst. Täble `x`" ("ID" int, "id" int, "a b.c" text, PRIMARY KEY ("id", "ID"));
CREATE TABLE shop.gone_columns (a int, b text, c int, PRIMARY KEY (c));
ALTER TABLE shop.gone_columns DROP COLUMN b;
CREATE TABLE shop.no_key (a int);
CREATE TABLE shop.no_key_full (a int);
ALTER TABLE shop.no_key_full REPLICA IDENTITY FULL;
CREATE TABLE shop.key_full (a int, b int PRIMARY KEY);
ALTER TABLE shop.key_full REPLICA IDENTITY FULL;
CREATE TABLE shop.by_index (a int, b int NOT NULL, c int NOT NULL, PRIMARY KEY (a));
CREATE UNIQUE INDEX by_index_key ON shop.by_index (c, b) INCLUDE (a);
ALTER TABLE shop.by_index REPLICA IDENTITY USING INDEX by_index_key;
CREATE TABLE shop.lost_index (a int NOT NULL);
CREATE UNIQUE INDEX lost_index_key ON shop.lost_index (a);
ALTER TABLE shop.lost_index REPLICA IDENTITY USING INDEX lost_index_key;
DROP INDEX shop.lost_index_key;
CREATE TABLE shop.nothing (a int PRIMARY KEY);
ALTER TABLE shop.nothing REPLICA IDENTITY NOTHING;
CREATE TABLE shop.deferrable (a int PRIMARY KEY DEFERRABLE);
CREATE TABLE shop.generated (a int PRIMARY KEY, twice int GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE shop.generated_key (a int, twice int GENERATED ALWAYS AS (a * 2) STORED PRIMARY KEY);
CREATE TABLE shop.nothing_logged (twice int GENERATED ALWAYS AS (2) STORED);
CREATE TABLE shop.identity_column (a int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE UNLOGGED TABLE shop.unlogged (a int PRIMARY KEY);
CREATE VIEW shop.a_view AS SELECT 1 AS a;
CREATE MATERIALIZED VIEW shop.stored_view AS SELECT 1 AS a;
CREATE FOREIGN DATA WRAPPER nothing_behind;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing_behind;
CREATE FOREIGN TABLE shop.far_away (a int) SERVER elsewhere;
CREATE TABLE shop.parent (a int PRIMARY KEY);
CREATE TABLE shop.child (b int, PRIMARY KEY (a)) INHERITS (shop.parent);
CREATE TABLE shop.parted (a int, b int, PRIMARY KEY (a)) PARTITION BY RANGE (a);
CREATE TABLE shop.parted_low PARTITION OF shop.parted FOR VALUES FROM (0) TO (10);
CREATE TABLE shop.parted_high PARTITION OF shop.parted FOR VALUES FROM (10) TO (99) PARTITION BY RANGE (a);
CREATE TABLE shop.parted_highest PARTITION OF shop.parted_high FOR VALUES FROM (50) TO (99);
CREATE TABLE shop.parted_full (a int PRIMARY KEY) PARTITION BY RANGE (a);
ALTER TABLE shop.parted_full REPLICA IDENTITY FULL;
CREATE TABLE shop.parted_no_key (a int) PARTITION BY RANGE (a);
CREATE TABLE shop.parted_mixed (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE TABLE shop.part_of_mixed PARTITION OF shop.parted_mixed FOR VALUES FROM (0) TO (10);
ALTER TABLE shop.part_of_mixed REPLICA IDENTITY NOTHING;
CREATE TABLE shop.parted_unlogged (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE UNLOGGED TABLE shop.part_unlogged PARTITION OF shop.parted_unlogged FOR VALUES FROM (0) TO (10);
INSERT INTO shop.parted SELECT n FROM generate_series(0, 89) AS n WHERE n < 10 OR n >= 50;
ANALYZE shop.parted_low; ANALYZE shop.parted_highest;
"""


@pytest.fixture(scope="module")
def database(source_server: PostgresServer) -> str:
    name = source_server.new_database()
    source_server.sql(_TABLES, name)
    return name


@pytest.fixture
def connection(source_server: PostgresServer, database: str) -> Iterator[psycopg2.extensions.connection]:
    with connect(source_server.address(database)) as opened:
        yield opened


@pytest.fixture
def found(connection: psycopg2.extensions.connection) -> dict[str, CatalogTable]:
    return {table.name.text: table for table in discover(connection)}


def test_names_are_told_as_they_are(found: dict[str, CatalogTable]) -> None:
    odd = next(table for table in found.values() if "quoted" in table.name.schema)
    assert odd.name == ObjectName('Ünï "quoted" schema', "Tëst. Täble `x`")
    assert [column.name for column in odd.schema.columns] == ["ID", "id", "a b.c"]
    assert odd.schema.keys == ("ID", "id")  # in the table's order
    assert odd.keys == ("id", "ID")  # in the key's
    assert not [name for name in found if name.startswith(("pg_", "information_schema"))]


def test_columns_are_those_that_the_log_has(found: dict[str, CatalogTable]) -> None:
    integer = UnifiedType(K.INTEGER)
    assert found["shop.gone_columns"].schema.columns == (
        Column("a", integer, "integer", number=1),
        Column("c", integer, "integer", key=True, nullable=False, number=3),
    )
    assert [column.name for column in found["shop.generated"].schema.columns] == ["a"]
    assert found["shop.generated"].generated == ("twice",)
    assert found["shop.orders"].schema.columns[1] == Column("note", STRING, "text", nullable=False, number=2)
    assert found["shop.child"].schema.keys == ("a",)


@pytest.mark.parametrize(
    ("table", "identity", "keys"),
    [
        ("orders", Identity.DEFAULT, ("id",)),
        ("no_key_full", Identity.FULL, ()),
        ("key_full", Identity.FULL, ("b",)),
        ("by_index", Identity.INDEX, ("c", "b")),
        ("identity_column", Identity.DEFAULT, ("a",)),
        ("parent", Identity.DEFAULT, ("a",)),
        ("child", Identity.DEFAULT, ("a",)),
        ("parted", Identity.DEFAULT, ("a",)),
    ],
)
def test_a_row_is_known_by_what_the_log_has_of_it(
    found: dict[str, CatalogTable], table: str, identity: Identity, keys: tuple[str, ...]
) -> None:
    one = found[f"shop.{table}"]
    assert (one.problem, one.identity, one.keys) == (None, identity, keys)
    one.require_replicable()


FULL = 'ALTER TABLE "shop"."{}" REPLICA IDENTITY FULL'
DEFAULT = 'ALTER TABLE "shop"."{}" REPLICA IDENTITY DEFAULT'


@pytest.mark.parametrize(
    ("table", "problem", "remedy"),
    [
        ("no_key", "neither a primary key nor another replica identity", FULL),
        ("nothing", "REPLICA IDENTITY NOTHING", DEFAULT),
        ("lost_index", "lost the index", FULL),
        ("deferrable", "deferrable", FULL),
        ("generated_key", "generated columns (twice)", FULL),
        ("nothing_logged", "no column that is in the log", "Add a column"),
        ("unlogged", "is unlogged", 'ALTER TABLE "shop"."unlogged" SET LOGGED'),
        ("a_view", "is a view", "Replicate the tables that it reads."),
        ("stored_view", "is a materialized view", "Replicate the tables that it reads."),
        ("far_away", "is a foreign table", "Replicate it from that server."),
        ("parted_low", "is a partition of shop.parted", "Name shop.parted instead."),
        ("parted_highest", "is a partition of shop.parted,", "Name shop.parted instead."),
        ("parted_no_key", "neither a primary key", 'ALTER TABLE "shop"."parted_no_key" ADD PRIMARY KEY'),
        ("parted_full", "REPLICA IDENTITY FULL, which new partitions do not get", DEFAULT),
        ("parted_mixed", "a partition, shop.part_of_mixed, with REPLICA IDENTITY NOTHING", DEFAULT),
        ("parted_unlogged", "a partition, shop.part_unlogged, that is not an ordinary table (unlogged", "Detach it."),
    ],
)
def test_what_cannot_be_replicated_says_why_and_what_to_do(
    found: dict[str, CatalogTable], table: str, problem: str, remedy: str
) -> None:
    one = found[f"shop.{table}"]
    remedy = remedy.format("part_of_mixed" if table == "parted_mixed" else table)
    with pytest.raises(ObjectNotReplicable) as caught:
        one.require_replicable()
    assert problem in str(caught.value)
    assert remedy in str(caught.value)
    assert f"shop.{table} cannot be replicated" in str(caught.value)


def test_all_tables_means_tables(found: dict[str, CatalogTable]) -> None:
    named_only = {name for name, table in found.items() if not table.by_default}
    assert {
        f"shop.{name}" for name in ("a_view", "stored_view", "far_away", "parted_low", "parted_highest")
    } <= named_only
    assert {found[f"shop.{name}"].by_default for name in ("orders", "no_key", "unlogged", "parted")} == {True}


def test_a_temporary_table_is_told_as_such(source_server: PostgresServer, database: str) -> None:
    with connect(source_server.address(database)) as connection:
        connection.cursor().execute("CREATE TEMPORARY TABLE passing (a int PRIMARY KEY)")
        (table,) = [one for one in discover(connection) if one.name.table == "passing"]
        assert (table.kind, table.by_default) == (RelationKind.TEMPORARY, False)
        assert "belongs to one session" in str(table.problem)


def test_rows_of_a_partitioned_table_are_those_of_its_partitions(found: dict[str, CatalogTable]) -> None:
    assert found["shop.parted"].rows == 50
    assert found["shop.parted"].size == found["shop.parted_low"].size + found["shop.parted_highest"].size > 0
    assert found["shop.orders"].rows == 0


def test_every_column_has_a_type(source_server: PostgresServer) -> None:
    database = source_server.new_database()
    source_server.sql(
        """
        CREATE DOMAIN cents AS numeric(12,2) CHECK (VALUE >= 0); CREATE DOMAIN positive_cents AS cents;
        CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE pair AS (a int, b text);
        CREATE DOMAIN moods AS mood[]; CREATE SCHEMA "O'Brien"; CREATE TYPE "O'Brien"."Own Type" AS ENUM ('x');
        """,
        database,
    )
    item = STRING
    wanted = {
        "boolean": UnifiedType(K.BOOLEAN),
        "smallint": UnifiedType(K.SMALLINT),
        "integer": UnifiedType(K.INTEGER),
        "bigint": UnifiedType(K.LONG),
        "oid": UnifiedType(K.LONG),
        "real": UnifiedType(K.FLOAT),
        "double precision": UnifiedType(K.DOUBLE),
        "numeric": STRING,
        "numeric(10,2)": UnifiedType(K.DECIMAL, 10, 2),
        "numeric(5,0)": UnifiedType(K.DECIMAL, 5, 0),
        "numeric(39,2)": STRING,
        "numeric(3,-2)": UnifiedType(K.DECIMAL, 5, 0),
        "numeric(3,5)": UnifiedType(K.DECIMAL, 5, 5),
        "text": STRING,
        "character varying(5)": STRING,
        "character(5)": STRING,
        "bytea": UnifiedType(K.BYTES),
        "date": UnifiedType(K.DATE),
        "timestamp(3) without time zone": UnifiedType(K.DATETIME),
        "timestamp with time zone": UnifiedType(K.TIMESTAMP),
        "time without time zone": STRING,
        "interval": STRING,
        "json": UnifiedType(K.JSON),
        "jsonb": UnifiedType(K.JSON),
        "uuid": STRING,
        "inet": STRING,
        "int4range": STRING,
        "int4multirange": STRING,
        "money": STRING,
        "bit(3)": STRING,
        "xml": STRING,
        "point": STRING,
        "tsvector": STRING,
        "int2vector": STRING,
        "integer[]": UnifiedType(K.ARRAY, item=UnifiedType(K.INTEGER)),
        "numeric(6,3)[]": UnifiedType(K.ARRAY, item=UnifiedType(K.DECIMAL, 6, 3)),
        "timestamp with time zone[]": UnifiedType(K.ARRAY, item=UnifiedType(K.TIMESTAMP)),
        "public.cents": UnifiedType(K.DECIMAL, 12, 2),
        "public.positive_cents": UnifiedType(K.DECIMAL, 12, 2),
        "public.cents[]": UnifiedType(K.ARRAY, item=UnifiedType(K.DECIMAL, 12, 2)),
        "public.mood": STRING,
        "public.mood[]": UnifiedType(K.ARRAY, item=item),
        "public.moods": UnifiedType(K.ARRAY, item=item),
        "public.pair": STRING,
        "public.pair[]": UnifiedType(K.ARRAY, item=item),
        '"O\'Brien"."Own Type"': STRING,
    }
    version = int((source_server.data / "PG_VERSION").read_text())
    newer = {"int4multirange": 14, "numeric(3,-2)": 15, "numeric(3,5)": 15}
    wanted = {text: kind for text, kind in wanted.items() if newer.get(text, 0) <= version}
    columns = ", ".join(f"c{number} {text}" for number, text in enumerate(wanted))
    source_server.sql(f"CREATE TABLE every_type (id int PRIMARY KEY, {columns})", database)
    with connect(source_server.address(database)) as connection:
        (table,) = discover(connection)
        told = {column.native: column.type for column in table.schema.columns[1:]}
        assert told == wanted
        (chosen,) = discover(connection, numeric_as="decimal(38,9)")
        assert chosen.schema.columns[8].type == UnifiedType(K.DECIMAL, 38, 9)
        with pytest.raises(InvalidArgument, match="numeric_as"):
            discover(connection, numeric_as="decimal(40,2)")
        known = types_of(connection, [(23, -1), (1700, 655366), (4294967295, -1)])
        assert {pair: native.unified for pair, native in known.items()} == {
            (23, -1): UnifiedType(K.INTEGER),
            (1700, 655366): UnifiedType(K.DECIMAL, 10, 2),
            (4294967295, -1): STRING,  # a type that was dropped
        }


def test_what_older_rows_have_in_a_new_column_is_told_where_the_catalog_knows_it(
    source_server: PostgresServer,
) -> None:
    database = source_server.new_database()
    source_server.sql("CREATE DOMAIN seven AS int DEFAULT 7; CREATE TYPE mood AS ENUM ('sad')", database)
    source_server.sql("CREATE TABLE t (id serial PRIMARY KEY); INSERT INTO t DEFAULT VALUES", database)
    added = {  # those first that write the table anew
        "volatile float DEFAULT random()": (None, True),
        "own_sequence int GENERATED ALWAYS AS IDENTITY": (None, True),
        "nothing int": (None, False),
        "seven int DEFAULT 7": ("7", False),
        "seven_then_nine int DEFAULT 7": ("7", False),
        "text text DEFAULT 'it''s {a,\"b\"}'": ('it\'s {a,"b"}', False),
        "empty text DEFAULT ''": ("", False),
        "null_text text DEFAULT 'NULL'": ("NULL", False),
        "at timestamptz DEFAULT '2024-02-29 12:00+09'": ("2024-02-29 03:00:00+00", False),
        "mood public.mood DEFAULT 'sad'": ("sad", False),
        "flag bool DEFAULT true": ("true", False),
        "bytes bytea DEFAULT '\\x00ff'": ("00ff", False),
        "items int[] DEFAULT '{1,NULL,3}'": ('["1",null,"3"]', False),
        "box box DEFAULT '(1,1),(0,0)'": ("(1,1),(0,0)", False),
        "boxes box[] DEFAULT '{(1,1),(0,0);NULL}'": ('["(1,1),(0,0)",null]', False),
    }
    for column in added:
        source_server.sql(f"ALTER TABLE t ADD COLUMN {column}", database)
    source_server.sql("ALTER TABLE t ALTER COLUMN seven_then_nine SET DEFAULT 9", database)
    with connect(source_server.address(database)) as other:
        (table,) = discover(other)
        columns = columns_of(other, table.oid).columns[1:]
        assert [(one.filled, one.unknown_fill) for one in columns] == list(added.values())
        assert {(one.filled, one.unknown_fill) for one in table.schema.columns} == {(None, False)}
        source_server.sql("VACUUM FULL t", database)
        columns = columns_of(other, table.oid).columns[1:]
        assert [one.unknown_fill for one in columns] == [text != "nothing int" for text in added]
        assert {one.filled for one in columns} == {None}
        assert columns_of(other, 1).columns == ()


def test_what_rows_of_a_partitioned_table_have_is_told_by_its_partitions(source_server: PostgresServer) -> None:
    database = source_server.new_database()
    source_server.sql(
        "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (9); INSERT INTO t VALUES (1);"
        "ALTER TABLE t ADD COLUMN plain int; ALTER TABLE t ADD COLUMN seven int DEFAULT 7",
        database,
    )
    with connect(source_server.address(database)) as connection:
        oid = next(table.oid for table in discover(connection) if table.name.table == "t")
        told = [(one.filled, one.unknown_fill) for one in columns_of(connection, oid).columns]
        assert told == [(None, False), (None, False), ("7", False)]
        source_server.sql("CREATE TABLE high PARTITION OF t FOR VALUES FROM (9) TO (99)", database)
        told = [(one.filled, one.unknown_fill) for one in columns_of(connection, oid).columns]
        assert told == [(None, False), (None, False), (None, True)]  # a partition that may have been filled before


def test_rows_are_read_from_where_their_log_is(
    connection: psycopg2.extensions.connection, found: dict[str, CatalogTable]
) -> None:
    assert read_from(connection, found["shop.parent"].oid) == 'ONLY "shop"."parent"'
    assert read_from(connection, found["shop.parted"].oid) == '"shop"."parted"'
    with pytest.raises(ObjectNotReplicable, match="was dropped"):
        read_from(connection, 1)


def test_discovery_does_not_wait_for_a_table_that_is_locked(source_server: PostgresServer, database: str) -> None:
    address = source_server.address(database)
    with connect(address, autocommit=False) as locker, connect(address) as connection:
        locker.cursor().execute("LOCK TABLE shop.orders, shop.parted IN ACCESS EXCLUSIVE MODE")
        connection.cursor().execute("SET statement_timeout = '5s'")
        assert discover(connection)


def test_facts_of_the_server(source_server: PostgresServer, connection: psycopg2.extensions.connection) -> None:
    facts = server_facts(connection)
    (system,) = source_server.sql("SELECT system_identifier::text FROM pg_control_system()")[0]
    assert facts.system_id == system
    assert facts.version // 10000 == int((source_server.data / "PG_VERSION").read_text())
    assert (facts.wal_level, facts.in_recovery, facts.max_slots) == ("logical", False, 40)
    assert facts.now.utcoffset() is not None


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(NAMES, min_size=4, max_size=4, unique=True))
def test_any_name_goes_through_discovery_publication_and_remedies(
    source_server: PostgresServer, database: str, connection: psycopg2.extensions.connection, names: list[str]
) -> None:
    schema, table, key, column = names
    name = ObjectName(schema, table)
    source_server.sql(f"CREATE SCHEMA {quoted(schema)}", database)
    try:
        source_server.sql(
            f"CREATE TABLE {qualified(name)} ({quoted(key)} int NOT NULL, {quoted(column)} text)",
            database,
        )
        (found,) = [one for one in discover(connection) if one.name == name]
        assert [one.name for one in found.schema.columns] == [key, column]
        source_server.sql(str(found.remedy), database)
        source_server.sql(f"ALTER TABLE {qualified(name)} ADD PRIMARY KEY ({quoted(key)})", database)
        source_server.sql(f"ALTER TABLE {qualified(name)} REPLICA IDENTITY DEFAULT", database)
        tables = [PublishedTable(found.oid, (column,))]
        assert len(ensure_publication(connection, schema, tables)) == 1
        assert ensure_publication(connection, schema, tables) == ()
        assert drop_publication(connection, schema)
        assert columns_of(connection, found.oid).keys == (key,)
    finally:
        source_server.sql(f"DROP SCHEMA {quoted(schema)} CASCADE", database)
