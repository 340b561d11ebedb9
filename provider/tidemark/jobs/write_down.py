"""The WRITE_DOWN job: events of an object into its target, each once."""

from __future__ import annotations

from tidemark.engine.replication.write_down import write_down as run_write_down
from tidemark.jobs.context import JobContext
from tidemark.model.codec import from_json, to_plain
from tidemark.model.jobs import JobResult
from tidemark.model.replication_jobs import WriteDown

__all__ = ["write_down"]


def write_down(job: JobContext) -> JobResult:
    """Carry out `options["ask"]` (a WriteDown as JSON). Facts: a WriteDownReport.

    A second run finds the segments that were written and writes the others. Raises what `write_down` of the engine
    does.
    """
    ask = from_json(WriteDown, job.spec.options["ask"])
    report = run_write_down(
        job.session,
        job.spec.store_id,
        ask,
        job.options,
        say=job.progress.say,
        stop_if_due=job.stop_if_due,
    )
    return JobResult(facts=to_plain(report))
