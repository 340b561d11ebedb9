"""Waiting for another process, without a fixed sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["wait_until"]


def wait_until(happens: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.1)
