"""A server for the demo: on Debian and Ubuntu a missing one is installed, with a message."""

from __future__ import annotations

import os
import shutil
import subprocess

__all__ = ["install"]


def install(product: str, package: str) -> None:
    """Installs the package, if apt-get exists and may be used."""
    command = _as_root(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package])
    if command is None:
        return
    print(f"{product} is missing. Installing Debian's package: {' '.join(command)}", flush=True)
    quiet = {"stdout": subprocess.DEVNULL, "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
    subprocess.run(_as_root(["apt-get", "update", "-qq"]) or [], check=False, **quiet)
    subprocess.run(command, check=False, **quiet)


def _as_root(command: list[str]) -> list[str] | None:
    """None without apt-get, or without the right to use it."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["env", "DEBIAN_FRONTEND=noninteractive", *command]
    return None if shutil.which("sudo") is None else ["sudo", "env", "DEBIAN_FRONTEND=noninteractive", *command]
