"""The end of a driver's process group."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import deque
from pathlib import Path
from typing import Protocol

__all__ = ["Driver", "end_group"]

_TERM_SECONDS = 5.0


class Driver(Protocol):
    """A driver in a process group of its own, by spark-submit or behind Spark Connect."""

    spark_log: Path
    tail: deque[str]

    @property
    def process_id(self) -> int | None:
        """The leader of the process group; None before the start."""

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs."""

    def submit(self, application: str, *, cwd: str) -> object:
        """Runs `application` in `cwd` to its end, with any exit code."""


def end_group(driver: Driver) -> None:
    """Sends SIGTERM, and SIGKILL to the rest after some seconds. A group that is gone is no error."""
    group = driver.process_id
    if group is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        until = time.monotonic() + _TERM_SECONDS
        while time.monotonic() < until:
            driver.exit_code  # noqa: B018 - asking reaps the leader, which would else count as alive
            os.killpg(group, 0)
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)
