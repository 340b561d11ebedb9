"""How the consumptions of a stream went."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["StreamHealth"]


@dataclass(frozen=True)
class StreamHealth:
    """Counts since the stream was created, kept when it is re-based; all zero where nothing was counted yet.

    `consumptions`: committed, those of `empty_windows` among them. `rows_delivered`: of their change sets, each once
    however many targets took it. If only SQL or functions read one, those of the target that got most count.
    `failures_in_row`: attempts that failed since the last commit, the first of them at `failing_since`. `last_error`
    has the message only of errors of ours, without what Airflow masks; it stays when the stream is well again.
    """

    consumptions: int = 0
    empty_windows: int = 0
    rows_delivered: int = 0
    rows_quarantined: int = 0
    failures: int = 0
    failures_in_row: int = 0
    failing_since: datetime | None = None
    last_failed_at: datetime | None = None
    last_error_type: str | None = None
    last_error: str | None = None
    last_failed_run: str | None = None
