"""The demo's source: a throw-away MariaDB."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from replication.apt import install
from replication.compare import Comparison
from replication.mariadb.journal import NEVER, compare
from replication.mariadb.shop import fill, make_shop, make_user
from replication.mariadb.writer import Writer
from tidemark.replication.model.replication import LogPosition
from tidemark.testing import ThrowAwayMariaDB, mariadb_programs, throw_away_mariadb

__all__ = ["MariaDBSource", "mariadb_source"]

USER = "tidemark"


class MariaDBSource:
    """The server while it runs. It knows which transactions ran while a table was copied."""

    how_copied = (
        "A copy of a table with a key reads each row at its position or later, and the next events complete it.\n"
        "'later' counts rows that were written while they were copied: each must be one that its key has had since.\n"
        "visits has no key, so events could not repair it: one session copies it exactly as of a position."
    )

    def __init__(self, server: ThrowAwayMariaDB, password: str, connection: Any, writing: Any, rows: int) -> None:
        self.port, self.rows, self.writer = server.port, rows, Writer(writing)
        self._password, self._connection = password, connection
        self._copied: dict[str, range] = {}

    @property
    def airflow_connection(self) -> Mapping[str, Any]:
        at = {"host": "127.0.0.1", "port": self.port}
        return {"conn_type": "mysql", **at, "login": USER, "password": self._password}

    @contextmanager
    def copying(self, tables: Collection[str]) -> Iterator[None]:
        first = self.writer.number
        yield
        self._copied |= dict.fromkeys(tables, range(first, self.writer.number + 1))

    def compare(self, table: str, position: LogPosition, target: Iterable[Mapping[str, Any]]) -> Comparison:
        from tidemark.replication.planning.positions import place_of

        place = place_of(position)
        assert place is not None
        copied = self._copied.get(table, NEVER)
        return compare(self._connection, table, (place.number, place.offset), target, copied)


@contextmanager
def mariadb_source(orders: int) -> Iterator[MariaDBSource]:
    """A server with a shop of this many orders, and a user for its replication. Raises MariaDBNotInstalled."""
    if mariadb_programs() is None:
        install("MariaDB", "mariadb-server")
    with (
        throw_away_mariadb(password=secrets.token_urlsafe()) as server,
        _connected(server) as connection,
        _connected(server) as writing,
    ):
        make_shop(connection)
        password = secrets.token_urlsafe()
        make_user(connection, USER, password)
        yield MariaDBSource(server, password, connection, writing, fill(connection, orders=orders))


@contextmanager
def _connected(server: ThrowAwayMariaDB) -> Iterator[Any]:
    import pymysql

    connection = pymysql.connect(
        host="127.0.0.1", port=server.port, user=server.user, password=server.password, charset="utf8mb4",
        autocommit=True,
    )  # fmt: skip
    try:
        yield connection
    finally:
        connection.close()
