"""The HAS_ROWS job: whether a window that the log calls changed shows any row."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.streams.driver.windows import read_window
from tidemark.streams.model.transaction_jobs import HasRowsReport, WindowsRequest

__all__ = ["has_rows"]


def has_rows(job: JobContext, request: WindowsRequest) -> HasRowsReport:
    """Writes nothing but what is in work; raises what reading the windows raises."""
    assert job.spec.key is not None  # the worker asks as the task that it runs
    with job.new_workspace(f"has-rows-{job.spec.key.run_id}") as workspace:
        found = {
            window.stream_name: not read_window(
                job.session, window, workspace, job.options, say=job.progress.say
            ).isEmpty()
            for window in request.windows
        }
    return HasRowsReport(found)
