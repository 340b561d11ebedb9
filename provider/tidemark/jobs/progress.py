"""Progress of a job in a few lines: what Spark is at every few seconds, and one line a statement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tidemark.jobs.spark_work import ActiveStage
from tidemark.model.statements import Evidence, Statement

__all__ = ["Progress", "print_line"]

SECONDS_BETWEEN_LINES = 5.0


def print_line(text: str) -> None:
    """To standard output with the prefix by which a task log picks the job's own lines."""
    print(f"tidemark: {text}", flush=True)


class Progress:
    """Says what a job is doing through `say`. As a context it asks for the active stages every few seconds and speaks
    only when something has changed since.
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
        """So many are to be delivered."""
        self._statements = statements

    def delivered(self, statement: Statement, evidence: Evidence) -> None:
        """One line for a statement that its target now holds."""
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
