"""An existing publication and slot are read as they are: a problem names what would lose a change, and
nothing of them is altered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.postgresql import PostgresServer
from tidemark.errors import SourceRefused
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import (
    Hinders,
    LogPosition,
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
)
from tidemark.replication.planning.selection import select
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.existing_publication import existing_publication
from tidemark.replication.sources.postgresql.publication import COLUMN_LISTS
from tidemark.replication.sources.postgresql.slots import slot_status
from tidemark.replication.sources.postgresql.source import PostgresSource

PATIENCE = timedelta(seconds=20)
TABLES = "CREATE TABLE orders (id int PRIMARY KEY, note text); CREATE TABLE items (id int PRIMARY KEY, n int)"


class Shop:
    """Two tables, their owner, and a user who may read them and the log."""

    def __init__(self, server: PostgresServer) -> None:
        self.server, self.database = server, server.new_database()
        self.owner = server.address(self.database)
        self.address = replace(self.owner, user="reader", password="x")
        self.sql(TABLES)
        self.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        self.replication = Replication(
            uid="uid",
            name="shop",
            kind=SourceKind.POSTGRESQL,
            source_conn_id="shop",
            selection=Selection(("public",)),
            options=ReplicationOptions(target="lake", publication="theirs", slot=self.database.lower()),
            event_log="log",
            slot=self.database.lower(),
            publication="theirs",
            state=ReplicationState.NOT_STARTED,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )

    @property
    def source(self) -> PostgresSource:
        return PostgresSource(self.address)

    def sql(self, text: str) -> None:
        self.server.sql(text, self.database)

    def require_lists(self) -> None:
        with connect(self.owner) as connection:
            if connection.server_version < COLUMN_LISTS:
                pytest.skip("this PostgreSQL has no row filters, lists of columns and schemas in publications")

    def make_slot(self) -> None:
        self.sql(f"SELECT pg_create_logical_replication_slot('{self.replication.slot}', 'pgoutput')")

    def problems(self) -> list[tuple[str, Hinders]]:
        found = self.source.discover(self.replication)
        selected = select(self.replication.selection, found, options=self.replication.options)
        return [(one.text, one.hinders) for one in self.source.problems(self.replication, selected)]

    def mended(self) -> str:
        """The only problem, after its own statement mended it."""
        ((text, _),) = self.problems()
        remedy = text.split(": ", 1)[1]
        for statement in remedy.replace("-- and: ", "").split("; "):
            self.sql(statement)
        assert self.problems() == []
        return text.split(": ", 1)[0]

    def entries(self) -> Mapping[str, str]:
        with connect(self.owner) as connection:
            found = existing_publication(connection, "theirs").tables
            with connection.cursor() as cursor:
                cursor.execute("SELECT oid::bigint, relname FROM pg_class WHERE oid = ANY(%s::oid[])", (list(found),))
                return {name: found[oid].entry for oid, name in cursor.fetchall()}


@pytest.fixture
def shop(source_server: PostgresServer) -> Iterator[Shop]:
    source_server.sql("CREATE ROLE reader LOGIN REPLICATION PASSWORD 'x'")
    shop = Shop(source_server)
    yield shop
    with connect(shop.owner) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s", (shop.database,)
        )
    source_server.sql(f"DROP DATABASE {shop.database} WITH (FORCE)")
    source_server.sql("DROP ROLE reader")


def test_a_user_without_any_right_to_publish_reads_what_is_published_for_them(shop: Shop) -> None:
    assert [text.partition(":")[0] for text, _ in shop.problems()] == [
        "Publication theirs does not exist",
        f"Replication slot {shop.replication.slot} does not exist",
    ]
    shop.sql("CREATE PUBLICATION theirs FOR ALL TABLES")
    with pytest.raises(SourceRefused, match=r"does not exist\. Create it, then try again: SELECT pg_create_logical"):
        shop.source.make_slot(shop.replication, patience=PATIENCE)
    assert shop.mended() == f"Replication slot {shop.replication.slot} does not exist"
    position = shop.source.make_slot(shop.replication, patience=PATIENCE)
    assert isinstance(position, LogPosition)
    assert shop.source.make_slot(shop.replication, patience=PATIENCE) == position
    shop.sql("INSERT INTO orders VALUES (1, 'a')")
    assert shop.source.has_changes(replace(shop.replication, captured=position), shop.source.current_position())


def test_the_statements_of_the_problems_make_them_right(shop: Shop) -> None:
    for text, _ in shop.problems():
        shop.sql(text.split(": ", 1)[1])
    assert shop.problems() == []
    shop.sql("ALTER PUBLICATION theirs SET (publish = 'insert, update')")
    assert shop.mended() == "Publication theirs does not publish all of insert, update, delete and truncate"
    shop.sql("ALTER PUBLICATION theirs DROP TABLE items")
    ((_, hinders),) = shop.problems()
    assert (hinders, shop.mended()) == (Hinders.TABLE, 'public.items is not in publication "theirs"')


def test_filters_and_lists_of_columns_are_told_since_rows_and_values_would_be_missing(shop: Shop) -> None:
    shop.require_lists()
    shop.make_slot()
    shop.sql("CREATE PUBLICATION theirs FOR TABLE items, orders WHERE (id > 5)")
    assert shop.mended() == 'public.orders is published by publication "theirs" without some of its rows'
    shop.sql("ALTER PUBLICATION theirs SET TABLE items, orders (id)")
    assert shop.mended() == 'public.orders is published by publication "theirs" without its columns note'
    shop.sql("ALTER PUBLICATION theirs SET TABLE items, orders (id, note)")
    assert shop.problems() == []
    shop.sql("ALTER TABLE orders ADD COLUMN late int")
    assert shop.mended() == 'public.orders is published by publication "theirs" without its columns late'


def test_a_partitioned_table_must_be_published_under_its_own_name(shop: Shop) -> None:
    shop.make_slot()
    shop.sql(
        "CREATE TABLE days (day int PRIMARY KEY) PARTITION BY RANGE (day); "
        "CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM (0) TO (9); GRANT SELECT ON days, days_1 TO reader; "
        "CREATE PUBLICATION theirs FOR TABLE orders, items, days"
    )
    ((text, _),) = shop.problems()
    assert {"days_1", "orders", "items"} == shop.entries().keys()
    assert text.startswith('public.days is not published under its own name by publication "theirs": ')
    shop.sql("ALTER PUBLICATION theirs SET (publish_via_partition_root = true)")
    assert {"days", "orders", "items"} == shop.entries().keys()
    assert shop.problems() == []


def test_all_tables_of_a_schema_are_published_also_those_that_come_later(shop: Shop) -> None:
    shop.require_lists()
    shop.make_slot()
    shop.sql("CREATE PUBLICATION theirs FOR TABLES IN SCHEMA public")
    assert {"orders", "items"} == shop.entries().keys()
    shop.sql("CREATE TABLE later (id int PRIMARY KEY); GRANT SELECT ON later TO reader")
    assert shop.problems() == []
    shop.sql("CREATE SCHEMA other; ALTER TABLE later SET SCHEMA other")
    assert {"orders", "items"} == shop.entries().keys()


def test_an_entry_is_another_after_each_change_that_may_have_lost_some(shop: Shop) -> None:
    shop.sql("CREATE PUBLICATION theirs FOR TABLE orders")
    first = shop.entries()
    shop.sql("ALTER PUBLICATION theirs ADD TABLE items")
    assert shop.entries()["orders"] == first["orders"]
    shop.sql("ALTER PUBLICATION theirs SET (publish = 'insert'); ")
    shop.sql("ALTER PUBLICATION theirs SET (publish = 'insert, update, delete, truncate')")
    second = shop.entries()
    assert second["orders"] != first["orders"]
    shop.sql("ALTER PUBLICATION theirs DROP TABLE items")
    shop.sql("ALTER PUBLICATION theirs ADD TABLE items")
    assert (shop.entries()["orders"], shop.entries()["items"] != second["items"]) == (second["orders"], True)
    shop.sql("DROP PUBLICATION theirs")
    shop.sql("CREATE PUBLICATION theirs FOR ALL TABLES")
    assert not set(shop.entries().values()) & set(second.values())


def test_what_is_theirs_is_neither_altered_nor_dropped(shop: Shop) -> None:
    shop.make_slot()
    shop.sql("CREATE PUBLICATION theirs FOR TABLE orders, items")
    before, found = shop.entries(), shop.source.discover(shop.replication)
    assert shop.source.publish(shop.replication, found[:1]) == ()
    assert not shop.source.drop_slot(shop.replication)
    assert shop.source.drop(shop.replication) == (
        f"kept replication slot {shop.replication.slot}, which keeps the log until somebody reads or drops it",
        "kept publication theirs",
    )
    with connect(shop.owner) as connection:
        assert slot_status(connection, shop.replication.slot).exists
    assert shop.entries() == before
