"""A PostgreSQL server of the tests' own, on a free port of this machine, in a directory that goes when it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from urllib.parse import quote

import pytest

from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.testing import PostgresNotInstalled, ThrowAwayPostgres, postgresql_programs, throw_away_postgresql
from tidemark.testing.postgresql import FAST, LOGICAL, SUPERUSER

__all__ = [
    "LOGICAL",
    "PASSWORD",
    "USER",
    "PostgresServer",
    "drop_databases",
    "missing",
    "postgresql_or_skip",
    "running_postgresql",
]

USER = SUPERUSER
PASSWORD = "p@ss:w/rd?%"  # every character that a URL must encode
_NUMBERS = count(1)
_MADE: list[tuple[PostgresServer, str]] = []


class PostgresServer(ThrowAwayPostgres):
    """A server that answers, and where its programs are."""

    def url(self, database: str, user: str = USER, port: int | None = None) -> str:
        """For SQLAlchemy, with the password in it."""
        return f"postgresql+psycopg://{user}:{quote(PASSWORD, safe='')}@127.0.0.1:{port or self.port}/{database}"

    def address(
        self, database: str, user: str = USER, password: str = PASSWORD, port: int | None = None
    ) -> SourceAddress:
        """For a replication."""
        return SourceAddress(SourceKind.POSTGRESQL, "127.0.0.1", port or self.port, database, user, password)

    def new_database(self, template: str = "template1", *, kept: bool = False) -> str:
        """The name of a database that nobody else has; but for one that is `kept`, `drop_databases` removes it."""
        name = f"test_{next(_NUMBERS)}"
        copied = "STRATEGY FILE_COPY" if self._major >= 15 else ""  # what older ones do anyway
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template} {copied}")
        if not kept:
            _MADE.append((self, name))
        return name

    @property
    def _major(self) -> int:
        return int((self.data / "PG_VERSION").read_text())

    def sql(self, text: str, database: str = USER) -> list[tuple[object, ...]]:
        """Runs one statement as superuser, outside a transaction; its rows, if it has any."""
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(text.encode())
            return list(cursor.fetchall()) if cursor.description else []


def drop_databases() -> None:
    """Removes what `new_database` has made: each takes 8 MB, and the servers live in memory. What a slot or a prepared
    transaction still holds stays, as does what went with its server.
    """
    import psycopg

    while _MADE:
        server, name = _MADE.pop()
        if (server.data / "postmaster.pid").exists():
            with suppress(psycopg.errors.ObjectInUse):
                server.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def missing() -> str | None:
    """Why no server can be started here, in words that help; None if one can."""
    return None if postgresql_programs() else str(PostgresNotInstalled())


@contextmanager
def postgresql_or_skip(settings: Sequence[str] = ()) -> Iterator[PostgresServer]:
    """A server for a fixture; where none can be started its tests are skipped, with the reason."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with running_postgresql(settings) as server:
        yield server


@contextmanager
def running_postgresql(settings: Sequence[str] = ()) -> Iterator[PostgresServer]:
    """A server that forgets to sync, for speed. `settings`: more of them, as `name=value`; of two with one name the
    later counts. Each login with SCRAM would take 5 ms of CPU, and there are ten thousands of them.
    """
    with throw_away_postgresql(password=PASSWORD, settings=(*FAST, *settings), auth="md5") as server:
        yield PostgresServer(server.programs, server.data, server.port, server.password)


if __name__ == "__main__":  # how long a server takes to come and go
    began = time.monotonic()
    with running_postgresql() as one:
        print(f"up after {time.monotonic() - began:.2f} s: {one.sql('SELECT version()')}")
        began = time.monotonic()
        for _ in range(10):
            one.new_database()
        print(f"a database: {(time.monotonic() - began) / 10:.3f} s")
