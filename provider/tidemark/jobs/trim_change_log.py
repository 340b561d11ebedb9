"""The TRIM_CHANGE_LOG job: what a change stream's retention is over for leaves its log."""

from __future__ import annotations

from tidemark.engine.change_streams.trim import trim_change_log as trim
from tidemark.jobs.context import JobContext
from tidemark.model.change_streams import ChangeStream
from tidemark.model.codec import from_json, to_plain
from tidemark.model.jobs import JobResult

__all__ = ["STREAM", "trim_change_log"]

STREAM = "stream"


def trim_change_log(job: JobContext) -> JobResult:
    """Trim the log of `options["stream"]` (a ChangeStream as JSON) up to its `trimmed_until`, and no further, since
    what comes after that may still be handed out. Facts: a Trimmed.

    A second run finds nothing to remove. Raises what `trim_change_log` of the engine does.
    """
    stream = from_json(ChangeStream, job.spec.options[STREAM])
    until = stream.trimmed_until or stream.created_at
    done = trim(job.session, stream, now=until + stream.options.retention, options=job.options, go_on=job.stop_if_due)
    return JobResult(facts=to_plain(done))
