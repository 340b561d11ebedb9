"""The DRY_RUN job: what a window would read, from the log alone; nothing is written and no rows are read."""

from __future__ import annotations

from typing import Any

from tidemark.jobs.context import JobContext
from tidemark.model.streams import StreamWindow, WindowKind
from tidemark.streams.driver.windows import explain_window
from tidemark.streams.model.transaction_jobs import DryRunReport, WindowsRequest

__all__ = ["dry_run"]


def dry_run(job: JobContext, request: WindowsRequest) -> DryRunReport:
    """Touches nothing, however often. Raises what planning the windows raises."""
    return DryRunReport({window.stream_name: _explained(job, window) for window in request.windows})


def _explained(job: JobContext, window: StreamWindow) -> dict[str, Any]:
    span = {"from": window.start, "to": window.end, "kind": window.kind.value}
    if window.kind is WindowKind.INITIAL_ROWS or window.empty:
        return span
    return {**span, **explain_window(window, job.options)}
