"""The judgement of `make demo-replication SOURCE=mariadb`: a past state of a table, by its journal and its writer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.databases.mariadb import missing
from tidemark.testing import throw_away_mariadb

sys.path.append(str(Path(__file__).parents[2] / "dags"))

from replication.compare import TABLES
from replication.mariadb.journal import compare
from replication.mariadb.shop import fill, make_shop
from replication.mariadb.writer import Writer

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def connections() -> Iterator[tuple[Any, Any]]:
    """Two autocommit connections to a new shop."""
    import pymysql

    with throw_away_mariadb(password="secret-1") as server:
        at = {"host": "127.0.0.1", "port": server.port, "user": server.user, "password": server.password}
        opened = [pymysql.connect(**at, autocommit=True, charset="utf8mb4") for _ in range(2)]
        make_shop(opened[0])
        fill(opened[0], orders=50)
        yield opened[0], opened[1]
        for connection in opened:
            connection.close()


@pytest.fixture
def writer(connections: tuple[Any, Any]) -> Writer:
    connection, writing = connections
    writer = Writer(writing, seed=3)
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(transaction), 0) FROM journal.changes")
        writer.transactions = int(cursor.fetchone()[0])
    return writer


def rows_now(connection: Any) -> dict[str, list[dict[str, Any]]]:
    found = {}
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for table in TABLES:
            cursor.execute(f"SELECT * FROM shop.{table}")
            names = [column[0] for column in cursor.description]
            found[table] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return found


def end_of_log(connection: Any) -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        name, place, *_ = cursor.fetchone()
    return int(name.rpartition(".")[2]), int(place)


def test_a_past_state_is_told_exactly_though_the_writer_has_gone_on(
    connections: tuple[Any, Any], writer: Writer
) -> None:
    connection, _ = connections
    for _ in range(150):
        writer.step()
    place, then = end_of_log(connection), rows_now(connection)
    for _ in range(60):
        writer.step()
    for table, rows in then.items():
        told = compare(connection, table, place, rows)
        assert (told.differs, told.later, told.source, told.target) == (0, 0, len(rows), len(rows))
        assert compare(connection, table, place, rows[1:]).differs == 1
        changed = [{**rows[0], next(iter(rows[0])): None}, *rows[1:]]
        assert compare(connection, table, place, changed).differs == 2


def test_rows_of_a_copy_may_be_later_ones_but_no_others(connections: tuple[Any, Any], writer: Writer) -> None:
    connection, _ = connections
    place, first = end_of_log(connection), writer.number
    for _ in range(100):
        writer.step()
    copied, rows = range(first, writer.number + 1), rows_now(connection)["orders"]
    told = compare(connection, "orders", place, rows, copied)
    assert (told.differs, told.later > 10) == (0, True)
    assert compare(connection, "orders", place, rows).differs == told.later
    wrong = [{**row, "weight": -1.0} if row["id"] == writer._last_order else row for row in rows]
    assert compare(connection, "orders", place, wrong, copied).differs > 0
    assert compare(connection, "orders", place, [*rows, rows[-1]], copied).differs > 0


def test_a_server_that_was_killed_comes_back_with_its_rows() -> None:
    import pymysql

    with throw_away_mariadb(password="secret-1") as server:
        at = {"host": "127.0.0.1", "port": server.port, "user": server.user, "password": server.password}
        with pymysql.connect(**at, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE d")
            cursor.execute("CREATE TABLE d.t (id INT PRIMARY KEY)")
        server.restart()
        with pymysql.connect(**at) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW TABLES IN d")
            assert cursor.fetchall() == (("t",),)
        with pytest.raises(pymysql.err.OperationalError):
            pymysql.connect(**{**at, "password": ""})
