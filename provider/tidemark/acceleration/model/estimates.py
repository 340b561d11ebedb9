"""Estimates of query acceleration, and runs of jobs that are compared with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

__all__ = ["DEFAULT_FACTOR", "MOST_FACTOR", "SHOWN_FACTORS", "Estimate", "JobRun", "Status"]

DEFAULT_FACTOR = 8
MOST_FACTOR = 100
SHOWN_FACTORS = (1, 2, 4, 8)


class Status(Enum):
    """The answer of an estimate, in the words of the source system."""

    ELIGIBLE = "eligible"
    INELIGIBLE = "ineligible"
    ACCELERATED = "accelerated"
    INVALID = "invalid"


@dataclass(frozen=True)
class Estimate:
    """The seconds that an application, or a SQL query of it, would take with more executors.

    `query`: the application's id. `times`: scale factor → seconds, empty for an invalid one. `upper_limit`: the
    smallest factor with the best time; 0 if it is not eligible. `reason`: why it is not, else empty. `slots`: tasks
    that ran at a time at most.
    """

    query: str
    status: Status
    seconds: float
    times: Mapping[int, float] = field(default_factory=dict)
    upper_limit: int = 0
    reason: str = ""
    slots: int = 0


@dataclass(frozen=True)
class JobRun:
    """A job whose event log is kept.

    `factor`: the scale factor of an accelerated job, None for another; 0 is without a limit. `executors`, `peak`: those
    that it began with and had at most. `predicted`, `measured`: seconds of the application. `predicted_from`: the
    application whose event log the prediction was read from. `note`: why a number is missing.
    """

    application: str
    dag_id: str
    task_id: str
    run_id: str
    kind: str
    ended_at: datetime
    factor: int | None = None
    executors: int | None = None
    peak: int | None = None
    predicted: float | None = None
    predicted_from: str | None = None
    measured: float | None = None
    note: str = ""

    @property
    def off_by(self) -> float | None:
        """The share by which the prediction missed the measured time."""
        if self.predicted is None or not self.measured:
            return None
        return abs(self.predicted - self.measured) / self.measured
