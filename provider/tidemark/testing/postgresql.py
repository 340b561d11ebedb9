"""A PostgreSQL server on a free port of this machine, in a temporary directory."""

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

__all__ = [
    "PostgresNotInstalled",
    "ThrowAwayPostgres",
    "free_port",
    "memory",
    "postgresql_programs",
    "throw_away_postgresql",
]

SUPERUSER = "postgres"
FAST = ("fsync=off", "full_page_writes=off", "autovacuum=off", "max_connections=200")
LOGICAL = ("wal_level=logical", "max_replication_slots=40", "max_wal_senders=40", "max_prepared_transactions=5")
_PATIENCE = 90  # seconds for initdb, a start or a stop on a busy machine
_ROOM_IN_MEMORY = 4 << 30  # bytes


class PostgresNotInstalled(RuntimeError):
    """PostgreSQL's server is not installed (Debian: apt-get install postgresql; macOS: brew install postgresql)."""

    def __init__(self) -> None:
        super().__init__((type(self).__doc__ or "").strip())


@dataclass(frozen=True)
class ThrowAwayPostgres:
    """A server on 127.0.0.1 with the superuser `postgres`, and the directory of its programs."""

    programs: Path
    data: Path
    port: int
    password: str = field(repr=False)

    def start(self) -> None:
        """Starts the server, and returns when it accepts connections. Raises RuntimeError with the server's log."""
        log = self.data.parent / "log"
        _run(self.programs / "pg_ctl", "start", "-D", self.data, "-w", "-t", "60", "-l", log)

    def stop(self) -> None:
        """Stops the server at once, as a power failure does. Every connection breaks."""
        _run(self.programs / "pg_ctl", "stop", "-D", self.data, "-m", "immediate", "-w")

    def restart(self) -> None:
        """Restarts the server. Every connection breaks, then new ones are accepted."""
        self.stop()
        self.start()


@contextmanager
def throw_away_postgresql(
    *, password: str, settings: Sequence[str] = (*FAST, *LOGICAL), auth: str = "scram-sha-256"
) -> Iterator[ThrowAwayPostgres]:
    """A server that can be replicated and, for speed, does not sync. As root it runs as the user `postgres`.

    `settings`: lines `name=value` of its configuration; the last line of a name counts. `auth`: how users log in, as
    initdb names it. Raises PostgresNotInstalled, and RuntimeError with a program's output.
    """
    programs = postgresql_programs()
    if programs is None:
        raise PostgresNotInstalled
    root = Path(tempfile.mkdtemp(prefix="tidemark-pg-", dir=memory()))
    server = ThrowAwayPostgres(programs, root / "data", free_port(), password)
    try:
        _initialise(server, auth)
        _configure(server, settings)
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(root, ignore_errors=True)


def postgresql_programs() -> Path | None:
    """The directory of initdb and pg_ctl: on the PATH, or the one that Debian or Homebrew uses."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    places = (*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/opt/homebrew/opt").glob("postgresql@*/bin"))
    known = sorted(place for place in places if (place / "initdb").exists())
    return known[-1] if known else None


def free_port() -> int:
    """A free port of this host."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def memory() -> str | None:
    """A directory in memory with room for some hundred databases; None for the usual temporary directory."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM_IN_MEMORY
    return str(memory) if roomy else None


def _initialise(server: ThrowAwayPostgres, auth: str) -> None:
    root = server.data.parent
    secret = root / "password"
    secret.touch(mode=0o600)
    secret.write_text(server.password)
    if os.geteuid() == 0:
        shutil.chown(root, SUPERUSER)
        shutil.chown(secret, SUPERUSER)
    how = ("--no-sync", f"--auth={auth}", "--encoding=UTF8", "--locale=C.UTF-8")
    _run(server.programs / "initdb", "-D", server.data, "-U", SUPERUSER, f"--pwfile={secret}", *how)
    secret.unlink()


def _configure(server: ThrowAwayPostgres, settings: Sequence[str]) -> None:
    own = (f"port={server.port}", "listen_addresses=127.0.0.1", "unix_socket_directories=")
    with (server.data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, _, value in (s.partition("=") for s in (*own, *settings)))


def _run(*command: object) -> None:
    words: Sequence[str] = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["setpriv", f"--reuid={SUPERUSER}", f"--regid={SUPERUSER}", "--init-groups", *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE, cwd="/", stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
