"""The demo's source: a throw-away PostgreSQL."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from replication.apt import install
from replication.compare import Comparison
from replication.postgresql.journal import compare
from replication.postgresql.shop import fill, make_shop
from replication.postgresql.writer import Writer
from tidemark.replication.model.replication import LogPosition
from tidemark.testing import ThrowAwayPostgres, postgresql_programs, throw_away_postgresql

__all__ = ["PostgreSQLSource", "postgresql_source"]

DATABASE, USER = "shop", "postgres"


class PostgreSQLSource:
    """The server while it runs. Copies are exact, so nothing is said of them."""

    how_copied = None

    def __init__(self, server: ThrowAwayPostgres, connection: Any, writing: Any, rows: int) -> None:
        self.port, self.rows, self.writer = server.port, rows, Writer(writing)
        self._password, self._connection = server.password, connection

    @property
    def airflow_connection(self) -> Mapping[str, Any]:
        at = {"host": "127.0.0.1", "port": self.port, "schema": DATABASE}
        return {"conn_type": "postgres", **at, "login": USER, "password": self._password}

    def copying(self, tables: Collection[str]) -> AbstractContextManager[None]:
        return nullcontext()

    def compare(self, table: str, position: LogPosition, target: Iterable[Mapping[str, Any]]) -> Comparison:
        from tidemark.replication.planning.positions import position_text

        return compare(self._connection, table, position_text(position), target)


@contextmanager
def postgresql_source(orders: int) -> Iterator[PostgreSQLSource]:
    """A server with a shop of this many orders. Raises PostgresNotInstalled."""
    if postgresql_programs() is None:
        install("PostgreSQL", "postgresql")
    with throw_away_postgresql(password=secrets.token_urlsafe()) as server:
        with _connected(server, USER) as admin:
            admin.cursor().execute(f"CREATE DATABASE {DATABASE}")
        with _connected(server, DATABASE) as connection, _connected(server, DATABASE) as writing:
            make_shop(connection)
            yield PostgreSQLSource(server, connection, writing, fill(connection, orders=orders))


@contextmanager
def _connected(server: ThrowAwayPostgres, database: str) -> Iterator[Any]:
    import psycopg2

    connection = psycopg2.connect(
        host="127.0.0.1", port=server.port, user=USER, password=server.password, dbname=database
    )
    connection.autocommit = True
    try:
        yield connection
    finally:
        connection.close()
