"""A real MySQL server of the tests' own, from packages that are fetched and not installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.databases.mariadb import BinlogServer, running
from tidemark.model.source_address import SourceKind
from tidemark.testing.mariadb import as_account, empty_directory
from tidemark.testing.postgresql import free_port

__all__ = ["mysql_or_skip", "running_mysql"]

_REPOSITORY = Path(__file__).parents[2]
_PATIENCE = 300


@contextmanager
def mysql_or_skip(settings: Sequence[str] = ()) -> Iterator[BinlogServer]:
    """A server for a fixture; where it cannot be fetched its tests are skipped, with the reason."""
    try:
        root = _fetched()
    except (subprocess.SubprocessError, OSError) as error:
        why = " ".join(str(getattr(error, "stderr", "") or error).split())
        pytest.skip(f"MySQL cannot be fetched: {why[-400:]}")
    with running_mysql(root, settings) as server:
        yield server


@contextmanager
def running_mysql(programs: Path, settings: Sequence[str] = ()) -> Iterator[BinlogServer]:
    """A server with the user of a replication, as `running_mariadb`. It comes with the C library that it needs."""
    libraries = programs / "usr/lib/x86_64-linux-gnu"
    loader = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)]
    share = programs / "usr/share/mysql"
    own = [
        "--no-defaults", f"--basedir={programs}/usr", f"--lc-messages-dir={share}",
        f"--character-sets-dir={share}/charsets", f"--plugin-dir={programs}/usr/lib/mysql/plugin",
    ]  # fmt: skip
    server = [*loader, str(programs / "usr/sbin/mysqld"), *own]
    directory = empty_directory()
    try:
        data = directory / "data"
        made = [*server, "--initialize-insecure", f"--datadir={data}"]
        done = subprocess.run(as_account(made), capture_output=True, text=True, timeout=_PATIENCE, cwd="/")
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        more = ("--server-id=902", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--mysqlx=OFF",
                "--secure-file-priv=NULL", *settings)  # fmt: skip
        one = BinlogServer(SourceKind.MYSQL, data, free_port(), server, more)
        with running(one):
            one.make_user()
            yield one
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _fetched() -> Path:
    """The directory that has `usr/sbin/mysqld`, readable for the database's user. Raises OSError, SubprocessError."""
    there = os.environ.get("TIDEMARK_TEST_MYSQL") or str(_REPOSITORY / ".cache/mysql")
    done = subprocess.run(
        [_REPOSITORY / ".ci/fetch-mysql", there], capture_output=True, text=True, timeout=_PATIENCE, check=True
    )
    return Path(done.stdout.strip())
