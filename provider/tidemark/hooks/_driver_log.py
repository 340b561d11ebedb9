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
    it. A log that cannot be written, as on a full disk, is said once and fails no job.
    """
    told = False
    for line in map(_masked, lines):
        tail.append(line.rstrip())
        if line.startswith(PROGRESS):
            say(line.removeprefix(PROGRESS).rstrip())
        try:
            with spark_log.open("a", encoding="utf-8", errors="replace") as kept:
                kept.write(line)
        except OSError as error:
            if not told:
                say(f"lines of Spark's own log are lost, {spark_log} cannot be written: {error}")
            told = True


def _masked(line: str) -> str:
    return str(redact(line))
