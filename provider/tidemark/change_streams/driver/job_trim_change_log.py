"""The TRIM_CHANGE_LOG job: what a change stream's retention is over for leaves its log."""

from __future__ import annotations

from tidemark.change_streams.driver.trim import trim_change_log as trim
from tidemark.change_streams.model.change_streams import ChangeStream
from tidemark.change_streams.model.jobs import Trimmed
from tidemark.jobs.context import JobContext

__all__ = ["trim_change_log"]


def trim_change_log(job: JobContext, ask: ChangeStream) -> Trimmed:
    """Trim the log of the change stream up to its `trimmed_until`, and no further, since what comes after that may
    still be handed out. A second run finds nothing to remove. Raises what `trim_change_log` of the engine does.
    """
    until = ask.trimmed_until or ask.created_at
    return trim(job.session, ask, now=until + ask.options.retention, options=job.options, go_on=job.stop_if_due)
