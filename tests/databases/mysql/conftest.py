"""Servers with binary logs: a MariaDB, and in nightly runs a MySQL as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.databases.mariadb import BinlogServer, mariadb_or_skip
from tests.databases.mysql.captured import BinlogWorld
from tests.databases.mysql_server import mysql_or_skip
from tests.tiers import some

STARTED = {"mariadb": mariadb_or_skip, "mysql": mysql_or_skip}


@pytest.fixture(
    scope="session", params=some(["mariadb", "mysql"], ["mariadb"], "a server that has to be fetched first")
)
def binlog_server(request: pytest.FixtureRequest) -> Iterator[BinlogServer]:
    """One server for all tests of the process; each takes a database of its own."""
    with STARTED[request.param]() as server:
        yield server


@pytest.fixture
def world(binlog_server: BinlogServer) -> BinlogWorld:
    return BinlogWorld(binlog_server)


@pytest.fixture(params=some(["mariadb", "mysql"], ["mariadb"], "a server that has to be fetched first"))
def own_server(request: pytest.FixtureRequest) -> Iterator[BinlogServer]:
    """A server of the test's own, whose settings it may change."""
    with STARTED[request.param]() as server:
        yield server


@contextmanager
def with_setting(server: BinlogServer, name: str, value: str) -> Iterator[None]:
    """A global variable, until the context ends."""
    ((before,),) = server.sql(f"SELECT @@GLOBAL.{name}")
    server.sql(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.sql(f"SET GLOBAL {name} = {before if isinstance(before, int) else repr(before)}")
