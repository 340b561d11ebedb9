"""The EXPIRE_EVENTS job: what is old, and no target needs any more, leaves the event log of a replication."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.replication.driver.expire import expire_events as run_expire
from tidemark.replication.model.jobs import ExpireEvents, ExpireReport

__all__ = ["expire_events"]


def expire_events(job: JobContext, request: ExpireEvents) -> ExpireReport:
    """A second run finds nothing to remove. Raises what `expire_events` of the engine does."""
    return run_expire(
        job.session, job.spec.store_id, request, job.options, say=job.progress.say, stop_if_due=job.stop_if_due
    )
