"""The REFRESH_EXTERNAL_TABLE job: which files there are now is noted in a Delta table, so Spark writes it."""

from __future__ import annotations

from tidemark.engine.external_tables.refresh import refresh_external_table as refresh
from tidemark.jobs.context import JobContext
from tidemark.model.codec import from_json, to_plain
from tidemark.model.external_tables import ExternalTableAsk
from tidemark.model.jobs import JobResult

__all__ = ["ASK", "refresh_external_table"]

ASK = "ask"


def refresh_external_table(job: JobContext) -> JobResult:
    """Make the external table `options["ask"]` (an ExternalTableAsk as JSON) if it is not there, else refresh it.

    Facts: a Refreshed. A second run finds less to do, or nothing. Raises what `refresh_external_table` of the engine
    does.
    """
    ask = from_json(ExternalTableAsk, job.spec.options[ASK])
    return JobResult(facts=to_plain(refresh(job.session, job.spec.workspace, ask, job.options)))
