"""Processes that end at a failpoint, and the points that a client passes: all but those of a task's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tidemark.failpoints import POINTS

__all__ = ["CLIENT_POINTS", "run_script", "script_of", "start_script"]

HERE = Path(__file__).parent
CLIENT_POINTS = tuple(point for point in POINTS if not point.startswith(("result.", "event.")))


def run_script(script: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script of this directory in a process group of its own, which a kill takes down as a whole, JVM included."""
    command, environment = script_of(script, home, *arguments)
    return subprocess.run(
        command,
        env=environment,
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=600,
    )


def start_script(script: str, home: Path, **environment: str) -> subprocess.Popen[bytes]:
    """A script of this directory that runs beside the test. It makes `home/ready` when its work begins, and says what
    it says to `home/said.log`.
    """
    (home / "ready").unlink(missing_ok=True)
    command, known = script_of(script, home)
    said = (home / "said.log").open("ab")
    return subprocess.Popen(command, env={**known, **environment}, start_new_session=True, stdout=said, stderr=said)


def script_of(script: str, home: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """The command of a script of this directory, and an environment in which it finds the tests."""
    path = os.pathsep.join(filter(None, (str(HERE.parents[1]), os.environ.get("PYTHONPATH"))))
    return [sys.executable, str(HERE / script), str(home), *arguments], {**os.environ, "PYTHONPATH": path}
