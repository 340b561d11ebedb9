"""A MariaDB server on a free port of this machine, in a temporary directory."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tidemark.testing.postgresql import free_port, memory

__all__ = [
    "MariaDBNotInstalled",
    "ThrowAwayMariaDB",
    "as_account",
    "empty_directory",
    "make_data",
    "mariadb_programs",
    "throw_away_mariadb",
]

FAST = ("sync-binlog=0", "innodb-flush-log-at-trx-commit=0", "innodb-doublewrite=0")
LOGGED = (
    "server-id=1", "log-bin=mysql-bin", "binlog-format=ROW", "binlog-row-image=FULL", "binlog-row-metadata=FULL",
)  # fmt: skip
_PATIENCE = 90  # seconds for an installation, a start or a stop on a busy machine
_ACCOUNT = "mysql"
_PROGRAMS = ("mariadbd", "mariadb-install-db")
_MORE_PLACES = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/opt/mariadb/bin")
_USER = "CREATE OR REPLACE USER {user}@'127.0.0.1' IDENTIFIED BY '{password}';\n"
_RIGHTS = "GRANT ALL ON *.* TO {user}@'127.0.0.1' WITH GRANT OPTION;\n"


class MariaDBNotInstalled(RuntimeError):
    """MariaDB's server is not installed (Debian: apt-get install mariadb-server; macOS: brew install mariadb)."""

    def __init__(self) -> None:
        super().__init__((type(self).__doc__ or "").strip())


@dataclass
class ThrowAwayMariaDB:
    """A server on 127.0.0.1 with the user `admin`, who may do everything."""

    programs: Sequence[Path]
    data: Path
    port: int
    password: str = field(repr=False)
    settings: Sequence[str] = ()
    user: str = "admin"
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Starts the server, and returns when it accepts connections. Raises RuntimeError with the server's log."""
        root, secret = self.data.parent, self.data.parent / "user.sql"
        secret.touch(mode=0o600)
        secret.write_text(_USER.format(user=self.user, password=self.password) + _RIGHTS.format(user=self.user))
        _give(secret)
        own = (
            f"datadir={self.data}", f"port={self.port}", "bind-address=127.0.0.1", f"socket={root}/socket",
            f"pid-file={root}/pid", f"init-file={secret}", "skip-name-resolve",
        )  # fmt: skip
        options = [f"--{one}" for one in (*own, *self.settings)]
        with (root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                as_account([str(self.programs[0]), "--no-defaults", *options]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
            )  # fmt: skip
        self._wait()
        secret.unlink()

    def stop(self) -> None:
        """Stops the server at once, as a power failure does. Every connection breaks."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(_PATIENCE)

    def restart(self) -> None:
        """Restarts the server. Every connection breaks, then new ones are accepted, and the log has another file."""
        self.stop()
        self.start()

    def _wait(self) -> None:
        """Until the port answers, which is after the file with the user was read."""
        assert self.process is not None
        until = time.monotonic() + _PATIENCE
        while not _answers(self.port):
            if self.process.poll() is not None or time.monotonic() > until:
                log = (self.data.parent / "log").read_text(errors="replace")
                self.stop()
                raise RuntimeError(f"{self.programs[0]}: {log[-4000:]}")
            time.sleep(0.05)


@contextmanager
def throw_away_mariadb(*, password: str, settings: Sequence[str] = (*FAST, *LOGGED)) -> Iterator[ThrowAwayMariaDB]:
    """A server that can be replicated and, for speed, does not sync. As root it runs as the user `mysql`.

    `settings`: options `name=value` of the server; the last option of a name counts. `password`: of letters, digits,
    `-` and `_`. Raises MariaDBNotInstalled, and RuntimeError with a program's output.
    """
    programs = mariadb_programs()
    if programs is None:
        raise MariaDBNotInstalled
    root = empty_directory()
    server = ThrowAwayMariaDB(programs, root / "data", free_port(), password, settings)
    try:
        make_data(programs, server.data)
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


def empty_directory() -> Path:
    """A temporary directory that the user of a server may write, in memory if there is room. The caller removes it."""
    root = Path(tempfile.mkdtemp(prefix="tidemark-my-", dir=memory()))
    root.chmod(0o755)
    _give(root)
    return root


def make_data(programs: Sequence[Path], data: Path, *, auth: str = "socket") -> None:
    """The directory of a new server. `auth`: how `root` logs in (mariadb-install-db). Raises RuntimeError."""
    how = ("--skip-test-db", "--skip-name-resolve", f"--auth-root-authentication-method={auth}")
    _run(str(programs[1]), "--no-defaults", f"--datadir={data}", *how)


def mariadb_programs() -> tuple[Path, ...] | None:
    """The server and the program that makes its directory: on the PATH, or in Debian's or Homebrew's places."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_MORE_PLACES))
    found = [shutil.which(name, path=path) for name in _PROGRAMS]
    return tuple(Path(one) for one in found if one is not None) if all(found) else None


def as_account(command: Sequence[str]) -> list[str]:
    """The command as the user of the database: as root a server refuses to run."""
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", f"--reuid={_ACCOUNT}", f"--regid={_ACCOUNT}", "--init-groups", *command]


def _answers(port: int) -> bool:
    """Whether the server greets who connects."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as probe:
            return bool(probe.recv(1))
    except OSError:
        return False


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(path, _ACCOUNT, _ACCOUNT)


def _run(*command: str) -> None:
    done = subprocess.run(
        as_account(command), capture_output=True, text=True, timeout=_PATIENCE, cwd="/", stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
