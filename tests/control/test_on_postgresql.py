"""What only a server can do to a store: writers that stand still, rights that lack, versions and settings."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.postgresql import PASSWORD, PostgresServer
from tests.until import wait_until
from tidemark.control import engines
from tidemark.control.store import ControlStore
from tidemark.errors import StoreBusy, StoreNotMigrated, StoreRefused, StoreUnreachable
from tidemark.streams.store import schema

AT_ONCE = timedelta(0)


@pytest.fixture
def database(postgresql: PostgresServer, migrated_database: str) -> str:
    return postgresql.new_database(template=migrated_database)


@pytest.fixture
def store(postgresql: PostgresServer, database: str) -> Iterator[ControlStore]:
    opened = ControlStore(postgresql.url(database))
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def standing_still(postgresql: PostgresServer, database: str, store: ControlStore) -> Iterator[threading.Event]:
    """A writer that took its turn and does not end it, as one does whose process is stopped; set it on its way."""
    taken, go_on = threading.Event(), threading.Event()

    def stand(connection: sa.Connection) -> None:
        taken.set()
        go_on.wait(60)

    def write() -> None:
        with suppress(StoreUnreachable):  # the server may have ended it by then
            ControlStore(postgresql.url(database), patience=AT_ONCE).write(stand)

    thread = threading.Thread(target=write)
    thread.start()
    taken.wait(20)
    yield go_on
    go_on.set()
    thread.join()


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "POSTGRESQL_BEGIN", engines.POSTGRESQL_BEGIN.replace("15s", "1s"))


@pytest.mark.usefixtures("short_turns", "standing_still")
def test_a_writer_that_stands_still_holds_the_others_up_for_a_while_only(store: ControlStore) -> None:
    assert store.write(lambda c: c.execute(sa.text("SELECT 1")).scalar_one()) == 1


@pytest.mark.usefixtures("short_turns")
def test_whoever_waits_too_long_is_told_that_the_store_is_busy(
    store: ControlStore, standing_still: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "POSTGRESQL_BEGIN", "SET LOCAL lock_timeout = '50ms'")
    with pytest.raises(StoreBusy, match="lock timeout"):
        store.write(lambda connection: None)


@pytest.mark.usefixtures("short_turns", "standing_still")
def test_readers_wait_for_no_writer(store: ControlStore) -> None:
    assert store.store_id


def test_a_wrong_password_a_missing_database_and_a_missing_user_are_refusals_in_words(
    postgresql: PostgresServer, database: str
) -> None:
    good = postgresql.url(database)
    wrong = {
        good.replace(good.split(":")[2].partition("@")[0], "s3cret"): "password authentication failed",
        postgresql.url("nowhere"): 'database "nowhere" does not exist',
        postgresql.url(database, user="nobody"): "password authentication failed",
        f"{good}?sslmode=nonsense": "sslmode",
        f"{good}?nonsense=1": "nonsense",
    }
    for url, said in wrong.items():
        with pytest.raises(StoreRefused, match=said) as refused:
            _ = ControlStore(url).store_id
        assert "s3cret" not in str(refused.value)
        assert PASSWORD not in str(refused.value)


def test_a_store_without_tables_says_what_to_do(postgresql: PostgresServer) -> None:
    with pytest.raises(StoreNotMigrated, match="airflow tidemark db migrate"):
        _ = ControlStore(postgresql.url(postgresql.new_database())).store_id


def test_a_server_that_is_not_there_is_waited_for_no_longer_than_asked() -> None:
    store = ControlStore("postgresql://ann:s3cret@127.0.0.1:1/db", patience=AT_ONCE)
    with pytest.raises(StoreUnreachable, match="Connection refused"):
        _ = store.store_id


def test_a_server_that_is_too_old_is_refused(store: ControlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "OLDEST_POSTGRESQL", 99)
    with pytest.raises(StoreRefused, match="upgrade it to 99 or later"):
        _ = store.store_id


def test_no_connection_is_held_between_transactions(
    store: ControlStore, postgresql: PostgresServer, database: str
) -> None:
    asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND application_name = 'tidemark'"
    inside = store.write(lambda connection: connection.execute(sa.text(asked)).scalar_one())
    keeping = ControlStore(postgresql.url(database), keep_connections=True)
    keeping.read(lambda connection: None)
    assert inside == 1
    wait_until(lambda: postgresql.sql(asked) == [(1,)])  # a server notes the end of a session a moment after it
    keeping.close()
    wait_until(lambda: postgresql.sql(asked) == [(0,)])


def test_a_forked_process_uses_a_connection_of_its_own(postgresql: PostgresServer, database: str) -> None:
    store = ControlStore(postgresql.url(database), keep_connections=True)
    session = sa.select(sa.func.pg_backend_pid())

    def ask() -> int:
        return int(store.read(lambda connection: connection.execute(session).scalar_one()))

    parents = ask()
    answers, answer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(answer, str(ask()).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    childs = int(os.read(answers, 100) or parents)
    assert (ask(), childs != parents) == (parents, True)  # the parent's is still open
    store.close()


def test_a_store_may_have_a_schema_of_its_own(postgresql: PostgresServer, database: str) -> None:
    postgresql.sql("CREATE SCHEMA other", database)
    store = ControlStore(f"{postgresql.url(database)}?options=-csearch_path%3Dother")
    store.migrate()
    assert postgresql.sql("SELECT store_id FROM other.tidemark_store", database) == [(store.store_id,)]


def test_of_several_hosts_the_one_that_is_there_is_taken(postgresql: PostgresServer, store: ControlStore) -> None:
    first, _, rest = postgresql.url(store.url.rpartition("/")[2]).partition("@")
    hosts = f"host=127.0.0.1:1&host=127.0.0.1:{postgresql.port}&target_session_attrs=read-write"
    several = ControlStore(f"{first}@/{rest.partition('/')[2]}?{hosts}", patience=AT_ONCE)
    assert several.store_id == store.store_id


def test_reading_can_change_nothing(postgresql: PostgresServer, database: str, store: ControlStore) -> None:
    reader = ControlStore(postgresql.url(database), patience=AT_ONCE)
    with pytest.raises(StoreUnreachable, match="read-only"):  # so says a standby, too, until it is the primary
        reader.read(lambda connection: connection.execute(sa.text("DELETE FROM tidemark_store")))
    assert reader.store_id == store.store_id


def test_a_reader_that_answers_others_waits_for_no_lock_and_no_statement_long(
    postgresql: PostgresServer, database: str, store: ControlStore
) -> None:
    short = timedelta(milliseconds=50)
    lock = ControlStore(postgresql.url(database), patience=AT_ONCE, bounds=engines.Bounds(1, lock=short))
    slow = ControlStore(postgresql.url(database), patience=AT_ONCE, bounds=engines.Bounds(1, statement=short))
    assert lock.store_id == slow.store_id
    with pytest.raises(StoreBusy, match="statement timeout"):
        slow.read(lambda connection: connection.execute(sa.text("SELECT pg_sleep(600)")))

    def ask_while_locked(connection: sa.Connection) -> None:
        connection.execute(sa.text("LOCK TABLE tidemark_stream IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(StoreBusy, match="lock timeout"):
            lock.read(lambda other: other.execute(sa.select(schema.streams)))

    store.write(ask_while_locked)
    assert lock.read(lambda connection: connection.execute(sa.select(schema.streams)).all()) == []
    for one in (lock, slow):
        one.close()


def test_a_task_that_reads_waits_for_no_lock_without_end(store: ControlStore) -> None:
    assert store.read(lambda c: c.execute(sa.text("SHOW lock_timeout")).scalar_one()) == "30s"


def test_with_all_connections_in_use_the_store_is_busy(postgresql: PostgresServer, database: str) -> None:
    bounds = engines.Bounds(1, lock=timedelta(milliseconds=50))
    store = ControlStore(postgresql.url(database), patience=AT_ONCE, bounds=bounds)
    with pytest.raises(StoreBusy, match="in use"):
        store.read(lambda _: store.read(lambda _: None))
    store.close()


def test_whoever_waits_for_a_server_that_does_not_answer_is_freed(postgresql: PostgresServer, database: str) -> None:
    bounds = engines.Bounds(2, statement=timedelta(hours=1))
    store = ControlStore(postgresql.url(database), patience=AT_ONCE, bounds=bounds)
    assert store.read(lambda connection: connection.execute(sa.select(schema.streams)).all()) == []
    asleep = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND wait_event = 'PgSleep'"
    with ThreadPoolExecutor(1) as reader:
        waits = reader.submit(store.read, lambda connection: connection.execute(sa.text("SELECT pg_sleep(600)")))
        while postgresql.sql(asleep) == [(0,)]:
            assert not waits.done()
        store.cut()
        with pytest.raises(StoreUnreachable):
            waits.result(60)
    assert store.read(lambda connection: connection.execute(sa.select(schema.streams)).all()) == []
    store.close()
    store.cut()  # nothing is open: nothing happens


def test_what_became_of_a_transaction_can_be_learnt_later(store: ControlStore) -> None:
    numbers: list[str] = []

    def change(connection: sa.Connection) -> None:
        connection.execute(sa.text("UPDATE tidemark_store SET created_at = created_at"))
        numbers.append(engines.transaction_of(connection) or "none")

    def change_and_fail(connection: sa.Connection) -> None:
        change(connection)
        raise InterruptedError

    def known(number: str) -> bool | None:
        return store.read(lambda connection: engines.was_committed(connection, number))

    store.write(change)
    with pytest.raises(InterruptedError):
        store.write(change_and_fail)
    done, undone = numbers
    assert (known(done), known(undone)) == (True, False)
    assert known(str(int(undone) + 1_000_000)) is False  # a server that took over has never heard of it

    def look_from_outside(connection: sa.Connection) -> bool | None:
        change(connection)
        return known(numbers[-1])

    assert store.write(look_from_outside) is None  # not decided
    assert store.write(engines.transaction_of) is None  # nothing was written: nothing can be lost


def test_a_store_whose_answer_cannot_be_learnt_says_so_and_runs_nothing_again(
    store: ControlStore, postgresql: PostgresServer, database: str
) -> None:
    from tests.cutting_proxy import Cut, CuttingProxy

    wire = CuttingProxy(postgresql.port)
    far = ControlStore(postgresql.url(database, port=wire.port), patience=AT_ONCE)
    runs: list[int] = []

    def count(connection: sa.Connection) -> None:
        runs.append(connection.execute(sa.text("UPDATE tidemark_store SET created_at = now()")).rowcount)

    far.require_revision()
    wire.cut(1, Cut.AFTER_COMMIT, lasting=True)
    with pytest.raises(StoreUnreachable, match="whether the write was stored is unknown"):
        far.write(count)
    assert runs == [1]
    wire.close()
