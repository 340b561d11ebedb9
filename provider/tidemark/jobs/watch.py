"""The reasons to stop a job: its deadline, or the cancel marker (PROTOCOL step 9)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from tidemark.errors import JobCancelled, JobDeadlineExceeded, JobError, StorageRefused, StorageUnreachable
from tidemark.model.jobs import JobSpec

__all__ = ["Watch"]

SECONDS_BETWEEN_CHECKS = 1.0
SECONDS_BETWEEN_REQUESTS = 5.0  # to an object store, which has a price for each
SECONDS_TO_END = 20.0


class Watch:
    """A watch on marker and clock. As a context it runs as long as the job.

    If the job must stop, `cancel` ends its Spark jobs and `stop_if_due` raises. If the job is still inside some seconds
    later, `end` is called, which should end the process. A late writer is worse than a dead one.

    `pause`: seconds between two looks at the marker; the clock is looked at each second. A storage that does not answer
    counts as no marker, and is asked again: the deadline holds without it. `say`: gets a line about that.
    """

    def __init__(
        self,
        spec: JobSpec,
        cancelled: Callable[[], bool],
        cancel: Callable[[], None],
        clock: Callable[[], datetime],
        end: Callable[[JobError], None] | None = None,
        *,
        pause: float = SECONDS_BETWEEN_CHECKS,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._spec = spec
        self._cancelled = cancelled
        self._cancel = cancel
        self._clock = clock
        self._end = end
        self._checks_between_looks = max(1, round(pause / SECONDS_BETWEEN_CHECKS))
        self._say = say
        self._unanswered = False
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tidemark-watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._left.set()

    def due(self) -> JobError | None:
        """The reason why the job must stop now, or None."""
        return self._late() or (JobCancelled(key=str(self._spec.key)) if self._is_marked() else None)

    def stop_if_due(self) -> None:
        """Raises JobDeadlineExceeded or JobCancelled."""
        reason = self.due()
        if reason is not None:
            raise reason

    def _late(self) -> JobError | None:
        if self._clock() < self._spec.deadline:
            return None
        return JobDeadlineExceeded(key=str(self._spec.key), deadline=self._spec.deadline)

    def _is_marked(self) -> bool:
        try:
            marked = self._cancelled()
        except (StorageRefused, StorageUnreachable) as error:
            if not self._unanswered:
                self._say(f"It is not known whether the job is cancelled: {error}")
            self._unanswered = True
            return False
        self._unanswered = False
        return marked

    def _watch(self) -> None:
        overdue, checks = 0.0, 0
        reason: JobError | None = None
        while not self._left.wait(SECONDS_BETWEEN_CHECKS):
            checks += 1
            if reason is None:
                reason = self.due() if checks % self._checks_between_looks == 0 else self._late()
            if reason is None:
                continue
            self._cancel()
            overdue += SECONDS_BETWEEN_CHECKS
            if overdue >= SECONDS_TO_END and self._end is not None:
                self._end(reason)
                return
