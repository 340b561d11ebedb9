"""A PostgreSQL server of the tests' own, on a free port of this machine, in a directory that goes when it ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.ports import free_port
from tidemark.model.replication import SourceAddress, SourceKind

__all__ = ["LOGICAL", "PASSWORD", "USER", "PostgresServer", "missing", "postgresql_or_skip", "running_postgresql"]

USER = "postgres"
PASSWORD = "p@ss:w/rd?%"  # every character that a URL must encode
LOGICAL = (  # of a server that is replicated
    "wal_level=logical",
    "max_replication_slots=40",
    "max_wal_senders=40",
    "max_prepared_transactions=5",
)
_NUMBERS = count(1)
_FAST = ("fsync=off", "full_page_writes=off", "autovacuum=off", "max_connections=200")


@dataclass(frozen=True)
class PostgresServer:
    """A server that answers, and where its programs are."""

    programs: Path
    data: Path
    port: int

    def url(self, database: str, user: str = USER, port: int | None = None) -> str:
        """For SQLAlchemy, with the password in it."""
        return f"postgresql+psycopg://{user}:{_encoded(PASSWORD)}@127.0.0.1:{port or self.port}/{database}"

    def address(
        self, database: str, user: str = USER, password: str = PASSWORD, port: int | None = None
    ) -> SourceAddress:
        """For a replication."""
        return SourceAddress(SourceKind.POSTGRESQL, "127.0.0.1", port or self.port, database, user, password)

    def new_database(self, template: str = "template1") -> str:
        """The name of a database that nobody else has."""
        name = f"test_{next(_NUMBERS)}"
        copied = "STRATEGY FILE_COPY" if self._major >= 15 else ""  # what older ones do anyway
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template} {copied}")
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

    def restart(self) -> None:
        """Every connection breaks, then new ones are taken again."""
        self.stop()
        self.start()

    def stop(self) -> None:
        _run(self.programs / "pg_ctl", "stop", "-D", self.data, "-m", "immediate", "-w")

    def start(self) -> None:
        log = self.data.parent / "log"
        _run(self.programs / "pg_ctl", "start", "-D", self.data, "-w", "-t", "60", "-l", log)


def missing() -> str | None:
    """Why no server can be started here, in words that help; None if one can."""
    if _programs() is None:
        return (
            "PostgreSQL's server is not installed (Debian: apt-get install postgresql; macOS: brew install postgresql)"
        )
    return None


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
    """A server that forgets to sync, for speed. PostgreSQL refuses to run as root, so for root it runs as postgres.

    `settings`: more of them, as `name=value`; of two with one name the later counts.
    """
    programs = _programs()
    if programs is None:
        raise RuntimeError(missing())
    root = Path(tempfile.mkdtemp(prefix="tidemark-pg-", dir=_memory()))
    server = PostgresServer(programs, root / "data", free_port())
    try:
        secret = root / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(root, USER)
            shutil.chown(secret, USER)
        how = ("--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8")
        _run(programs / "initdb", "-D", server.data, "-U", USER, f"--pwfile={secret}", *how)
        own = (f"port={server.port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", *_FAST)
        with (server.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, _, value in (s.partition("=") for s in (*own, *settings)))
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(root, ignore_errors=True)


def _programs() -> Path | None:
    """Where initdb and pg_ctl are: on the PATH, or where Debian and Homebrew keep what they do not put there."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    places = (*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/opt/homebrew/opt").glob("postgresql@*/bin"))
    known = sorted(place for place in places if (place / "initdb").exists())
    return known[-1] if known else None


def _memory() -> str | None:
    """A directory in memory with room for some hundred databases, or None: the usual place."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30
    return str(memory) if roomy else None


def _run(*command: object) -> None:
    words: Sequence[str] = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=90, cwd="/", stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")


def _encoded(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


if __name__ == "__main__":  # how long a server takes to come and go
    began = time.monotonic()
    with running_postgresql() as one:
        print(f"up after {time.monotonic() - began:.2f} s: {one.sql('SELECT version()')}")
        began = time.monotonic()
        for _ in range(10):
            one.new_database()
        print(f"a database: {(time.monotonic() - began) / 10:.3f} s")
