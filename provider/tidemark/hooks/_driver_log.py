"""What a driver prints: all of it to a file, its own lines to the task log, the last ones for an error."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from airflow.providers.common.compat.sdk import redact

__all__ = ["PROGRESS", "TAIL_LINES", "follow"]

PROGRESS = "tidemark: "
TAIL_LINES = 25


def follow(lines: Iterable[str], spark_log: Path, tail: deque[str], say: Callable[[str], object]) -> None:
    """Read `lines` to their end, secrets masked. Those that begin with `tidemark: ` are said at once, without that."""
    with spark_log.open("a", encoding="utf-8", errors="replace") as kept:
        for line in map(_masked, lines):
            kept.write(line)
            tail.append(line.rstrip())
            if line.startswith(PROGRESS):
                kept.flush()
                say(line.removeprefix(PROGRESS).rstrip())


def _masked(line: str) -> str:
    return str(redact(line))
