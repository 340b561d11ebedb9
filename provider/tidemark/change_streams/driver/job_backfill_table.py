"""The BACKFILL_TABLE job: a table's rows of one version into a target, once."""

from __future__ import annotations

from tidemark.change_streams.driver.backfill import backfill_table as run_backfill
from tidemark.change_streams.model.backfill import BackfilledTable, BackfillRequest
from tidemark.jobs.context import JobContext

__all__ = ["backfill_table"]


def backfill_table(job: JobContext, request: BackfillRequest) -> BackfilledTable:
    """A second run writes nothing. Raises what `backfill_table` of the engine does."""
    evidence = run_backfill(job.session, job.spec.store_id, request, job.stop_if_due, job.options)
    rows = sum(evidence.rows.values())
    job.progress.say(
        f"{rows} rows of version {request.version} {'were there already' if evidence.found else 'written'}"
    )
    return BackfilledTable(rows, evidence.found, evidence.commit_version)
