"""The WRITE_DOWN job: events of an object into its target, each once."""

from __future__ import annotations

from tidemark.jobs.context import JobContext
from tidemark.replication.driver.write_down import write_down as run_write_down
from tidemark.replication.model.jobs import WriteDown, WriteDownReport

__all__ = ["write_down"]


def write_down(job: JobContext, ask: WriteDown) -> WriteDownReport:
    """A second run finds the segments that were written and writes the others. Raises what `write_down` of the engine
    does.
    """
    store_id, say = job.spec.store_id, job.progress.say
    return run_write_down(job.session, store_id, ask, job.options, say=say, stop_if_due=job.stop_if_due)
