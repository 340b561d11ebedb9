"""The TRIM_EVENTS job: what is old, and no target needs any more, leaves the event log of a replication."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.replication.driver.trim import trim_events as trim
from tidemark.replication.model.jobs import TrimEvents, TrimReport

__all__ = ["trim_events"]


def trim_events(job: JobContext, ask: TrimEvents) -> TrimReport:
    """A second run finds nothing to remove. Raises what `trim_events` of the engine does."""
    return trim(job.session, job.spec.store_id, ask, job.options, say=job.progress.say, stop_if_due=job.stop_if_due)
