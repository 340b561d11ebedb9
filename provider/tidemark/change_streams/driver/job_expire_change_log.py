"""The EXPIRE_CHANGE_LOG job: what a change stream's retention is over for leaves its log."""

from __future__ import annotations

from tidemark.change_streams.driver.expire import expire_change_log as expire
from tidemark.change_streams.model.jobs import ExpireChangeLog, ExpiredRows
from tidemark.jobs.context import JobContext

__all__ = ["expire_change_log"]


def expire_change_log(job: JobContext, request: ExpireChangeLog) -> ExpiredRows:
    """Expire the records of the change stream's log up to its `expired_until`. Later records stay, since they may still
    be handed out. A second run finds nothing to remove. Raises what `expire_change_log` of the engine does.
    """
    stream = request.stream
    now = (stream.expired_until or stream.created_at) + stream.options.retention
    return expire(
        job.session,
        stream,
        now=now,
        only_writer=request.only_writer,
        options=job.options,
        go_on=job.stop_if_due,
    )
