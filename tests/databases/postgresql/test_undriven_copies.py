"""A copy whose process stands still, or sees nothing any more, is in nobody's way for longer than a few bounds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.postgresql import PostgresServer
from tidemark.errors import SourceUnreachable
from tidemark.model.source_address import SourceAddress
from tidemark.replication.sources.postgresql import giving_way
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.pinned import jdbc_properties, pinned_table
from tidemark.replication.sources.postgresql.snapshots import exported_snapshot

BOUND = timedelta(seconds=1)
FEW = 12.0  # seconds: a few of these bounds, and what a busy machine adds
PATIENCE = timedelta(seconds=60)


@pytest.fixture
def address(source_server: PostgresServer) -> SourceAddress:
    database = source_server.new_database()
    source_server.sql("CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 2000) g", database)
    return source_server.address(database)


def _application(address: SourceAddress, **more: Any) -> psycopg.Connection[Any]:
    at = {"host": address.host, "port": address.port, "user": address.user, "password": address.password}
    return psycopg.connect(**at, dbname=address.database, **more)


def _oid(address: SourceAddress) -> int:
    with connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 'public.t'::regclass::oid::bigint")
        return int(cursor.fetchone()[0])


def _hold(told: str) -> None:
    """In a process of its own: hold the table until a line comes, then say whether the copy gave way."""
    from tidemark.model.codec import from_json

    address = from_json(SourceAddress, told)
    with pinned_table(address, _oid(address), name="t", patience=PATIENCE, bound=BOUND) as table:
        print(json.dumps([table.statements, table.readers, table.held(1000)]), flush=True)
        sys.stdin.readline()
        while table.gave_way() is None:
            time.sleep(0.1)
        print(table.gave_way(), flush=True)


@contextmanager
def _holder(address: SourceAddress) -> Iterator[subprocess.Popen[str]]:
    from tidemark.model.codec import to_json

    code = f"import sys; from {__name__} import _hold; _hold(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command, pipe = [sys.executable, "-c", code, to_json(address)], subprocess.PIPE
    process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_a_worker_that_is_frozen_lets_the_application_through(address: SourceAddress) -> None:
    """And a reader that goes on without it, as behind a server of Spark's own, lets it through, too."""
    ended: list[type[BaseException]] = []

    def read(query: str, statements: list[str], readers: str) -> None:
        try:
            with _application(address, application_name=readers) as reader:
                reader.execute("; ".join(statements))
                holds.set()
                reader.execute(query)
        except psycopg.OperationalError as error:
            ended.append(type(error))

    with _holder(address) as process:
        statements, readers, held = json.loads(_line(process))
        holds = threading.Event()
        query = f"SELECT count(*) FROM public.t AS a, public.t AS b, public.t AS c WHERE {held}"
        reading = threading.Thread(target=read, args=(query, statements, readers))
        reading.start()
        assert holds.wait(FEW)
        process.send_signal(signal.SIGSTOP)
        with _application(address, autocommit=True, options=f"-c statement_timeout={FEW:.0f}s") as altering:
            queue = threading.Thread(target=altering.execute, args=("ALTER TABLE t ADD COLUMN w int",))
            queue.start()
            with _application(address, autocommit=True, options=f"-c statement_timeout={FEW:.0f}s") as selecting:
                while selecting.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchall() == [(0,)]:
                    pass
                assert selecting.execute("SELECT count(*) FROM t").fetchall() == [(2000,)]
            queue.join()
        reading.join()
        assert ended == [psycopg.errors.AdminShutdown]
        process.send_signal(signal.SIGCONT)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert "the session that holds it was ended" in _line(process)


def test_a_copy_that_is_driven_lives_for_longer_than_the_server_would_let_it(address: SourceAddress) -> None:
    with pinned_table(address, _oid(address), name="t", patience=PATIENCE, bound=timedelta(milliseconds=1)) as table:
        time.sleep(6)
        assert table.gave_way() is None
        with _application(address) as reader:
            reader.execute("; ".join(table.statements))
            assert reader.execute(f"SELECT count(*) FROM public.t WHERE {table.held(1)}").fetchall() == [(2000,)]


def test_a_watch_that_sees_nothing_ends_the_copy_itself(
    address: SourceAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    away: list[bool] = []
    look = giving_way.waiting_for

    def waiting_for(*arguments: Any, **more: Any) -> Any:
        if away:
            raise SourceUnreachable(source="s", problem="too many connections")
        return look(*arguments, **more)

    monkeypatch.setattr(giving_way, "waiting_for", waiting_for)
    with (
        pinned_table(address, _oid(address), name="t", patience=PATIENCE, bound=BOUND) as table,
        _application(address, autocommit=True, options=f"-c statement_timeout={FEW:.0f}s") as altering,
    ):
        away.append(True)
        altering.execute("ALTER TABLE t ADD COLUMN w int")
        assert table.gave_way() == "nobody could see for 2 s who waits for it"


def test_the_server_is_told_when_to_end_a_session_of_a_copy(address: SourceAddress) -> None:
    options = jdbc_properties(address, bound=timedelta(seconds=5))["options"]
    wanted = ("1min", "5", "5", "2", "60000", "100ms")
    asked = (
        "idle_in_transaction_session_timeout", "tcp_keepalives_idle", "tcp_keepalives_interval",
        "tcp_keepalives_count", "tcp_user_timeout", "lock_timeout",
    )  # fmt: skip
    shown = "SELECT " + ", ".join(f"current_setting('{name}')" for name in asked)
    with _application(address, options=options) as reader:
        assert reader.execute(shown).fetchone() == wanted
    with (
        pinned_table(address, _oid(address), name="t", patience=PATIENCE, bound=timedelta(seconds=30)) as table,
        _application(address) as reader,
    ):
        reader.execute("; ".join(table.statements))
        assert reader.execute(shown).fetchone() == ("90s", "30", "30", "2", "90000", "100ms")


def test_a_snapshot_that_nobody_takes_goes(address: SourceAddress) -> None:
    slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    with exported_snapshot(address, patience=PATIENCE, bound=timedelta(milliseconds=1)):
        until = time.monotonic() + FEW
        with _application(address, autocommit=True) as other:
            while other.execute(slots).fetchall() != [(0,)] and time.monotonic() < until:
                time.sleep(0.2)
            assert other.execute(slots).fetchall() == [(0,)]
