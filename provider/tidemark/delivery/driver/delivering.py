"""What the statements of a job's transaction share."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.delivery.driver.exactly_once import Delivering
from tidemark.jobs.context import JobContext
from tidemark.model.streams import StreamWindow

__all__ = ["delivering"]


def delivering(job: JobContext, windows: Sequence[StreamWindow]) -> Delivering:
    """The job's store, key and way to stop, and the windows that are delivered."""
    return Delivering(job.spec.store_id, job.spec.key, tuple(windows), job.options, job.stop_if_due)
