"""A source is looked at without a replication: databases, schemas, tables, columns, and what keeps a table out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.postgresql import PostgresServer
from tidemark.errors import InvalidArgument, SourceUnreachable
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.model.replication import ObjectName, TypeKind, UnifiedType, WriteMode
from tidemark.replication.model.source_discovery import DiscoveredTable, SourceDiscovery
from tidemark.replication.planning.types import type_text
from tidemark.replication.sources.open import open_source
from tidemark.replication.worker.source_discovery import discover_source

CLERK, OWNER = "discovering_clerk", "discovered_owner"
TABLES = """
SET ROLE discovering_clerk;
CREATE SCHEMA sales;
CREATE SCHEMA empty;
CREATE TABLE sales.orders (
    shop int, id bigint, total numeric(10,2) NOT NULL, tags text[], note text, at timestamptz, amount numeric,
    twice bigint GENERATED ALWAYS AS (id * 2) STORED, PRIMARY KEY (shop, id));
CREATE TABLE sales.log (line text);
CREATE UNLOGGED TABLE sales.scratch (id int PRIMARY KEY);
CREATE VIEW sales.seen AS SELECT id FROM sales.orders;
CREATE TABLE public.items (id int PRIMARY KEY);
INSERT INTO public.items SELECT generate_series(1, 500);
ANALYZE public.items;
RESET ROLE;
CREATE TABLE public.theirs (id int PRIMARY KEY);
ALTER TABLE public.theirs OWNER TO discovered_owner;
"""


@dataclass
class Source:
    """A database, as a user without more rights than a replication takes sees it."""

    server: PostgresServer
    address: SourceAddress

    def look(self, *include: str, **how: Any) -> SourceDiscovery:
        return discover_source(open_source(self.address), self.address.kind, include=include, **how)

    def table(self, name: str, *include: str) -> DiscoveredTable:
        return next(one for one in self.look(*include).tables if one.name.text == name)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.server.sql(text, self.address.database)


@pytest.fixture(scope="module")
def source(source_server: PostgresServer) -> Iterator[Source]:
    database = source_server.new_database()
    made = Source(source_server, replace(source_server.address(database), user=CLERK, password="x"))
    made.sql(f"CREATE ROLE {CLERK} LOGIN REPLICATION PASSWORD 'x'; CREATE ROLE {OWNER}")
    made.sql(f"GRANT CREATE ON DATABASE {database} TO {CLERK}; GRANT ALL ON SCHEMA public TO {CLERK}, {OWNER}")
    made.sql(TABLES)
    yield made
    source_server.sql(f"DROP DATABASE {database} WITH (FORCE)")
    source_server.sql(f"DROP ROLE {CLERK}; DROP ROLE {OWNER}")


def test_databases_schemas_and_tables_are_found_by_name(source: Source) -> None:
    found = source.look()
    assert (found.kind, found.names.database) == (SourceKind.POSTGRESQL, source.address.database)
    assert {source.address.database, "postgres"} <= set(found.names.databases)
    assert "template1" not in found.names.databases
    assert found.names.schemas == ("empty", "public", "sales")
    assert [one.name.text for one in found.tables] == [
        "public.items", "public.theirs", "sales.log", "sales.orders", "sales.scratch",
    ]  # fmt: skip
    assert found.system_id.isdigit()


def test_columns_have_their_native_and_unified_types_and_the_key(source: Source) -> None:
    orders = source.table("sales.orders")
    assert [(one.name, one.native, type_text(one.type), one.nullable) for one in orders.schema.columns] == [
        ("shop", "integer", "integer", False),
        ("id", "bigint", "long", False),
        ("total", "numeric(10,2)", "decimal(10,2)", False),
        ("tags", "text[]", "array<string>", True),
        ("note", "text", "string", True),
        ("at", "timestamp with time zone", "timestamp", True),
        ("amount", "numeric", "string", True),
    ]
    assert (orders.schema.keys, orders.mode, orders.fits) == (("shop", "id"), WriteMode.MERGE, True)
    assert any("generated columns" in notice and "twice" in notice for notice in orders.notices)


def test_rows_are_those_of_the_sources_statistics(source: Source) -> None:
    assert source.table("public.items").rows == 500


def test_a_table_that_cannot_be_replicated_says_why_and_how_to_fix_it(source: Source) -> None:
    (theirs,) = source.table("public.theirs").problems[:1]
    assert "may not be read" in theirs
    problems = " ".join(source.table("public.theirs").problems)
    assert f'GRANT SELECT ON "public"."theirs" TO "{CLERK}"' in problems
    assert f'GRANT "{OWNER}" TO "{CLERK}"' in problems
    assert "unlogged" in " ".join(source.table("sales.scratch").problems).lower()
    log = source.table("sales.log")
    assert (log.fits, log.schema.keys) == (False, ())
    assert 'ALTER TABLE "sales"."log" REPLICA IDENTITY FULL' in " ".join(log.problems)


def test_a_table_fits_once_its_problem_is_fixed(source: Source) -> None:
    source.sql("ALTER TABLE sales.log REPLICA IDENTITY FULL")
    log = source.table("sales.log")
    source.sql("ALTER TABLE sales.log REPLICA IDENTITY DEFAULT")
    assert (log.fits, log.mode) == (True, WriteMode.APPEND_ONLY)


def test_a_bad_table_leaves_the_source_ready_and_a_bad_server_does_not(source: Source) -> None:
    assert source.look().problems == ()
    assert source.look().ready
    assert not source.look("sales.scratch").ready
    source.sql(f"ALTER ROLE {CLERK} NOREPLICATION")
    found = source.look()
    source.sql(f"ALTER ROLE {CLERK} REPLICATION")
    assert (found.ready, source.table("public.items").fits) == (False, True)
    assert [f'ALTER ROLE "{CLERK}" REPLICATION' in one for one in found.problems] == [True]


def test_patterns_choose_schemas_and_tables_and_one_that_fits_nothing_is_named(source: Source) -> None:
    assert {one.name.schema for one in source.look("sales").tables} == {"sales"}
    assert [one.name for one in source.look("*.orders").tables] == [ObjectName("sales", "orders")]
    assert [one.name.text for one in source.look("sales", exclude=("sales.s*", "*.log")).tables] == ["sales.orders"]
    found = source.look("nowhere")
    assert (found.tables, found.ready, [("nowhere" in one) for one in found.notices]) == ((), False, [True])
    with pytest.raises(InvalidArgument):
        source.look("sales.orders.id")


def test_a_view_is_found_by_its_name_alone_and_does_not_fit(source: Source) -> None:
    view = source.table("sales.seen", "sales.seen")
    assert (view.fits, "view" in " ".join(view.problems)) == (False, True)


def test_a_look_makes_nothing_and_leaves_no_session(source: Source) -> None:
    def content() -> list[tuple[Any, ...]]:
        return [
            *source.sql("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"),
            *source.sql("SELECT pubname FROM pg_publication"),
            *source.sql("SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_sys_tables WHERE relname = 'pg_class'"),
            *source.sql(f"SELECT 1 FROM pg_stat_activity WHERE usename = '{CLERK}'"),
        ]

    before = content()
    source.look()
    assert content() == before


def test_a_source_that_cannot_be_reached_is_named(source: Source) -> None:
    away = replace(source, address=replace(source.address, port=1))
    with pytest.raises(SourceUnreachable):
        away.look()


def test_types_are_read_as_text() -> None:
    assert type_text(UnifiedType(TypeKind.DECIMAL)) == "decimal"
    assert type_text(UnifiedType(TypeKind.ARRAY, item=UnifiedType(TypeKind.DECIMAL, 5, 1))) == "array<decimal(5,1)>"
    assert type_text(UnifiedType(TypeKind.ARRAY)) == "array<string>"
