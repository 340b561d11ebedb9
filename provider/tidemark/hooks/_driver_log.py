"""A driver's output: all in a file, the job's own lines in the task log, the last lines for an error."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from airflow.providers.common.compat.sdk import redact

__all__ = ["PROGRESS", "TAIL_LINES", "follow"]

PROGRESS = "tidemark: "
TAIL_LINES = 25


def follow(lines: Iterable[str], spark_log: Path, tail: deque[str], say: Callable[[str], object]) -> None:
    """Reads `lines` to their end, with secrets masked. Lines that begin with `tidemark: ` are logged at once, without
    it.
    """
    with spark_log.open("a", encoding="utf-8", errors="replace") as kept:
        for line in map(_masked, lines):
            kept.write(line)
            tail.append(line.rstrip())
            if line.startswith(PROGRESS):
                kept.flush()
                say(line.removeprefix(PROGRESS).rstrip())


def _masked(line: str) -> str:
    return str(redact(line))
