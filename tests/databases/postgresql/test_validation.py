"""Whatever keeps a database from being replicated is told before anything starts, with the statement that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import psycopg2.extensions
import pytest

from tests.postgresql import PostgresServer, postgresql_or_skip
from tidemark.errors import SourceRefused
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import ReplicationOptions, TableSchema, WriteMode
from tidemark.replication.sources.postgresql.catalog import CatalogTable, discover
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.publication import PublishedTable, ensure_publication
from tidemark.replication.sources.postgresql.slots import create_slot, current_position, drop_slot, exported_snapshot
from tidemark.replication.sources.postgresql.validation import Problem, validate

PATIENCE = timedelta(seconds=20)
SLOT, PUBLICATION = "tidemark_validated", "tidemark_validated"
MERGE = ReplicationOptions(target="lake")


@pytest.fixture
def address(source_server: PostgresServer) -> SourceAddress:
    database = source_server.new_database()
    source_server.sql("CREATE TABLE orders (id int PRIMARY KEY, note text); CREATE TABLE no_key (a int)", database)
    return source_server.address(database)


@pytest.fixture
def plain(source_server: PostgresServer, address: SourceAddress) -> Iterator[SourceAddress]:
    """The same database for a user who may nothing."""
    source_server.sql("CREATE ROLE \"pl'ain\" LOGIN PASSWORD 'x'")
    yield replace(address, user="pl'ain", password="x")
    source_server.sql(f"DROP DATABASE {address.database} WITH (FORCE)")
    source_server.sql('DROP ROLE "pl\'ain"')


def _problems(address: SourceAddress, *names: str) -> tuple[Problem, ...]:
    with connect(address) as connection:
        return validate(connection, _tables(connection, *names), slot=SLOT, publication=PUBLICATION, options=MERGE)


def _tables(connection: psycopg2.extensions.connection, *names: str) -> list[CatalogTable]:
    return [table for table in discover(connection) if table.name.table in names]


def _with_system(server: PostgresServer, address: SourceAddress, problem: Problem) -> None:
    """Runs the statement of the remedy as an administrator would."""
    server.sql(problem.remedy, address.database)


def test_nothing_is_wrong_with_what_is_right(address: SourceAddress) -> None:
    assert _problems(address, "orders") == ()


def test_each_missing_right_is_told_and_its_statement_mends_it(
    source_server: PostgresServer, plain: SourceAddress
) -> None:
    user, database = '"pl\'ain"', plain.database
    source_server.sql("REVOKE USAGE ON SCHEMA public FROM PUBLIC", database)
    found = _problems(plain, "orders")
    assert [problem.remedy for problem in found] == [
        f"ALTER ROLE {user} REPLICATION",
        f'GRANT CREATE ON DATABASE "{database}" TO {user}',
        f'GRANT USAGE ON SCHEMA "public" TO {user}',
        f'GRANT SELECT ON "public"."orders" TO {user}',
        f'GRANT "postgres" TO {user}; -- or: ALTER TABLE "public"."orders" OWNER TO {user}',
    ]
    assert all(problem.text.startswith(problem.object) and problem.remedy in problem.text for problem in found)
    for problem in found[:4]:
        _with_system(source_server, plain, problem)
    assert _problems(plain, "orders") == found[4:]
    source_server.sql(f"ALTER TABLE orders OWNER TO {user}", database)
    assert _problems(plain, "orders") == ()
    with connect(plain) as connection:  # and then it works
        (orders,) = _tables(connection, "orders")
        ensure_publication(connection, PUBLICATION, [PublishedTable(orders.oid)])
        create_slot(plain, SLOT, patience=PATIENCE)
        with exported_snapshot(plain, patience=PATIENCE):
            assert _problems(plain, "orders") == ()
        assert drop_slot(connection, SLOT)


def test_the_remedies_for_a_user_who_owns_nothing_mend_it_too(
    source_server: PostgresServer, plain: SourceAddress
) -> None:
    for problem in _problems(plain, "orders"):
        _with_system(source_server, plain, problem)
    assert _problems(plain, "orders") == ()
    source_server.sql('REVOKE postgres FROM "pl\'ain"')


def test_a_table_that_an_administrator_published_needs_no_owner(
    source_server: PostgresServer, plain: SourceAddress
) -> None:
    source_server.sql(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE orders", plain.database)
    found = {problem.object: problem for problem in _problems(plain, "orders")}
    assert found[f"Publication {PUBLICATION}"].remedy == f'ALTER PUBLICATION "{PUBLICATION}" OWNER TO "pl\'ain"'
    assert "may not be read" in found["public.orders"].what


def test_only_columns_that_are_wanted_must_be_readable(source_server: PostgresServer, plain: SourceAddress) -> None:
    source_server.sql('GRANT SELECT (id) ON orders TO "pl\'ain"; ALTER TABLE no_key OWNER TO "pl\'ain"', plain.database)
    with connect(plain) as connection:
        (orders,) = _tables(connection, "orders")
        told = validate(connection, [orders], slot=SLOT, publication=PUBLICATION, options=MERGE)
        assert 'GRANT SELECT ("note") ON "public"."orders" TO "pl\'ain"' in [problem.remedy for problem in told]
        less = replace(orders, schema=TableSchema(orders.schema.columns[:1]))
        told = validate(connection, [less], slot=SLOT, publication=PUBLICATION, options=MERGE)
        assert not [problem for problem in told if "may not be read" in problem.what]


def test_row_security_that_hides_rows_is_told(source_server: PostgresServer, plain: SourceAddress) -> None:
    source_server.sql("ALTER TABLE orders ENABLE ROW LEVEL SECURITY; GRANT SELECT ON orders TO PUBLIC", plain.database)
    (problem,) = [one for one in _problems(plain, "orders") if "row security" in one.what]
    _with_system(source_server, plain, problem)
    assert not [one for one in _problems(plain, "orders") if "row security" in one.what]


def test_tables_that_cannot_be_replicated_are_told_all_at_once(address: SourceAddress) -> None:
    (problem,) = _problems(address, "orders", "no_key")
    assert problem.object == "public.no_key"
    assert 'ALTER TABLE "public"."no_key" REPLICA IDENTITY FULL' in problem.text


def test_a_table_that_is_dropped_meanwhile_is_told(source_server: PostgresServer, address: SourceAddress) -> None:
    with connect(address) as connection:
        tables = _tables(connection, "orders")
        source_server.sql("DROP TABLE orders", address.database)
        (problem,) = validate(connection, tables, slot=SLOT, publication=PUBLICATION, options=MERGE)
    assert problem.text.startswith("public.orders was dropped")


def test_names_that_would_fall_together_are_told(source_server: PostgresServer, address: SourceAddress) -> None:
    source_server.sql(
        'CREATE SCHEMA a; CREATE SCHEMA a_b; CREATE SCHEMA "A"; CREATE TABLE a.b_c (id int PRIMARY KEY);'
        'CREATE TABLE a_b.c (id int PRIMARY KEY); CREATE TABLE "A".b_c (id int PRIMARY KEY);'
        'CREATE TABLE twice (id int PRIMARY KEY, "Id" int, "ID" int, "Ä" int, "ä" int)',
        address.database,
    )
    targets, *columns = _problems(address, "b_c", "c", "twice", "orders")
    assert targets.object == "A.b_c and a.b_c and a_b.c"
    assert [problem.what for problem in columns] == [
        "has columns that differ by case only, id and Id and ID",
        "has columns that differ by case only, Ä and ä",
    ]


def test_a_slot_and_a_publication_of_others_are_told(source_server: PostgresServer, address: SourceAddress) -> None:
    source_server.sql(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES", address.database)
    source_server.sql(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'test_decoding')", address.database)
    try:
        slot, publication = _problems(address, "orders")
        assert "test_decoding" in slot.what
        assert "nobody listed" in publication.what
        source_server.sql(slot.remedy, address.database)
        source_server.sql(publication.remedy, address.database)
        assert _problems(address, "orders") == ()
    finally:
        source_server.sql(
            f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{SLOT}'"
        )


def test_a_slot_without_its_publication_is_told(address: SourceAddress) -> None:
    create_slot(address, SLOT, patience=PATIENCE)
    try:
        (problem,) = _problems(address, "orders")
        assert "no publication any more" in problem.what
    finally:
        with connect(address) as connection:
            drop_slot(connection, SLOT)


def test_slots_and_senders_that_are_all_taken_are_told(source_server: PostgresServer, address: SourceAddress) -> None:
    free = 39 - int(str(source_server.sql("SELECT count(*) FROM pg_replication_slots")[0][0]))
    fill = f"SELECT pg_create_physical_replication_slot('filler_' || n) FROM generate_series(1, {free}) AS n"
    source_server.sql(fill)
    try:
        (problem,) = _problems(address, "orders")
        assert "has 40 replication slots, 39 of them in use" in problem.what
        assert "ALTER SYSTEM SET max_replication_slots = 50" in problem.remedy
    finally:
        source_server.sql(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name ~ '^filler_'"
        )
    assert _problems(address, "orders") == ()


@pytest.fixture(scope="module")
def small_server() -> Iterator[PostgresServer]:
    """A server as it comes out of the box, with little room."""
    with postgresql_or_skip(("wal_level=replica", "max_wal_senders=1", "max_replication_slots=1")) as server:
        yield server


def test_a_server_as_it_comes_out_of_the_box_is_told_all_that_it_lacks(small_server: PostgresServer) -> None:
    address = small_server.address("postgres")
    level, slots, senders = _problems(address)
    assert level.remedy == "ALTER SYSTEM SET wal_level = logical; -- then restart the server"
    assert "has 1 replication slots, 0 of them in use" in slots.what
    assert "has 1 WAL senders, 0 of them in use" in senders.what
    for act in (
        lambda: create_slot(address, SLOT, patience=PATIENCE),
        lambda: exported_snapshot(address, patience=PATIENCE).__enter__(),
    ):
        with pytest.raises(SourceRefused, match="ALTER SYSTEM SET wal_level = logical"):
            act()
    for problem in (level, slots, senders):
        small_server.sql(problem.remedy)
    small_server.restart()
    assert _problems(address) == ()


def test_a_standby_is_told_and_makes_no_slot(small_server: PostgresServer) -> None:
    address = small_server.address("postgres")
    small_server.stop()
    signal = small_server.data / "standby.signal"
    signal.touch()
    small_server.start()
    try:
        assert "is a standby" in _problems(address)[0].what
        for act in (
            lambda: create_slot(address, SLOT, patience=PATIENCE),
            lambda: exported_snapshot(address, patience=PATIENCE).__enter__(),
        ):
            with pytest.raises(SourceRefused, match="Connect to the primary"):
                act()
        with pytest.raises(SourceRefused, match="recovery is in progress"), connect(address) as connection:
            current_position(connection)
    finally:
        small_server.stop()
        signal.unlink()
        small_server.start()


def test_columns_that_the_target_has_for_itself_are_told_until_they_are_excluded(
    source_server: PostgresServer, address: SourceAddress
) -> None:
    source_server.sql(
        'CREATE TABLE events (a int, "Is_Deleted" bool); ALTER TABLE events REPLICA IDENTITY FULL; '
        "CREATE TABLE soft (id int PRIMARY KEY, is_deleted bool)",
        address.database,
    )
    with connect(address) as connection:
        events, soft = _tables(connection, "events", "soft")
        (problem,) = validate(connection, [events, soft], slot=SLOT, publication=PUBLICATION, options=MERGE)
        assert problem.object == "public.events"
        assert problem.remedy == "Exclude public.events.Is_Deleted from the replication, or rename it."
        less = replace(events, schema=TableSchema(events.schema.columns[:1]))
        assert validate(connection, [less], slot=SLOT, publication=PUBLICATION, options=MERGE) == ()
        asked = {"slot": SLOT, "publication": PUBLICATION, "options": replace(MERGE, mode=WriteMode.APPEND_ONLY)}
        assert [one.object for one in validate(connection, [soft], **asked)] == ["public.soft"]  # type: ignore[arg-type]
        asked["options"] = replace(MERGE, append_only_tables=("public.s*",))
        assert [one.object for one in validate(connection, [soft], **asked)] == ["public.soft"]  # type: ignore[arg-type]
