"""A copy of a table lets through who waits behind it, also one who gives up and tries again."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import timedelta
from typing import Any

import pymysql

from tests.databases.mysql.captured import BinlogWorld
from tidemark.replication.sources.mysql.held import held_table

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


def _altered(cursor: Any) -> bool:
    try:
        cursor.execute("ALTER TABLE t ADD COLUMN v INT")
        return True
    except pymysql.err.OperationalError as error:
        if error.args[0] != _LOCK_WAIT_TIMEOUT:
            raise
        return False
