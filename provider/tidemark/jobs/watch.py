"""The reasons to stop a job: its deadline, or the cancel marker (PROTOCOL step 9)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from tidemark.errors import JobCancelled, JobDeadlineExceeded, JobError
from tidemark.model.jobs import JobSpec

__all__ = ["Watch"]

SECONDS_BETWEEN_CHECKS = 1.0
SECONDS_TO_END = 20.0


class Watch:
    """A watch on marker and clock. As a context it runs as long as the job.

    If the job must stop, `cancel` ends its Spark jobs and `stop_if_due` raises. If the job is still inside some seconds
    later, `end` is called, which should end the process. A late writer is worse than a dead one.
    """

    def __init__(
        self,
        spec: JobSpec,
        cancelled: Callable[[], bool],
        cancel: Callable[[], None],
        clock: Callable[[], datetime],
        end: Callable[[JobError], None] | None = None,
    ) -> None:
        self._spec = spec
        self._cancelled = cancelled
        self._cancel = cancel
        self._clock = clock
        self._end = end
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tidemark-watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._left.set()

    def due(self) -> JobError | None:
        """The reason why the job must stop now, or None."""
        key = str(self._spec.key)
        if self._clock() >= self._spec.deadline:
            return JobDeadlineExceeded(key=key, deadline=self._spec.deadline)
        return JobCancelled(key=key) if self._cancelled() else None

    def stop_if_due(self) -> None:
        """Raises JobDeadlineExceeded or JobCancelled."""
        reason = self.due()
        if reason is not None:
            raise reason

    def _watch(self) -> None:
        overdue = 0.0
        while not self._left.wait(SECONDS_BETWEEN_CHECKS):
            reason = self.due()
            if reason is None:
                continue
            self._cancel()
            overdue += SECONDS_BETWEEN_CHECKS
            if overdue >= SECONDS_TO_END and self._end is not None:
                self._end(reason)
                return
