"""A slot on a real server: made, looked at, read ahead, moved, dropped, and every way in which it is not ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count

import psycopg
import psycopg2
import psycopg2.extensions
import pytest

from tests.postgresql import LOGICAL, PASSWORD, USER, PostgresServer, postgresql_or_skip
from tidemark.errors import SlotAhead, SlotBlocked, SlotBusy, SlotForeign, SlotLost, SourceRefused, SourceUnreachable
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import LogPosition
from tidemark.replication.planning.positions import lsn_of, lsn_text, parse_lsn, position_of_lsn
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.publication import PublishedTable, ensure_publication
from tidemark.replication.sources.postgresql.slots import (
    advance_slot,
    create_slot,
    current_position,
    drop_slot,
    emit_heartbeat,
    exported_snapshot,
    has_changes,
    losses_named,
    oldest_change,
    require_ours,
    slot_status,
)

PATIENCE = timedelta(seconds=20)
IMPATIENCE = timedelta(seconds=1)
PUBLICATION = 'tidemark "P"'  # what must be quoted
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def address(source_server: PostgresServer) -> SourceAddress:
    """Of a database with one published table."""
    database = source_server.new_database()
    source_server.sql("CREATE TABLE orders (id int PRIMARY KEY, note text)", database)
    source_server.sql("CREATE TABLE unpublished (id int)", database)
    at = source_server.address(database)
    with connect(at) as connection:
        (oid,) = source_server.sql("SELECT 'orders'::regclass::oid::bigint", database)[0]
        ensure_publication(connection, PUBLICATION, [PublishedTable(int(str(oid)))])
    return at


@pytest.fixture
def slot(source_server: PostgresServer) -> Iterator[str]:
    name = f"tidemark_test_{next(_NUMBERS)}"
    yield name
    source_server.sql(
        f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{name}'"
    )


def _write(server: PostgresServer, address: SourceAddress, text: str) -> None:
    server.sql(text, address.database)


@contextmanager
def _open_transaction(address: SourceAddress, text: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(
        host=address.host, port=address.port, user=USER, password=PASSWORD, dbname=address.database
    ) as other:
        other.execute(text.encode())
        yield other
        other.rollback()


def test_a_new_slot_keeps_what_commits_from_its_position_on(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    with connect(address) as connection:
        before = current_position(connection)
        position = create_slot(address, slot, patience=PATIENCE)
        assert before <= position <= current_position(connection)
        status = slot_status(connection, slot)
        assert (status.plugin, status.database, status.temporary) == ("pgoutput", address.database, False)
        assert (status.confirmed, status.wal_status, status.active_pid) == (position, "reserved", None)
        assert status.restart is not None
        assert status.restart <= position
        assert require_ours(status, captured=position) == position

        assert not has_changes(connection, slot, PUBLICATION, current_position(connection))
        _write(source_server, address, "INSERT INTO unpublished VALUES (1)")
        assert not has_changes(connection, slot, PUBLICATION, current_position(connection))
        end = current_position(connection)
        _write(source_server, address, "INSERT INTO orders VALUES (1)")
        assert not has_changes(connection, slot, PUBLICATION, end)  # committed at `end` or later
        assert has_changes(connection, slot, PUBLICATION, current_position(connection))
        assert slot_status(connection, slot).confirmed == position  # looking moves nothing
        assert slot_status(connection, slot).lag_bytes > 0


def test_a_second_creation_finds_the_first(source_server: PostgresServer, address: SourceAddress, slot: str) -> None:
    position = create_slot(address, slot, patience=PATIENCE)
    _write(source_server, address, "INSERT INTO orders VALUES (2)")
    assert create_slot(address, slot, patience=PATIENCE) == position


def test_advancing_is_harmless_when_repeated_and_never_goes_back(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    start = create_slot(address, slot, patience=PATIENCE)
    _write(source_server, address, "INSERT INTO orders VALUES (3)")
    with connect(address) as connection:
        end = current_position(connection)
        assert advance_slot(connection, slot, end) == end
        assert slot_status(connection, slot).confirmed == end
        assert advance_slot(connection, slot, end) == end
        assert advance_slot(connection, slot, start) == end
        assert not has_changes(connection, slot, PUBLICATION, current_position(connection))
        beyond = position_of_lsn(lsn_of(end) + (1 << 30))
        assert advance_slot(connection, slot, beyond) < beyond  # the server's log ends before it


def test_what_was_captured_but_not_let_go_is_no_change(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    create_slot(address, slot, patience=PATIENCE)
    many = "FOR n IN 1001..1070 LOOP INSERT INTO orders VALUES (n); COMMIT; END LOOP;"  # more than one look takes
    _write(source_server, address, f"DO $$ BEGIN {many} END $$")
    with connect(address) as connection:
        captured = current_position(connection)
        first = oldest_change(connection, slot, PUBLICATION, captured)
        assert first is not None
        assert not has_changes(connection, slot, PUBLICATION, captured, after=captured)
        _write(source_server, address, "INSERT INTO orders VALUES (4)")
        found = oldest_change(connection, slot, PUBLICATION, current_position(connection), after=captured)
        assert found is not None
        assert first.commit < captured <= found.commit
        assert first.at < found.at


def test_a_heartbeat_moves_an_idle_source_on(address: SourceAddress, slot: str) -> None:
    position = create_slot(address, slot, patience=PATIENCE)
    with connect(address) as connection:
        after = emit_heartbeat(connection, "it's alive")
        assert after > position
        assert not has_changes(connection, slot, PUBLICATION, after)
        assert advance_slot(connection, slot, after) == after


def test_a_commit_that_did_not_wait_for_the_disk_is_before_the_position_after_a_heartbeat(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    create_slot(address, slot, patience=PATIENCE)
    with connect(address) as connection:
        for number in range(20):
            _write(
                source_server,
                address,
                f"SET synchronous_commit = off; INSERT INTO orders VALUES ({2000 + number})",
            )
            end = emit_heartbeat(connection, "here")
            assert has_changes(connection, slot, PUBLICATION, end)
            advance_slot(connection, slot, end)


def test_a_slot_that_is_gone_is_lost_with_the_position(address: SourceAddress) -> None:
    captured = position_of_lsn(0x16B374D848)
    with connect(address) as connection:
        status = slot_status(connection, "tidemark_none")
        assert not status.exists
        with pytest.raises(SlotLost, match=r"is gone.*16/B374D848"):
            require_ours(status, captured=captured)
        with pytest.raises(SlotLost):
            advance_slot(connection, "tidemark_none", captured)
        with pytest.raises(SlotLost):
            has_changes(connection, "tidemark_none", PUBLICATION, captured)
        assert drop_slot(connection, "tidemark_none") is False


def test_a_slot_whose_log_the_server_removed_is_lost(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    position = create_slot(address, slot, patience=PATIENCE)
    source_server.sql("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    source_server.sql("SELECT pg_reload_conf()")
    try:
        for _ in range(8):
            source_server.sql("SELECT pg_logical_emit_message(false, 'fill', 'x'), pg_switch_wal()")
        source_server.sql("CHECKPOINT")
        with connect(address) as connection:
            status = slot_status(connection, slot)
            assert (status.wal_status, status.lost) == ("lost", True)
            end = current_position(connection)
            told = rf"{slot} has lost its log.*{lsn_text(lsn_of(position))}.*explicit position"
            with pytest.raises(SlotLost, match=told):
                require_ours(status, captured=position)
            with pytest.raises(SlotLost):
                has_changes(connection, slot, PUBLICATION, end)
            with pytest.raises(SlotLost):
                advance_slot(connection, slot, end)
            with pytest.raises(SlotLost):
                create_slot(address, slot, patience=PATIENCE)
            assert drop_slot(connection, slot) is True
    finally:
        source_server.sql("ALTER SYSTEM RESET max_slot_wal_keep_size")
        source_server.sql("SELECT pg_reload_conf()")


def test_a_slot_that_somebody_moved_on_is_ahead(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    captured = create_slot(address, slot, patience=PATIENCE)
    _write(source_server, address, "INSERT INTO orders VALUES (6)")
    source_server.sql(f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())", address.database)
    with connect(address) as connection:
        status = slot_status(connection, slot)
    assert status.confirmed is not None
    with pytest.raises(SlotAhead, match=rf"to {lsn_text(lsn_of(status.confirmed))}.*at {lsn_text(lsn_of(captured))}"):
        require_ours(status, captured=captured)


def test_foreign_slots_are_told_with_the_statement_that_drops_them(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    elsewhere = source_server.new_database()
    made = {
        "decodes with test_decoding": (
            address.database,
            f"pg_create_logical_replication_slot('{slot}', 'test_decoding')",
        ),
        "a physical one": (address.database, f"pg_create_physical_replication_slot('{slot}')"),
        f"database {elsewhere}": (elsewhere, f"pg_create_logical_replication_slot('{slot}', 'pgoutput')"),
    }
    for told, (database, text) in made.items():
        source_server.sql(f"SELECT {text}", database)
        for act in (
            lambda connection: require_ours(slot_status(connection, slot)),
            lambda connection: advance_slot(connection, slot, current_position(connection)),
            lambda connection: drop_slot(connection, slot),
            lambda _: create_slot(address, slot, patience=PATIENCE),
        ):
            with connect(address) as connection, pytest.raises(SlotForeign, match=told) as caught:
                act(connection)
            assert f"SELECT pg_drop_replication_slot('{slot}')" in str(caught.value)
        source_server.sql(f"SELECT pg_drop_replication_slot('{slot}')", database)


def test_a_temporary_slot_of_our_name_is_foreign_while_its_session_lives(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    made = f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput', true)"
    with _open_transaction(address, made) as other:
        pid = other.info.backend_pid
        with (
            connect(address) as connection,
            pytest.raises(SlotForeign, match=rf"temporary.*terminate_backend\({pid}\)"),
        ):
            require_ours(slot_status(connection, slot))
    assert create_slot(address, slot, patience=PATIENCE)


def test_a_slot_that_is_read_is_busy(source_server: PostgresServer, address: SourceAddress, slot: str) -> None:
    create_slot(address, slot, patience=PATIENCE)
    with connect(address, replication=True) as reader, connect(address) as connection:
        reader.cursor().start_replication(
            slot_name=slot, decode=False, options={"proto_version": "1", "publication_names": '"tidemark ""P"""'}
        )
        pid = reader.info.backend_pid
        status = slot_status(connection, slot)
        assert status.active_pid == pid
        assert require_ours(status, idle=False) == status.confirmed
        for act in (
            lambda: require_ours(status),
            lambda: advance_slot(connection, slot, position_of_lsn(1 << 60)),
            lambda: has_changes(connection, slot, PUBLICATION, current_position(connection)),
            lambda: drop_slot(connection, slot),
        ):
            with pytest.raises(SlotBusy, match=rf"process {pid} "):
                act()


def test_a_slot_that_was_in_use_is_busy_though_it_is_free_by_the_next_look(address: SourceAddress, slot: str) -> None:
    create_slot(address, slot, patience=PATIENCE)
    with connect(address, replication=True) as reader, connect(address) as connection:
        reader.cursor().start_replication(
            slot_name=slot, decode=False, options={"proto_version": "1", "publication_names": '"tidemark ""P"""'}
        )
        pid = reader.info.backend_pid

        def advance() -> None:
            try:
                connection.cursor().execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (slot,))
            finally:
                reader.close()
                while slot_status(connection, slot).active_pid is not None:
                    time.sleep(0.05)

        with pytest.raises(SlotBusy, match=rf"process {pid} "), losses_named(connection, slot):
            advance()


def test_a_publication_that_was_dropped_makes_the_slot_unreadable(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    _write(source_server, address, "CREATE PUBLICATION short_lived FOR TABLE orders")
    create_slot(address, slot, patience=PATIENCE)
    _write(source_server, address, "DROP PUBLICATION short_lived")
    _write(source_server, address, "INSERT INTO orders VALUES (7)")
    with connect(address) as connection, pytest.raises(SlotLost, match='publication "short_lived" does not exist'):
        has_changes(connection, slot, "short_lived", current_position(connection))


def test_creation_gives_up_and_names_who_is_in_the_way(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    with _open_transaction(address, "INSERT INTO unpublished VALUES (3)") as other:
        time.sleep(0.1)
        for act in (
            lambda: create_slot(address, slot, patience=IMPATIENCE),
            lambda: exported_snapshot(address, patience=IMPATIENCE).__enter__(),
        ):
            began = time.monotonic()
            with pytest.raises(SlotBlocked) as caught:
                act()
            assert time.monotonic() - began < 10
            told = str(caught.value)
            assert f"process {other.info.backend_pid}, of postgres in {address.database}, open for " in told
            assert "idle in transaction, last statement" in told
            assert "INSERT INTO unpublished VALUES (3)" in told
            assert f"SELECT pg_terminate_backend({other.info.backend_pid})" in told
        here = f"SELECT slot_name FROM pg_replication_slots WHERE database = '{address.database}'"
        assert source_server.sql(here) == []
    create_slot(address, slot, patience=PATIENCE)


def test_a_prepared_transaction_in_the_way_is_named_with_what_ends_it(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    with _open_transaction(address, "INSERT INTO unpublished VALUES (7)") as other:
        other.execute("PREPARE TRANSACTION 'left ''over'")
    try:
        time.sleep(0.1)
        with pytest.raises(SlotBlocked) as caught:
            create_slot(address, slot, patience=IMPATIENCE)
        assert f'prepared transaction "left \'over", of postgres in {address.database}' in str(caught.value)
        assert "ROLLBACK PREPARED 'left ''over'" in str(caught.value)
    finally:
        _write(source_server, address, "ROLLBACK PREPARED 'left ''over'")


def test_a_slot_that_another_is_making_is_busy(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    with _open_transaction(address, "INSERT INTO unpublished VALUES (8)") as other:
        made: list[LogPosition] = []
        first = threading.Thread(target=lambda: made.append(create_slot(address, slot, patience=PATIENCE)))
        first.start()
        with connect(address) as connection:
            while not slot_status(connection, slot).exists:
                time.sleep(0.05)
        with pytest.raises(SlotBusy, match=slot):
            create_slot(address, slot, patience=PATIENCE)
        other.rollback()
        first.join()
    assert create_slot(address, slot, patience=PATIENCE) == made[0]


def test_creation_waits_as_long_as_it_may_for_open_transactions(address: SourceAddress, slot: str) -> None:
    with _open_transaction(address, "INSERT INTO unpublished VALUES (4)") as other:
        threading.Timer(0.5, other.rollback).start()
        began = time.monotonic()
        assert create_slot(address, slot, patience=PATIENCE) > LogPosition("")
        assert time.monotonic() - began >= 0.4


def test_who_is_in_the_way_is_named_to_a_user_who_may_not_see_queries(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    source_server.sql("CREATE ROLE replicator LOGIN REPLICATION PASSWORD 'x'")
    plain = replace(address, user="replicator", password="x")
    with _open_transaction(address, "INSERT INTO unpublished VALUES (5)") as other:
        time.sleep(0.1)
        with pytest.raises(SlotBlocked, match=rf"process {other.info.backend_pid}, of postgres in {address.database}"):
            create_slot(plain, slot, patience=IMPATIENCE)


def test_a_snapshot_shows_what_committed_before_its_position_and_nothing_else(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    create_slot(address, slot, patience=PATIENCE)
    _write(source_server, address, "TRUNCATE orders; INSERT INTO orders VALUES (1, 'before')")
    with exported_snapshot(address, patience=PATIENCE) as snapshot:
        _write(source_server, address, "UPDATE orders SET note = 'after'; INSERT INTO orders VALUES (2, 'after')")
        for _ in range(2):  # every reader sees the same
            with connect(address, autocommit=False) as reader:
                cursor = reader.cursor()
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot.name}'")
                cursor.execute("SELECT * FROM public.orders")
                assert cursor.fetchall() == [(1, "before")]
        with connect(address) as connection:
            found = oldest_change(connection, slot, PUBLICATION, current_position(connection), after=snapshot.position)
            before = oldest_change(connection, slot, PUBLICATION, snapshot.position)
        assert before is not None
        assert found is not None
        assert before.commit < snapshot.position <= found.commit
        temporary = source_server.sql(
            "SELECT temporary FROM pg_replication_slots WHERE slot_name ~ '^tidemark_snapshot'"
        )
        assert temporary == [(True,)]
    with connect(address, autocommit=False) as reader:
        cursor = reader.cursor()
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(psycopg2.Error, match=r"invalid snapshot identifier|does not exist"):
            cursor.execute(f"SET TRANSACTION SNAPSHOT '{snapshot.name}'")
        reader.rollback()
    assert source_server.sql("SELECT 1 FROM pg_replication_slots WHERE slot_name ~ '^tidemark_snapshot'") == []


def test_a_reader_is_not_disturbed_when_the_session_of_a_snapshot_is_gone_before_it_ends(
    source_server: PostgresServer, address: SourceAddress
) -> None:
    with exported_snapshot(address, patience=PATIENCE) as snapshot:
        source_server.sql(f"SELECT pg_terminate_backend({snapshot.pid})")


def test_no_slot_is_left_when_all_are_taken_and_the_remedy_is_told(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    free = 40 - int(str(source_server.sql("SELECT count(*) FROM pg_replication_slots")[0][0]))
    source_server.sql(
        f"SELECT pg_create_physical_replication_slot('filler_' || n) FROM generate_series(1, {free}) AS n"
    )
    try:
        for act in (
            lambda: create_slot(address, slot, patience=PATIENCE),
            lambda: exported_snapshot(address, patience=PATIENCE).__enter__(),
        ):
            with pytest.raises(SourceRefused, match=r"all replication slots are in use.*max_replication_slots"):
                act()
    finally:
        source_server.sql(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name ~ '^filler_'"
        )


def test_a_user_without_the_right_gets_the_statement(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    source_server.sql("CREATE ROLE powerless LOGIN PASSWORD 'x'")
    plain = replace(address, user="powerless", password="x")
    with pytest.raises(SourceRefused, match='ALTER ROLE "powerless" REPLICATION'):
        create_slot(plain, slot, patience=PATIENCE)
    with pytest.raises(SourceRefused, match='ALTER ROLE "powerless" REPLICATION'):
        exported_snapshot(plain, patience=PATIENCE).__enter__()


def test_a_session_that_is_ended_while_it_waits_is_unreachable_not_blocked(
    source_server: PostgresServer, address: SourceAddress, slot: str
) -> None:
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE query LIKE '%create_logical%{slot}%' AND pid <> pg_backend_pid()"
    )
    with _open_transaction(address, "INSERT INTO unpublished VALUES (6)"):
        threading.Timer(0.7, source_server.sql, [end]).start()
        with pytest.raises(SourceUnreachable, match="terminat"):
            create_slot(address, slot, patience=PATIENCE)
    assert source_server.sql(f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{slot}'") == []


@pytest.fixture(scope="module")
def lazy_server() -> Iterator[PostgresServer]:
    """One that writes much of its log before it makes sure of it on disk."""
    with postgresql_or_skip((*LOGICAL, "wal_writer_delay=10s", "wal_buffers=64kB")) as server:
        yield server


def _publish_orders(server: PostgresServer) -> None:
    server.sql("DROP TABLE IF EXISTS orders; DROP PUBLICATION IF EXISTS p")
    server.sql("CREATE TABLE orders (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE orders")


def _die_and_ask(server: PostgresServer, connection: psycopg2.extensions.connection, until: LogPosition) -> None:
    server.stop()  # at once, as a crash is
    has_changes(connection, "tidemark_crashed", "p", until)


def test_nothing_that_is_not_yet_on_disk_is_before_the_position_of_now(lazy_server: PostgresServer) -> None:
    """What commits before it is decoded when asked for; else a run would take it for captured, and lose it."""
    _publish_orders(lazy_server)
    address = lazy_server.address("postgres")
    create_slot(address, "tidemark_lazy", patience=PATIENCE)
    ahead = 0
    with connect(address) as connection, _open_transaction(address, "SET synchronous_commit = off") as application:
        for number in range(20):
            application.execute("INSERT INTO orders VALUES (%s)", (number,))
            application.commit()
            application.execute("INSERT INTO orders SELECT 1000 + n FROM generate_series(1, 2000) AS n")
            end = current_position(connection)
            (written,) = lazy_server.sql("SELECT pg_current_wal_lsn()")[0]
            found = oldest_change(connection, "tidemark_lazy", "p", end)
            application.rollback()
            ahead += parse_lsn(str(written)) > lsn_of(end)
            later = oldest_change(connection, "tidemark_lazy", "p", emit_heartbeat(connection, "now"))
            assert later is not None
            assert found == later or later.commit >= end
            advance_slot(connection, "tidemark_lazy", current_position(connection))
        assert drop_slot(connection, "tidemark_lazy")
    assert ahead > 0  # else this has shown nothing


def test_a_server_that_dies_takes_nothing_of_a_slot_with_it(lazy_server: PostgresServer) -> None:
    server = lazy_server
    _publish_orders(server)
    address = server.address("postgres")
    start = create_slot(address, "tidemark_crashed", patience=PATIENCE)
    server.sql("INSERT INTO orders VALUES (1)")
    with connect(address) as connection:
        captured = current_position(connection)
        assert advance_slot(connection, "tidemark_crashed", captured) == captured
    with pytest.raises(SourceUnreachable), exported_snapshot(address, patience=PATIENCE), connect(address) as old:
        _die_and_ask(server, old, captured)
    with pytest.raises(SourceUnreachable):
        create_slot(address, "tidemark_crashed", patience=PATIENCE)
    server.start()
    with connect(address) as connection:
        again = require_ours(slot_status(connection, "tidemark_crashed"), captured=captured)
        assert start <= again <= captured  # it may have forgotten, never run ahead
        assert not has_changes(connection, "tidemark_crashed", "p", current_position(connection), after=captured)
        assert advance_slot(connection, "tidemark_crashed", captured) == captured
    assert server.sql("SELECT count(*) FROM pg_replication_slots") == [(1,)]
