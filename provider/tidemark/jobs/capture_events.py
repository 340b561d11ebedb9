"""The CAPTURE_EVENTS job: what a database has committed comes into the event log of its replication."""

from __future__ import annotations

from tidemark.engine.replication.capture import capture_events as capture
from tidemark.errors import InvalidArgument
from tidemark.jobs.context import JobContext
from tidemark.model.codec import from_json, to_plain
from tidemark.model.jobs import JobResult
from tidemark.model.replication_jobs import CaptureEvents

__all__ = ["capture_events"]


def capture_events(job: JobContext) -> JobResult:
    """Do `options["ask"]` (a CaptureEvents as JSON) in the database of the job. Facts: a CaptureReport.

    A second run goes on where the event log ends. Raises what the engine's `capture_events` does.
    """
    ask = from_json(CaptureEvents, job.spec.options["ask"])
    if job.source is None:
        raise InvalidArgument(argument="source", value=None, problem="the job was not told which database to read")
    job.stop_if_due()
    with job.new_workspace(f"capture-{ask.replication_uid}") as workspace:
        report = capture(
            job.session,
            job.spec.store_id,
            ask,
            job.source,
            workspace,
            job.options,
            now=job.started_at,
            say=job.progress.say,
            stop_if_due=job.stop_if_due,
        )
    return JobResult(facts=to_plain(report))
