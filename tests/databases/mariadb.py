"""A MariaDB server of the tests' own, on a free port of this machine, in a directory that goes when it ends.

It is not `throw_away_mariadb`: its users, and how it ends, are those that tests of replications need, also of a MySQL.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.testing.mariadb import MariaDBNotInstalled, as_account, empty_directory, make_data, mariadb_programs
from tidemark.testing.postgresql import free_port

__all__ = ["PASSWORD", "USER", "BinlogServer", "mariadb_or_skip", "missing", "running_mariadb"]

USER = "tidemark"
PASSWORD = "p@ss:w/rd?%"  # every character that a URL must encode
_PATIENCE = 90
_LOGGED = (
    "--log-bin=test-bin", "--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL",
    "--default-time-zone=+03:00", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0",
)  # fmt: skip

_REPLICA = {SourceKind.MARIADB: "SLAVE", SourceKind.MYSQL: "REPLICA"}
_FOLLOW = {
    SourceKind.MARIADB: "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}',"
    " MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos",
    SourceKind.MYSQL: "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='{user}',"
    " SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
}


@dataclass
class BinlogServer:
    """A server with a binary log. `program`: the command that starts it; `environment` of it."""

    kind: SourceKind
    data: Path
    port: int
    program: Sequence[str]
    settings: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    made: int = 0

    def start(self) -> None:
        """Starts the server, and returns when it accepts connections."""
        own = (f"--datadir={self.data}", f"--port={self.port}", "--bind-address=127.0.0.1",
               f"--socket={self.data.parent}/s", f"--pid-file={self.data.parent}/pid")  # fmt: skip
        log = (self.data.parent / "log").open("ab")
        self.process = subprocess.Popen(
            as_account([*self.program, *own, *_LOGGED, *self.settings]), stdout=log, stderr=log, cwd="/",
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.sql("SELECT 1")
                return
            except pymysql.err.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.data.parent / "log").read_text(errors="replace")[-4000:]) from None
                time.sleep(0.05)

    def stop(self, *, crash: bool = False) -> None:
        """Ends the server; `crash`: as a power failure does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL if crash else signal.SIGTERM)
        self.process.wait(_PATIENCE)

    def restart(self) -> None:
        """Every connection breaks, then new ones are accepted, and the log has another file."""
        self.stop()
        self.start()

    def connection(
        self, database: str | None = None, user: str = "root", password: str = "", *, local_infile: bool = False
    ) -> Any:
        """For statements of an application: not in UTC, not autocommit. `local_infile`: it may load files of here."""
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, database=database, charset="utf8mb4",
            local_infile=local_infile,
        )  # fmt: skip

    def sql(self, text: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Runs one statement as root and commits; its rows, if it has any."""
        connection = self.connection(database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(text)
                rows = list(cursor.fetchall()) if cursor.description else []
            connection.commit()
            return rows
        finally:
            connection.close()

    def new_database(self, prefix: str = "shop") -> str:
        """The name of a database that nobody else has."""
        self.made += 1
        name = f"{prefix}{self.made}"
        self.sql(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return name

    def address(self, database: str = "", user: str = USER, password: str = PASSWORD) -> SourceAddress:
        """For a replication, as a user with the least rights."""
        return SourceAddress(self.kind, "127.0.0.1", self.port, database, user, password)

    def forget_log(self) -> None:
        """Its log begins again, without a transaction."""
        self.sql("RESET MASTER" if self.kind is SourceKind.MARIADB else "RESET BINARY LOGS AND GTIDS")

    def follow(self, primary: BinlogServer) -> None:
        """From now on it is a replica of a server that has had no transaction since its log began."""
        self.sql(_FOLLOW[self.kind].format(port=primary.port, user=USER, password=PASSWORD))
        self.sql(f"START {_REPLICA[self.kind]}")

    def wait_for(self, gtids: str) -> None:
        """Until it has applied these transactions of its primary."""
        wait = "MASTER_GTID_WAIT" if self.kind is SourceKind.MARIADB else "WAIT_FOR_EXECUTED_GTID_SET"
        ((code,),) = self.sql(f"SELECT {wait}('{gtids}', {_PATIENCE})")
        assert code == 0

    def promote(self) -> None:
        """It applies what it has received, and is a primary then."""
        replica = _REPLICA[self.kind]
        self.sql(f"STOP {replica} IO_THREAD")
        deadline = time.monotonic() + _PATIENCE
        while not self._has_applied_all() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.sql(f"STOP {replica}")
        self.sql(f"RESET {replica} ALL")

    def _has_applied_all(self) -> bool:
        connection = self.connection()
        try:
            with connection.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute(f"SHOW {_REPLICA[self.kind]} STATUS")
                (found,) = cursor.fetchall()
                if self.kind is SourceKind.MARIADB:
                    cursor.execute("SELECT @@gtid_slave_pos AS applied")
                    return bool(cursor.fetchone()["applied"] == found["Gtid_IO_Pos"])
                cursor.execute("SELECT GTID_SUBSET(%s, @@gtid_executed) AS applied", (found["Retrieved_Gtid_Set"],))
                return bool(cursor.fetchone()["applied"])
        finally:
            connection.close()

    def make_user(self) -> None:
        """The user of a replication, with the rights that the docs name."""
        rights = "SELECT, PROCESS, REPLICATION SLAVE, REPLICATION CLIENT"
        if self.kind is SourceKind.MARIADB:
            rights = "SELECT, PROCESS, REPLICATION SLAVE, BINLOG MONITOR"
        secret = pymysql.converters.escape_string(PASSWORD)
        self.sql(f"CREATE USER {USER}@'%' IDENTIFIED BY '{secret}'".replace("%", "%"))
        self.sql(f"GRANT {rights} ON *.* TO {USER}@'%'")


def missing() -> str | None:
    """Why no server can be started here, in words that help; None if one can."""
    return None if mariadb_programs() else str(MariaDBNotInstalled())


@contextmanager
def mariadb_or_skip(settings: Sequence[str] = ()) -> Iterator[BinlogServer]:
    """A server for a fixture; where none can be started its tests are skipped, with the reason."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with running_mariadb(settings) as server:
        yield server


@contextmanager
def running_mariadb(settings: Sequence[str] = ()) -> Iterator[BinlogServer]:
    """A server with the user of a replication. `settings`: more options; of two with one name the later counts."""
    programs = mariadb_programs()
    if programs is None:
        raise MariaDBNotInstalled
    root = empty_directory()
    try:
        data = root / "data"
        make_data(programs, data, auth="normal")
        own = ("--server-id=901", "--gtid-strict-mode=1", *settings)
        server = BinlogServer(SourceKind.MARIADB, data, free_port(), [str(programs[0]), "--no-defaults"], own)
        with running(server):
            server.make_user()
            yield server
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def running(server: BinlogServer) -> Iterator[None]:
    """The server, until the context ends."""
    server.start()
    try:
        yield
    finally:
        if server.process is not None and server.process.poll() is None:
            server.stop(crash=True)


if __name__ == "__main__":  # how long a server takes to come
    began = time.monotonic()
    with running_mariadb() as one:
        print(f"up after {time.monotonic() - began:.2f} s: {one.sql('SELECT version()')}")
