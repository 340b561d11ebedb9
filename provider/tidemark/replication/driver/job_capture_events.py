"""The CAPTURE_EVENTS job: what a database has committed comes into the event log of its replication."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.replication.driver.capture import capture_events as capture
from tidemark.replication.model.jobs import CaptureEvents, CaptureReport

__all__ = ["capture_events"]


def capture_events(job: JobContext, request: CaptureEvents) -> CaptureReport:
    """A second run continues at the end of the event log. Raises what the engine's `capture_events` does."""
    source = job.require_source()
    job.stop_if_due()
    with job.new_workspace(f"capture-{request.replication_uid}") as workspace:
        return capture(
            job.session,
            job.spec.store_id,
            request,
            source,
            workspace,
            job.options,
            now=job.started_at,
            say=job.progress.say,
            stop_if_due=job.stop_if_due,
        )
