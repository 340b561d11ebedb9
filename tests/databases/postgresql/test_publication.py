"""A publication is exactly what was asked for, and never breaks the application whose tables it names."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import psycopg
import psycopg2.extensions
import pytest

from tests.databases.postgresql.captured import SourceWorld
from tests.postgresql import PostgresServer
from tidemark.errors import ObjectNotReplicable, SourceLocked, SourceRefused
from tidemark.model.source_address import SourceAddress
from tidemark.replication.sources.postgresql.catalog import CatalogTable, discover
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.publication import (
    COLUMN_LISTS,
    GENERATED,
    PublishedTable,
    drop_publication,
    ensure_publication,
    publication_state,
)

NAME = 'tidemark "P"'
_TABLES = """
CREATE SCHEMA "S, 1";
CREATE TABLE "S, 1"."a ""b"".c" (id int PRIMARY KEY, "x y" text, secret text);
CREATE TABLE keyed (id int PRIMARY KEY, note text, secret text);
CREATE TABLE key_full (id int PRIMARY KEY, note text, secret text);
ALTER TABLE key_full REPLICA IDENTITY FULL;
CREATE TABLE only_full (id int, note text, secret text);
ALTER TABLE only_full REPLICA IDENTITY FULL;
CREATE TABLE by_index (id int NOT NULL, note text, secret text);
CREATE UNIQUE INDEX by_index_key ON by_index (id);
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_key;
CREATE TABLE generated (id int PRIMARY KEY, note text, secret text, twice int GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE parent (id int PRIMARY KEY, note text, secret text);
CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
CREATE TABLE childless_key () INHERITS (parent);
CREATE TABLE parted (id int PRIMARY KEY, note text, secret text) PARTITION BY RANGE (id);
CREATE TABLE part_low PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE part_full PARTITION OF parted FOR VALUES FROM (10) TO (20);
ALTER TABLE part_full REPLICA IDENTITY FULL;
CREATE TABLE no_key (id int, note text, secret text);
CREATE TABLE nothing (id int PRIMARY KEY, note text, secret text);
ALTER TABLE nothing REPLICA IDENTITY NOTHING;
CREATE TABLE put_off (id int PRIMARY KEY DEFERRABLE, note text, secret text);
CREATE TABLE lost_index (id int NOT NULL, note text, secret text);
CREATE UNIQUE INDEX lost_index_key ON lost_index (id);
ALTER TABLE lost_index REPLICA IDENTITY USING INDEX lost_index_key;
DROP INDEX lost_index_key;
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, note text, secret text);
CREATE VIEW a_view AS SELECT 1 AS id;
"""


@pytest.fixture(scope="module")
def template(source_server: PostgresServer) -> str:
    name = source_server.new_database()
    source_server.sql(_TABLES, name)
    return name


@pytest.fixture
def address(source_server: PostgresServer, template: str) -> SourceAddress:
    return source_server.address(source_server.new_database(template=template))


@pytest.fixture
def connection(address: SourceAddress) -> Iterator[psycopg2.extensions.connection]:
    with connect(address) as opened:
        yield opened


def _tables(connection: psycopg2.extensions.connection) -> dict[str, CatalogTable]:
    return {table.name.table: table for table in discover(connection)}


def _publish(connection: psycopg2.extensions.connection, *names: str) -> tuple[str, ...]:
    known = _tables(connection)
    return ensure_publication(connection, NAME, [PublishedTable(known[name].oid) for name in names])


def test_a_publication_is_made_once(connection: psycopg2.extensions.connection) -> None:
    (made,) = _publish(connection, "keyed", 'a "b".c')
    assert made.startswith(
        'CREATE PUBLICATION "tidemark ""P""" FOR TABLE ONLY "public"."keyed", ONLY "S, 1"."a ""b"".c"'
    )
    assert _publish(connection, 'a "b".c', "keyed") == ()
    state = publication_state(connection, NAME)
    assert (state.exists, state.alterable, state.wide, state.plain) == (True, True, False, True)
    assert sorted(name.text for name, _ in state.tables.values()) == ['S, 1.a "b".c', "public.keyed"]
    assert drop_publication(connection, NAME) is True
    assert drop_publication(connection, NAME) is False


def test_an_empty_publication_can_be_made_and_filled(connection: psycopg2.extensions.connection) -> None:
    assert len(_publish(connection)) == 1
    assert _publish(connection) == ()
    assert _publish(connection, "keyed") == ('ALTER PUBLICATION "tidemark ""P""" ADD TABLE ONLY "public"."keyed"',)


def test_what_is_asked_for_replaces_what_was_and_follows_a_rename(
    source_server: PostgresServer, address: SourceAddress, connection: psycopg2.extensions.connection
) -> None:
    _publish(connection, "keyed", "by_index")
    changed = _publish(connection, "keyed", "key_full")
    assert changed == (
        'ALTER PUBLICATION "tidemark ""P""" DROP TABLE ONLY "public"."by_index"',
        'ALTER PUBLICATION "tidemark ""P""" ADD TABLE ONLY "public"."key_full"',
    )
    wanted = [PublishedTable(_tables(connection)[name].oid) for name in ("keyed", "key_full")]
    source_server.sql("ALTER TABLE keyed RENAME TO renamed", address.database)
    assert ensure_publication(connection, NAME, wanted) == ()


def test_a_child_is_not_published_with_its_parent(connection: psycopg2.extensions.connection) -> None:
    _publish(connection, "parent")
    assert [name.table for name, _ in publication_state(connection, NAME).tables.values()] == ["parent"]


def test_the_application_can_still_change_every_table_that_is_published(
    source_server: PostgresServer, address: SourceAddress, connection: psycopg2.extensions.connection
) -> None:
    tables = [table for table in discover(connection) if table.problem is None]
    names = {"keyed", "key_full", "only_full", "by_index", "generated", "parent", "child", "parted"}
    assert names < {table.name.table for table in tables}
    for excluded in ((), ("secret",)):
        ensure_publication(connection, NAME, [PublishedTable(table.oid, excluded) for table in tables])
        for table in tables:
            name = f'"{table.name.schema}"."{table.name.table.replace(chr(34), chr(34) * 2)}"'
            for text in (
                f"INSERT INTO {name} (id, secret) VALUES (1, 's'), (15, 's')",
                f"UPDATE {name} SET secret = 't'",
                f"UPDATE {name} SET id = id + 2",
                f"DELETE FROM {name}",
                f"TRUNCATE {name}",
            ):
                source_server.sql(text, address.database)


@pytest.mark.parametrize("table", ["no_key", "nothing", "put_off", "lost_index"])
def test_a_table_that_the_application_could_not_update_is_refused_before_anything_is_published(
    source_server: PostgresServer, address: SourceAddress, connection: psycopg2.extensions.connection, table: str
) -> None:
    with pytest.raises(ObjectNotReplicable, match=f"public.{table} cannot be replicated.*ALTER TABLE"):
        _publish(connection, "keyed", table)
    assert not publication_state(connection, NAME).exists
    _publish(connection, "keyed")
    with pytest.raises(ObjectNotReplicable):
        _publish(connection, table)
    assert [name.table for name, _ in publication_state(connection, NAME).tables.values()] == ["keyed"]
    source_server.sql(f"INSERT INTO {table} VALUES (1)", address.database)
    source_server.sql(f"UPDATE {table} SET note = 'x'", address.database)
    source_server.sql(f"CREATE PUBLICATION by_hand FOR TABLE {table}", address.database)
    with pytest.raises(psycopg.Error, match="does not have a replica identity"):  # what would have happened
        source_server.sql(f"UPDATE {table} SET note = 'x'", address.database)


@pytest.mark.parametrize("table", ["unlogged", "a_view", "part_low"])
def test_what_has_no_log_of_its_own_is_refused(connection: psycopg2.extensions.connection, table: str) -> None:
    with pytest.raises(ObjectNotReplicable, match=f"public.{table} "):
        _publish(connection, table)


def test_a_table_that_was_dropped_is_refused(connection: psycopg2.extensions.connection) -> None:
    with pytest.raises(ObjectNotReplicable, match="OID 1 cannot be replicated: it was dropped"):
        ensure_publication(connection, NAME, [PublishedTable(1)])


def test_all_columns_are_published_also_where_one_is_excluded_so_that_a_new_one_is_in_the_log(
    connection: psycopg2.extensions.connection,
) -> None:
    known = _tables(connection)
    asked = [PublishedTable(known[name].oid, ("secret",)) for name in ("keyed", "key_full", "generated", "parted")]
    ensure_publication(connection, NAME, asked)
    assert {columns for _, columns in publication_state(connection, NAME).tables.values()} == {None}
    assert ensure_publication(connection, NAME, [replace(asked[0], excluded=("note",)), *asked[1:]]) == ()
    with pytest.raises(ObjectNotReplicable, match=r"key columns are excluded \(id\)"):
        ensure_publication(connection, NAME, [replace(asked[0], excluded=("id",))])


def test_a_publication_that_somebody_altered_is_put_right(
    source_server: PostgresServer, address: SourceAddress, connection: psycopg2.extensions.connection
) -> None:
    _publish(connection, "keyed", "parted")
    for text in (
        "SET (publish = 'insert')",
        "SET (publish_via_partition_root = false)",
        "SET TABLE by_index, no_key",
        "SET TABLE keyed WHERE (id > 5), parted",
        "SET TABLE keyed (id, note), parted",
    ):
        if connection.server_version < COLUMN_LISTS and ("WHERE" in text or "(id, note)" in text):
            continue
        source_server.sql(f'ALTER PUBLICATION "tidemark ""P""" {text}', address.database)
        assert _publish(connection, "keyed", "parted") != ()
        assert _publish(connection, "keyed", "parted") == ()


def test_a_publication_of_all_tables_is_refused(
    source_server: PostgresServer, address: SourceAddress, connection: psycopg2.extensions.connection
) -> None:
    source_server.sql('CREATE PUBLICATION "tidemark ""P""" FOR ALL TABLES', address.database)
    with pytest.raises(SourceRefused, match=r'nobody listed.*DROP PUBLICATION "tidemark ""P"""'):
        _publish(connection, "keyed")


def test_what_a_user_may_not_do_is_refused_with_the_statement_that_allows_it(
    source_server: PostgresServer, address: SourceAddress, connection: psycopg2.extensions.connection
) -> None:
    source_server.sql("DROP ROLE IF EXISTS publisher")
    source_server.sql("CREATE ROLE publisher LOGIN PASSWORD 'x'")
    keyed = [PublishedTable(_tables(connection)["keyed"].oid)]
    with connect(replace(address, user="publisher", password="x")) as plain:
        with pytest.raises(SourceRefused, match=f"GRANT CREATE ON DATABASE {address.database} TO publisher"):
            ensure_publication(plain, NAME, keyed)
        source_server.sql(f"GRANT CREATE ON DATABASE {address.database} TO publisher")
        with pytest.raises(
            SourceRefused,
            match=r"must be owner of table keyed.*ALTER TABLE public.keyed OWNER TO publisher; -- or: GRANT postgres",
        ):
            ensure_publication(plain, NAME, keyed)
        source_server.sql("ALTER TABLE keyed OWNER TO publisher", address.database)
        assert len(ensure_publication(plain, NAME, keyed)) == 1
        source_server.sql(f'ALTER PUBLICATION "tidemark ""P""" OWNER TO {address.user}', address.database)
        for act in (lambda: ensure_publication(plain, NAME, keyed), lambda: drop_publication(plain, NAME)):
            with pytest.raises(SourceRefused, match=r'belongs to postgres.*OWNER TO "publisher"'):
                act()


def test_a_locked_table_is_waited_for_only_so_long_and_nothing_is_half_done(
    address: SourceAddress, connection: psycopg2.extensions.connection
) -> None:
    _publish(connection, "keyed")
    known = _tables(connection)
    with connect(address, autocommit=False) as locker:
        locker.cursor().execute("LOCK TABLE public.by_index IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(SourceRefused, match="lock timeout"):
            ensure_publication(
                connection, NAME, [PublishedTable(known["by_index"].oid)], patience=timedelta(milliseconds=200)
            )
        locker.rollback()
    assert [name.table for name, _ in publication_state(connection, NAME).tables.values()] == ["keyed"]
    assert len(_publish(connection, "by_index")) == 2


def test_a_prepared_transaction_that_has_a_table_locked_is_waited_for_no_longer_than_others(
    address: SourceAddress, connection: psycopg2.extensions.connection
) -> None:
    """Only autovacuum ends for who waits as long as `deadlock_timeout`; meanwhile others wait behind it."""
    keyed = _tables(connection)["keyed"].oid
    connection.cursor().execute("SET deadlock_timeout = '30s'")
    with connect(address, autocommit=False) as other:
        other.cursor().execute("LOCK TABLE public.keyed IN SHARE MODE; PREPARE TRANSACTION 'locks_keyed'")
    try:
        began = time.monotonic()
        with pytest.raises(SourceLocked):
            ensure_publication(connection, NAME, [PublishedTable(keyed)], patience=timedelta(0))
        assert time.monotonic() - began < 20
    finally:
        connection.cursor().execute("ROLLBACK PREPARED 'locks_keyed'")


def test_generated_columns_are_in_events_where_the_server_publishes_them_and_listed_where_not(
    source_server: PostgresServer,
) -> None:
    world = SourceWorld(source_server, "generated")
    try:
        world.sql("CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, n int)")
        world.replicate("t")
        with connect(world.address) as connection:
            (oid,) = map(int, world.captured)
            made = ensure_publication(connection, "p", [PublishedTable(oid)])
            assert ensure_publication(connection, "p", [PublishedTable(oid)]) == ()
            publishes = connection.server_version >= GENERATED
            (table,) = (one for one in discover(connection) if one.oid == oid)
        world.sql("INSERT INTO t VALUES (3)")
        (event,) = world.events()
        assert len(made) == 1
        if publishes:
            assert table.generated == ()
            assert json.loads(event["payload"]) == {"id": "3", "twice": "6", "n": None}
        else:
            assert table.generated == ("twice",)
            assert json.loads(event["payload"]) == {"id": "3", "n": None}
    finally:
        world.close()
