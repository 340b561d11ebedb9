"""No session of ours stops the application of the source: none waits in a queue in which others wait behind it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.databases.postgresql.captured import SourceWorld
from tests.postgresql import PostgresServer
from tests.until import wait_until
from tidemark.errors import BackfillGaveWay, SlotBlocked, SourceLocked
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.model.replication import (
    LogPosition,
    ObjectName,
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
    TableSchema,
)
from tidemark.replication.planning.positions import lsn_of
from tidemark.replication.sources.open import Source
from tidemark.replication.sources.postgresql.change_log import read_by_functions, read_by_protocol
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.pinned import PinnedTable, pinned_table
from tidemark.replication.sources.postgresql.slots import create_slot, current_position
from tidemark.replication.sources.postgresql.source import PostgresSource

SHORT = timedelta(milliseconds=300)
LONG = timedelta(seconds=60)


@dataclass
class Held:
    """A replicated table `t`, another one `other` that is selected too, and what a replication knows of them."""

    world: SourceWorld
    replication: Replication

    @property
    def source(self) -> PostgresSource:
        return PostgresSource(self.world.address, lock_patience=SHORT)

    def selected(self) -> list[Any]:
        return [one for one in self.source.discover(self.replication) if one.name.table in ("t", "other")]

    @property
    def oid(self) -> int:
        return next(int(oid) for oid, one in self.world.captured.items() if one.name == ObjectName("public", "t"))

    def application(self, address: SourceAddress | None = None) -> psycopg.Connection[Any]:
        at = self.world.address if address is None else address
        return psycopg.connect(host=at.host, port=at.port, user=at.user, password=at.password, dbname=at.database)

    @contextmanager
    def pinned(self, **more: Any) -> Iterator[PinnedTable]:
        given = {"address": self.world.address, "oid": self.oid, "patience": LONG, **more}
        with pinned_table(name="public.t", **given) as table:
            yield table

    def waits(self) -> list[str]:
        """What the server has said of sessions that waited for a relation for a second."""
        (database,) = self.world.sql("SELECT oid::text FROM pg_database WHERE datname = current_database()")[0]
        said = (self.world.server.data.parent / "log").read_text(errors="replace")
        return re.findall(rf"still waiting for \w+ on relation \d+ of database {database}", said)


@pytest.fixture
def held(source_server: PostgresServer) -> Iterator[Held]:
    world = SourceWorld(source_server, "giving_way")
    try:
        world.sql(
            f"ALTER DATABASE {world.database} SET log_lock_waits = on",
            "CREATE TABLE t (id int PRIMARY KEY, v text)",
            "CREATE TABLE other (id int PRIMARY KEY)",
            "INSERT INTO t SELECT g, repeat('v', 100) FROM generate_series(1, 2000) g",
        )
        world.replicate("t")
        replication = Replication(
            uid="u", name="shop", kind=SourceKind.POSTGRESQL, source_conn_id="c", selection=Selection(),
            options=ReplicationOptions(target="lake"), event_log="/log", slot=world.slot, publication="p",
            state=ReplicationState.RUNNING, created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )  # fmt: skip
        yield Held(world, replication)
    finally:
        world.close()


def _events(held: Held, *, by_protocol: bool) -> None:
    """A capture of a change of `t`, which asks the catalog for its schema."""
    address = held.world.address
    with connect(address) as connection:
        end = current_position(connection)
        reader = held.world.reader(connection, end)
        if by_protocol:
            with connect(address, replication=True) as reading:
                assert list(reader.chunks(read_by_protocol(reading, held.world.slot, "p", LogPosition(""), end)))
        else:
            with connect(address, autocommit=False) as reading:
                assert list(reader.chunks(read_by_functions(reading, held.world.slot, "p", end)))
        assert lsn_of(end)


def _another_slot(held: Held) -> None:
    another = replace(held.replication, slot=f"{held.world.slot}_another")
    held.source.make_slot(another, patience=LONG)
    held.source.drop_slot(another)


def _gone(held: Held) -> None:
    another = replace(held.replication, slot=f"{held.world.slot}_another", publication="another")
    held.source.publish(another, [])
    held.source.make_slot(another, patience=LONG)
    assert len(held.source.drop(another)) == 2


def _existing(held: Held) -> Replication:
    """The same replication, if its publication and slot were the user's."""
    names = {"publication": held.replication.publication, "slot": held.replication.slot}
    return replace(held.replication, options=replace(held.replication.options, **names))


def _end(held: Held) -> LogPosition:
    with connect(held.world.address) as connection:
        return current_position(connection)


ACTS: dict[str, Callable[[Held], object]] = {
    "system_id": lambda held: held.source.system_id(),
    "names": lambda held: held.source.names(),
    "current_position": lambda held: held.source.current_position(),
    "parse_position": lambda held: held.source.parse_position("0/1"),
    "discover": lambda held: held.source.discover(held.replication),
    "seen": lambda held: held.source.seen(held.replication, held.selected()),
    "problems": lambda held: held.source.problems(held.replication, held.selected()),
    "published": lambda held: held.source.published(held.replication),
    "locked": lambda held: held.source.locked(held.replication, held.selected()),
    "make_slot": _another_slot,
    "require_ours": lambda held: held.source.require_ours(held.replication),
    "slot_position": lambda held: held.source.slot_position(held.replication),
    "has_changes": lambda held: held.source.has_changes(held.replication, _end(held)),
    "gtids": lambda held: held.source.gtids(held.replication, _end(held)),
    "alerts": lambda held: held.source.alerts(held.replication),
    "drop_slot": _another_slot,
    "drop": _gone,
    "events by functions": lambda held: _events(held, by_protocol=False),
    "events by protocol": lambda held: _events(held, by_protocol=True),
    "advance": lambda held: held.source.advance(held.replication, _end(held)),
    "seen of an existing publication": lambda held: held.source.seen(_existing(held), held.selected()),
    "problems of an existing publication": lambda held: held.source.problems(_existing(held), held.selected()),
    "published by an existing publication": lambda held: held.source.published(_existing(held)),
}
"""Whatever is sent to a source, but for what takes a lock of a user's table: `publish`, and the copy of a table."""


def test_the_acts_are_all_that_a_source_is_asked() -> None:
    asked = {name for name in vars(Source) if not name.startswith("_")}
    assert asked - ACTS.keys() == {"publish"}


def test_nothing_but_a_publication_and_a_copy_needs_a_users_table(held: Held) -> None:
    """Somebody has both tables to himself all the time, as a long ALTER TABLE has."""
    held.world.sql("UPDATE t SET v = 'new' WHERE id = 1")
    selected = held.selected()
    with held.application() as application:
        application.execute("LOCK TABLE t, other")
        application.execute("ALTER TABLE t ADD COLUMN w int")
        application.execute("ALTER TABLE other ADD COLUMN w int")
        # a transaction that writes holds up new slots, as it always does, in no queue of others
        blocked = {"make_slot", "drop_slot", "drop"}
        for name, act in ACTS.items():
            if name not in blocked:
                act(held)
        with pytest.raises(SlotBlocked):
            held.source.make_slot(replace(held.replication, slot=f"{held.world.slot}_blocked"), patience=SHORT)
        with pytest.raises(SourceLocked, match="lock timeout"):
            held.source.publish(held.replication, selected)
        with pytest.raises(SlotBlocked), held.pinned(patience=SHORT):
            raise AssertionError("there is no snapshot while somebody writes")
        application.rollback()
        application.execute("LOCK TABLE t, other IN EXCLUSIVE MODE")  # which writes nothing yet
        for name in blocked:
            ACTS[name](held)
    assert held.waits() == []
    assert held.source.publish(held.replication, held.selected())


@pytest.fixture
def copyist(held: Held) -> Iterator[SourceAddress]:
    """A role with no more rights than a replication needs."""
    world = held.world
    world.sql("CREATE ROLE copyist LOGIN REPLICATION PASSWORD 'c'", "GRANT SELECT ON t TO copyist")
    try:
        yield world.server.address(world.database, "copyist", "c")
    finally:
        world.sql("DROP OWNED BY copyist", "DROP ROLE copyist")


def test_who_waits_for_a_copy_is_let_through(held: Held, copyist: SourceAddress) -> None:
    bound = timedelta(seconds=0.2)
    with held.pinned(bound=bound, address=copyist) as table, held.application(copyist) as reader:
        reader.execute(f"SET application_name = '{table.readers}'")
        reader.commit()
        reader.execute("; ".join(table.statements))
        with held.application() as application:
            application.execute("ALTER TABLE t ADD COLUMN w int")  # which waits for the copy, and then not any more
            application.execute("TRUNCATE t")
        waited = table.gave_way()
        assert waited is not None
        assert "of postgres waits for AccessExclusiveLock on public.t" in waited
        with pytest.raises(psycopg.OperationalError):
            reader.execute("SELECT 1")
    ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^tidemark' AND datname = current_database()"
    wait_until(lambda: held.world.sql(ours) == [(0,)])  # a server notes the end of a session a moment after it


def test_a_copy_that_gives_way_while_it_looks_at_the_table_says_so(held: Held) -> None:
    """It is ended between two of its questions."""

    def choose(schema: TableSchema) -> TableSchema:
        with held.application() as application:
            application.execute("ALTER TABLE t ADD COLUMN w int")
        return schema

    with (
        pytest.raises(BackfillGaveWay, match="waits for AccessExclusiveLock on"),
        held.pinned(bound=SHORT, choose=choose),
    ):
        raise AssertionError("the table is somebody else's")


def test_a_sample_has_as_many_pages_of_many_partitions_as_of_one_table(held: Held) -> None:
    held.world.sql(
        "CREATE TABLE parted (id int, v text) PARTITION BY LIST (id)",
        """DO $$ BEGIN FOR n IN 1..40 LOOP
           EXECUTE format('CREATE TABLE part_%s PARTITION OF parted FOR VALUES IN (%s)', n, n); END LOOP; END $$""",
        "INSERT INTO parted SELECT g % 40 + 1, repeat('v', 1000) FROM generate_series(1, 16000) g",
        f"ALTER DATABASE {held.world.database} SET log_min_duration_statement = 0",
    )
    ((oid,),) = held.world.sql("SELECT 'parted'::regclass::oid::bigint")
    with held.pinned(oid=oid):
        said = (held.world.server.data.parent / "log").read_text(errors="replace")
    percent = float(re.findall(r"parted\S* TABLESAMPLE SYSTEM \(([0-9.]+)\)", said)[-1])
    assert 5 < percent < 15


def test_a_reader_never_stands_behind_somebody_who_waits_for_the_copy(held: Held) -> None:
    """The deadlock that the server does not see: the copy would wait for this reader."""
    with held.pinned(bound=LONG) as table, held.application() as other, held.application() as reader:
        pid = other.info.backend_pid

        def alter() -> None:
            with suppress(psycopg.errors.QueryCanceled):
                other.execute("ALTER TABLE t ADD COLUMN w int")

        altering = threading.Thread(target=alter)
        altering.start()
        while held.world.sql(f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {pid}") != [("Lock",)]:
            pass
        with pytest.raises(psycopg.errors.RaiseException, match="is locked by another session, or one waits for it"):
            reader.execute("; ".join(table.statements))
        other.cancel_safe()
        altering.join()
    assert not [line for line in held.waits() if "AccessShareLock" in line]


def test_a_reader_whose_snapshot_is_older_than_a_truncate_refuses_to_read_nothing(held: Held) -> None:
    with held.pinned(bound=LONG) as table:
        *_, hold = table.statements
    with held.application() as reader, held.application() as other:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert reader.execute("SELECT count(*) > 0 FROM pg_class").fetchone() == (True,)
        other.execute("TRUNCATE t")
        other.commit()
        with pytest.raises(psycopg.errors.RaiseException, match="was rewritten or truncated while it was copied"):
            reader.execute(hold)


def test_a_copy_that_nobody_waits_for_goes_on(held: Held) -> None:
    with held.pinned(bound=timedelta()) as table, held.application() as application:
        for text in ("UPDATE t SET v = 'x'", "SELECT count(*) FROM t", "CREATE TABLE new (id int)"):
            application.execute(text)
        application.commit()
        with connect(held.world.address) as connection:
            connection.cursor().execute("SELECT pg_sleep(0.3)")
        assert table.gave_way() is None


def test_who_gives_up_and_tries_again_is_let_through(held: Held) -> None:
    """A migration with a lock_timeout, as its tools have it: no try of it waits for the bound."""
    with held.pinned(bound=timedelta(seconds=1)) as table, held.application() as migration:
        migration.execute("SET lock_timeout = '600ms'")
        migration.commit()
        tries = 0
        while not _altered(migration) and tries < 8:
            tries += 1
            time.sleep(0.1)
        assert 0 < tries < 8
        assert table.gave_way() is not None


def _altered(migration: psycopg.Connection[Any]) -> bool:
    try:
        migration.execute("ALTER TABLE t ADD COLUMN w int")
        return True
    except psycopg.errors.LockNotAvailable:
        migration.rollback()
        return False


def test_a_slot_that_waits_gives_way_to_who_waits_for_it(held: Held) -> None:
    """CREATE INDEX CONCURRENTLY waits for every older snapshot of its database, that of a session which waits for a
    slot among them.
    """
    slot = f"{held.world.slot}_waiting"
    with held.application() as writing:
        writing.execute("INSERT INTO other VALUES (1)")
        failures: list[BaseException] = []

        def make() -> None:
            try:
                create_slot(held.world.address, slot, patience=LONG, bound=SHORT)
            except SlotBlocked as error:
                failures.append(error)

        making = threading.Thread(target=make)
        making.start()
        asked = "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"
        while held.world.sql(asked) == [(0,)]:
            pass
        held.world.sql("CREATE INDEX CONCURRENTLY ON t (v)")
        making.join()
        writing.rollback()
    (blocked,) = failures
    assert "and it was in the way" in str(blocked)
    assert held.world.sql(f"SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{slot}'") == [(0,)]
