"""A copy of a table lets through who waits behind it, also one who gives up and tries again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pymysql
import pytest

from tests.databases.mysql.captured import BinlogWorld
from tests.databases.mysql.conftest import STARTED
from tests.tiers import some
from tests.until import wait_until
from tidemark.replication.sources.mysql.held import HeldTable, held_table

_BOUND = timedelta(seconds=1.5)
_LOCK_WAIT_TIMEOUT = 1205


def test_a_session_that_gives_up_and_tries_again_is_let_through(world: BinlogWorld) -> None:
    """Each of its attempts waits for less than the bound, and between them nobody waits."""
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    source_id, marker = f"{world.database}.t", f"test-{world.database}"
    with (
        held_table(world.address, source_id, name="t", marker=marker, bound=_BOUND) as held,
        closing(world.server.connection(world.database)) as application,
        application.cursor() as cursor,
    ):
        cursor.execute("SET lock_wait_timeout = 1")
        attempts = 1
        while not _altered(cursor):
            attempts += 1
            assert attempts < 20
            time.sleep(1)
        assert attempts > 1, "the table was not held"
        assert "ALTER TABLE t" in (held.gave_way() or "")


@pytest.mark.parametrize("kind", some(["mariadb", "mysql"], ["mariadb"], "a server that has to be fetched first"))
def test_a_wait_for_another_table_is_none_for_the_copy(kind: str) -> None:
    """A MySQL records who waits for which table by default, a MariaDB if it is asked to."""
    recorded = ["--performance-schema=ON", "--performance-schema-instrument=wait/lock/metadata/sql/mdl=ON"]
    with STARTED[kind](recorded) as server:
        world = BinlogWorld(server)
        world.sql("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY)")
        with _held(world) as held:
            with _waiter_for_another_table(world):
                time.sleep(2 * _BOUND.total_seconds())
                assert held.gave_way() is None
            with _statement(world, "ALTER TABLE t ADD COLUMN v INT"):
                wait_until(lambda: held.gave_way() is not None)
            assert "ALTER TABLE t" in (held.gave_way() or "")


def test_every_wait_counts_if_the_user_may_not_see_what_it_is_for(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY)")
    world.server.sql("CREATE USER little@'%' IDENTIFIED BY 'x'")
    try:
        world.server.sql("GRANT PROCESS, REPLICATION CLIENT ON *.* TO little@'%'")
        world.server.sql(f"GRANT SELECT ON {world.database}.* TO little@'%'")
        with _held(world, user="little", password="x") as held, _waiter_for_another_table(world):
            wait_until(lambda: held.gave_way() is not None)
        assert "ALTER TABLE other" in (held.gave_way() or "")
    finally:
        world.server.sql("DROP USER little@'%'")


def _held(world: BinlogWorld, **user: str) -> AbstractContextManager[HeldTable]:
    address = replace(world.address, **user)  # type: ignore[arg-type]
    return held_table(address, f"{world.database}.t", name="t", marker=f"test-{world.database}", bound=_BOUND)


@contextmanager
def _waiter_for_another_table(world: BinlogWorld) -> Iterator[None]:
    """A migration that waits for a reader who has nothing to do with the copy."""
    with closing(world.server.connection(world.database)) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT * FROM other")
        with _statement(world, "ALTER TABLE other ADD COLUMN v INT"):
            yield
            reader.rollback()


@contextmanager
def _statement(world: BinlogWorld, statement: str) -> Iterator[None]:
    """The statement runs meanwhile, and ends before the context does."""
    with ThreadPoolExecutor(1) as others:
        done = others.submit(world.sql, statement)
        yield
        done.result(60)


def _altered(cursor: Any) -> bool:
    try:
        cursor.execute("ALTER TABLE t ADD COLUMN v INT")
        return True
    except pymysql.err.OperationalError as error:
        if error.args[0] != _LOCK_WAIT_TIMEOUT:
            raise
        return False
