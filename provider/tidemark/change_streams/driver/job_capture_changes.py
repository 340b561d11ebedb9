"""The CAPTURE_CHANGES job: a capture batch into the log of its change stream."""

from __future__ import annotations

from tidemark.change_streams.driver.capture import capture_batch
from tidemark.change_streams.model.change_streams import CaptureBatch, CaptureResult
from tidemark.jobs.context import JobContext

__all__ = ["capture_changes"]


def capture_changes(job: JobContext, request: CaptureBatch) -> CaptureResult:
    """A second run answers what the first has put into the log. Raises what `capture_batch` does."""
    job.stop_if_due()
    with job.new_workspace(f"{request.stream.uid}-{request.number}") as workspace:
        return capture_batch(job.session, request, workspace, job.options, say=job.progress.say)
