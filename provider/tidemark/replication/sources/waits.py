"""For how long others have waited behind sessions of ours."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar

__all__ = ["Waits"]

_WINDOW = 10  # bounds, of which somebody waits for one
Waiting = TypeVar("Waiting")


class Waits:
    """For how long anybody has waited of late, from look to look: a session that gives up and tries again waits
    further. `clock`: in seconds.
    """

    def __init__(self, bound: timedelta, clock: Callable[[], float] = time.monotonic) -> None:
        self._bound, self._clock = bound.total_seconds(), clock
        self._looked: float | None = None
        self._waited = False
        self._spans: deque[tuple[float, float]] = deque()  # until when, and how long of it somebody waited

    def late(self, waiting: Sequence[Waiting]) -> Waiting | None:
        """A session that waits now, if somebody has waited for the bound, of the last ten of it, as of this look."""
        now = self._clock()
        between = 0.0 if self._looked is None else now - self._looked
        self._spans.append((now, between * (self._waited + bool(waiting)) / 2))  # who is seen once waited half of it
        while self._spans[0][0] < now - _WINDOW * self._bound:
            self._spans.popleft()
        self._looked, self._waited = now, bool(waiting)
        return waiting[0] if waiting and sum(span for _, span in self._spans) >= self._bound else None
