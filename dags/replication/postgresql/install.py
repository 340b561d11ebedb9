"""PostgreSQL for the demo: the installed one, or on Debian and Ubuntu one that is then installed, with a message."""

from __future__ import annotations

import os
import shutil
import subprocess

from tidemark.testing import PostgresNotInstalled, postgresql_programs

__all__ = ["require_postgresql"]

_PACKAGE = "postgresql"


def require_postgresql() -> None:
    """Raises PostgresNotInstalled if none is installed and none can be."""
    if postgresql_programs() is not None:
        return
    command = _as_root(["apt-get", "install", "-y", "-qq", "--no-install-recommends", _PACKAGE])
    if command is None:
        raise PostgresNotInstalled
    print(f"PostgreSQL is missing. Installing Debian's package: {' '.join(command)}", flush=True)
    quiet = {"stdout": subprocess.DEVNULL, "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
    subprocess.run(_as_root(["apt-get", "update", "-qq"]) or [], check=False, **quiet)
    installed = subprocess.run(command, check=False, **quiet)
    if installed.returncode != 0 or postgresql_programs() is None:
        raise PostgresNotInstalled


def _as_root(command: list[str]) -> list[str] | None:
    """None without apt-get, or without the right to use it."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["env", "DEBIAN_FRONTEND=noninteractive", *command]
    return None if shutil.which("sudo") is None else ["sudo", "env", "DEBIAN_FRONTEND=noninteractive", *command]
