"""A PostgreSQL server on a free port of this machine, in a directory that goes when it ends."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PostgresNotInstalled", "ThrowAwayPostgres", "free_port", "postgresql_programs", "throw_away_postgresql"]

SUPERUSER = "postgres"
FAST = ("fsync=off", "full_page_writes=off", "autovacuum=off", "max_connections=200")
LOGICAL = ("wal_level=logical", "max_replication_slots=40", "max_wal_senders=40", "max_prepared_transactions=5")
_PATIENCE = 90  # seconds that initdb, a start or a stop may take on a machine that is busy
_ROOM_IN_MEMORY = 4 << 30  # bytes


class PostgresNotInstalled(RuntimeError):
    """PostgreSQL's server is not installed (Debian: apt-get install postgresql; macOS: brew install postgresql)."""

    def __init__(self) -> None:
        super().__init__((type(self).__doc__ or "").strip())


@dataclass(frozen=True)
class ThrowAwayPostgres:
    """A server that answers on 127.0.0.1 to its superuser `postgres`, and where its programs are."""

    programs: Path
    data: Path
    port: int
    password: str = field(repr=False)

    def start(self) -> None:
        """Returns when connections are taken. Raises RuntimeError with what the server said."""
        log = self.data.parent / "log"
        _run(self.programs / "pg_ctl", "start", "-D", self.data, "-w", "-t", "60", "-l", log)

    def stop(self) -> None:
        """At once, as if the power had gone: every connection breaks."""
        _run(self.programs / "pg_ctl", "stop", "-D", self.data, "-m", "immediate", "-w")

    def restart(self) -> None:
        """Every connection breaks, then new ones are taken again."""
        self.stop()
        self.start()


@contextmanager
def throw_away_postgresql(*, password: str, settings: Sequence[str] = (*FAST, *LOGICAL)) -> Iterator[ThrowAwayPostgres]:
    """A server that forgets to sync, for speed, and that can be replicated. PostgreSQL refuses to run as root, so for
    root it runs as `postgres`. `settings`: lines `name=value` of its configuration; of two with one name the later
    counts. Raises PostgresNotInstalled, RuntimeError with what a program said.
    """
    programs = postgresql_programs()
    if programs is None:
        raise PostgresNotInstalled
    root = Path(tempfile.mkdtemp(prefix="tidemark-pg-", dir=_memory()))
    server = ThrowAwayPostgres(programs, root / "data", free_port(), password)
    try:
        _initialise(server)
        _configure(server, settings)
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(root, ignore_errors=True)


def postgresql_programs() -> Path | None:
    """Where initdb and pg_ctl are: on the PATH, or where Debian and Homebrew keep what they do not put there."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    places = (*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/opt/homebrew/opt").glob("postgresql@*/bin"))
    known = sorted(place for place in places if (place / "initdb").exists())
    return known[-1] if known else None


def free_port() -> int:
    """A port of this host that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _initialise(server: ThrowAwayPostgres) -> None:
    root = server.data.parent
    secret = root / "password"
    secret.touch(mode=0o600)
    secret.write_text(server.password)
    if os.geteuid() == 0:
        shutil.chown(root, SUPERUSER)
        shutil.chown(secret, SUPERUSER)
    how = ("--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8")
    _run(server.programs / "initdb", "-D", server.data, "-U", SUPERUSER, f"--pwfile={secret}", *how)
    secret.unlink()


def _configure(server: ThrowAwayPostgres, settings: Sequence[str]) -> None:
    own = (f"port={server.port}", "listen_addresses=127.0.0.1", "unix_socket_directories=")
    with (server.data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, _, value in (s.partition("=") for s in (*own, *settings)))


def _memory() -> str | None:
    """A directory in memory with room for some hundred databases, or None: the usual place."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM_IN_MEMORY
    return str(memory) if roomy else None


def _run(*command: object) -> None:
    words: Sequence[str] = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["setpriv", f"--reuid={SUPERUSER}", f"--regid={SUPERUSER}", "--init-groups", *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE, cwd="/", stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
