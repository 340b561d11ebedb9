"""The part that all statements of a job's transaction share."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.delivery.driver.exactly_once import Delivering
from tidemark.jobs.context import JobContext
from tidemark.model.streams import StreamWindow

__all__ = ["delivering"]


def delivering(job: JobContext, windows: Sequence[StreamWindow]) -> Delivering:
    """The store, key and stop signal of the job, with its windows."""
    return Delivering(job.spec.store_id, job.spec.key, tuple(windows), job.options, job.stop_if_due)
