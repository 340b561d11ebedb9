"""Progress of a job in few lines: Spark's stages every few seconds, and one line per statement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tidemark.jobs.spark_work import ActiveStage
from tidemark.model.statements import Evidence, Statement

__all__ = ["Progress", "print_line"]

SECONDS_BETWEEN_LINES = 5.0


def print_line(text: str) -> None:
    """Prints a line to standard output, with the prefix that marks the job's own lines for a task log."""
    print(f"tidemark: {text}", flush=True)


class Progress:
    """Progress of a job, reported by `say`. As a context it reads the active stages every few seconds, and reports only
    changes.
    """

    def __init__(self, stages: Callable[[], Sequence[ActiveStage]], say: Callable[[str], None] = print_line) -> None:
        self._stages = stages
        self._statements = 0
        self._done = 0
        self._last = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tidemark-progress", daemon=True)
        self.say = say

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join(timeout=SECONDS_BETWEEN_LINES)

    def expect(self, statements: int) -> None:
        """Sets the number of statements that the job will deliver."""
        self._statements = statements

    def delivered(self, statement: Statement, evidence: Evidence) -> None:
        """Reports a delivered statement in one line."""
        self._done += 1
        rows = ", ".join(f"{count} {what}" for what, count in evidence.rows.items()) or "rows not counted"
        how = "was there already" if evidence.found else "written"
        what = f"{statement.write.write_as.value} into {statement.target.name}"
        place = f"statement {self._done} of {self._statements}"
        self.say(f"{place} ({what}) {how}: {rows}, version {evidence.commit_version}")

    def _watch(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LINES):
            line = self._line()
            if line and line != self._last:
                self._last = line
                self.say(line)

    def _line(self) -> str:
        stages = [f"stage {stage.number}: {stage.completed} of {stage.tasks} tasks" for stage in self._stages()]
        if not stages:
            return ""
        if self._statements:
            stages.append(f"{self._done} of {self._statements} statements done")
        return ", ".join(stages)
