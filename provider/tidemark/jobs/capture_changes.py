"""The CAPTURE_CHANGES job: a capture batch into the log of its change stream."""

from __future__ import annotations

from tidemark.engine.change_streams.capture import capture_batch
from tidemark.jobs.context import JobContext
from tidemark.model.change_streams import CaptureBatch
from tidemark.model.codec import from_json, to_plain
from tidemark.model.jobs import JobResult

__all__ = ["capture_changes"]


def capture_changes(job: JobContext) -> JobResult:
    """Do `options["batch"]` (a CaptureBatch as JSON). Facts: a CaptureResult.

    A second run answers what the first has put into the log. Raises what `capture_batch` does.
    """
    batch = from_json(CaptureBatch, job.spec.options["batch"])
    job.stop_if_due()
    with job.new_workspace(f"{batch.stream.uid}-{batch.number}") as workspace:
        result = capture_batch(job.session, batch, workspace, job.options, say=job.progress.say)
    return JobResult(facts=to_plain(result))
