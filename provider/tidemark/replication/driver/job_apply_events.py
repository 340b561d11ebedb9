"""The APPLY_EVENTS job: events of an object into its target, each once."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.replication.driver.apply import apply_events as run_apply
from tidemark.replication.model.jobs import ApplyEvents, ApplyReport

__all__ = ["apply_events"]


def apply_events(job: JobContext, request: ApplyEvents) -> ApplyReport:
    """A second run finds the segments that were written and writes the others. Raises what `apply_events` of the engine
    does.
    """
    store_id, say = job.spec.store_id, job.progress.say
    return run_apply(job.session, store_id, request, job.options, say=say, stop_if_due=job.stop_if_due)
